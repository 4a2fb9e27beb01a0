import type { Context, Next } from 'koa'
import type { Provider } from 'oidc-provider'
import type { SecretBox } from '../crypto/secret-box.ts'
import type { RequestParameters } from '../contract/index.ts'
import { outcomeOf } from './provider-answers.ts'

const NAME = 'account_flows_login_page'

export type LoginPage = ReturnType<typeof createLoginPage>

// The login page that this browser was sent to last. The end of a reset leads back to it, but browsers send the cookies of the provider
// only to that page. So our own cookie keeps its address, and goes only to `resetUrl`. It is sealed, so that only we choose where it leads.
export function createLoginPage(provider: () => Provider, box: SecretBox, resetUrl: string) {
  const { protocol, pathname } = new URL(resetUrl)
  const attributes = `Path=${pathname}; HttpOnly; SameSite=Lax${protocol === 'https:' ? '; Secure' : ''}`

  return {
    /** Middleware: sets the cookie when the provider leads the browser to an interaction. */
    async watch(ctx: Context, next: Next) {
      await next()
      const { interaction } = outcomeOf(ctx.req)
      const location = ctx.response.get('Location')
      if (!interaction || !location) return
      const { uid, remainingTTL } = interaction
      // Resolved as the provider resolves it for its own cookie.
      const page = new URL(location, provider().issuer).href
      const value = box.seal(JSON.stringify({ uid, page }), NAME)
      ctx.append('Set-Cookie', `${NAME}=${value}; Max-Age=${remainingTTL}; ${attributes}`)
    },

    /** Drops the cookie, once a link has finished the login and its client has the answer. */
    forget: (ctx: Context) => ctx.append('Set-Cookie', `${NAME}=; Max-Age=0; ${attributes}`),

    /** The address of the login page, if its login can still be finished here and is for this client and redirect URI. */
    async addressFor(ctx: Context, { clientId, redirectUri }: RequestParameters) {
      const opened = box.open(ctx.cookies.get(NAME, { signed: false }) ?? '', NAME)
      if (opened === undefined) return undefined
      const { uid, page }: { uid: string; page: string } = JSON.parse(opened)
      const interaction = await provider().Interaction.find(uid)
      if (interaction?.prompt.name !== 'login') return undefined
      const { params, session } = interaction
      if (params['client_id'] !== clientId || params['redirect_uri'] !== redirectUri)
        return undefined
      // The provider finishes a login only in the session that it began in, and a reset ends that session.
      const isOver = session && session.uid !== (await provider().Session.get(ctx)).uid
      return isOver ? undefined : page
    },
  }
}
