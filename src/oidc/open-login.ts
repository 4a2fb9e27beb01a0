import type { Context, Next } from 'koa'
import type { Provider } from 'oidc-provider'
import type { SecretBox } from '../crypto/secret-box.ts'
import type { CarriedParameters } from '../ports/index.ts'
import { outcomeOf } from './provider-answers.ts'

const NAME = 'account_flows_login'

export type OpenLogin = ReturnType<typeof createOpenLogin>

/**
 * The login page that this browser was sent to last. Browsers send the cookies of the provider only to that page, which belongs
 * to the host. So our own cookie keeps its address for the end of a reset. It is sealed: nobody else can choose where it leads.
 *
 * @param sentTo - the only address that is told of it; with https, the cookie is `Secure`.
 */
export function createOpenLogin(provider: () => Provider, box: SecretBox, sentTo: string) {
  const { protocol, pathname } = new URL(sentTo)
  const attributes = `Path=${pathname}; HttpOnly; SameSite=Lax${protocol === 'https:' ? '; Secure' : ''}`

  function noted(ctx: Context): { uid: string; page: string } | undefined {
    const opened = box.open(ctx.cookies.get(NAME, { signed: false }) ?? '', NAME)
    return opened === undefined ? undefined : JSON.parse(opened)
  }

  return {
    /** Middleware: notes where the provider leads a browser for an interaction. */
    async watch(ctx: Context, next: Next) {
      await next()
      const { interaction } = outcomeOf(ctx.req)
      const location = ctx.response.get('Location')
      // An answer that was withdrawn leads nowhere.
      if (!interaction || !location) return
      const { uid, remainingTTL } = interaction
      // As the provider resolves it for its own cookie.
      const page = new URL(location, provider().issuer).href
      const value = box.seal(JSON.stringify({ uid, page }), NAME)
      ctx.append('Set-Cookie', `${NAME}=${value}; Max-Age=${remainingTTL}; ${attributes}`)
    },

    /** Forgets it: a link has finished a login here, and its client has had the answer. */
    forget: (ctx: Context) => ctx.append('Set-Cookie', `${NAME}=; Max-Age=0; ${attributes}`),

    /**
     * Address of that page, where the login still waits and is for this client and redirect URI. `undefined`: there is none that could
     * still be finished here.
     */
    async pageFor(
      ctx: Context,
      { clientId, redirectUri }: CarriedParameters,
    ): Promise<string | undefined> {
      const login = noted(ctx)
      const interaction = login && (await provider().Interaction.find(login.uid))
      if (interaction?.prompt.name !== 'login') return undefined
      const { params, session } = interaction
      if (params['client_id'] !== clientId || params['redirect_uri'] !== redirectUri) {
        return undefined
      }
      // The provider finishes it in the session alone that it was begun in, and a reset ends that of its account.
      const isOver = session && session.uid !== (await provider().Session.get(ctx)).uid
      return isOver ? undefined : login?.page
    },
  }
}
