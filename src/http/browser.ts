/** What a request says of its browser: the cookie of logins that wait, and whether a person pressed the button or sees the answer. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Context } from 'koa'
import { isToken, newToken } from '../crypto/token.ts'
import type { Fields } from './input.ts'

export type BrowserCookie = ReturnType<typeof createBrowserCookie>

// By this random value we know the browser that logged in. With `__Host-`, no other host can set it. It is `Lax`, because the mail leads
// here from another site.
export function createBrowserCookie(isSecure: boolean) {
  const name = `${isSecure ? '__Host-' : ''}account_flows_browser`
  const attributes = `Path=/; HttpOnly; SameSite=Lax${isSecure ? '; Secure' : ''}`

  function read({ headers: { cookie = '' } }: IncomingMessage) {
    const pairs = cookie.split(';').map((pair) => pair.trim())
    const ours = pairs.filter((pair) => pair.startsWith(`${name}=`))
    return ours.map((pair) => pair.slice(name.length + 1)).find(isToken)
  }

  return {
    read,

    /** Gives the browser a value, or keeps its own. `forMs`: `undefined` if the cookie ends with the browser. */
    keep(req: IncomingMessage, res: ServerResponse, forMs: number | undefined): string {
      const value = read(req) ?? newToken()
      const maxAge = forMs === undefined ? '' : ` Max-Age=${Math.ceil(forMs / 1000)};`
      res.appendHeader('Set-Cookie', `${name}=${value};${maxAge} ${attributes}`)
      return value
    },

    /** After that, no login that waits in this browser can go on. */
    drop: (res: ServerResponse) =>
      res.appendHeader('Set-Cookie', `${name}=; Max-Age=0; ${attributes}`),
  }
}

// Whether a person pressed the button, and no script (decision 0045). Chrome and Firefox send `Sec-Fetch-User` only for a person. Safari
// never sends it, and over plain http no browser does. There, a script passes too.
export function isPressed(ctx: Context, form: Fields): boolean {
  if (!form.has('action')) return false
  const isSent =
    ctx.get('Sec-Fetch-Site') !== '' && /(Chrome|Firefox)\//.test(ctx.get('User-Agent'))
  return !isSent || ctx.get('Sec-Fetch-User') === '?1'
}

/** Whether no person sees the answer: HEAD, a prefetch, or a request for something other than a page. */
export function isUnattended(ctx: Context): boolean {
  if (ctx.method === 'HEAD') return true
  const purposes = ['Sec-Purpose', 'Purpose', 'X-Moz'].map((name) => ctx.get(name))
  if (purposes.some((purpose) => /prefetch|prerender|preview/i.test(purpose))) return true
  const destination = ctx.get('Sec-Fetch-Dest')
  return destination !== '' && destination !== 'document'
}
