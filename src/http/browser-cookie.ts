import type { IncomingMessage, ServerResponse } from 'node:http'
import { isToken, newToken } from '../crypto/token.ts'

export type BrowserCookie = ReturnType<typeof createBrowserCookie>

/**
 * A random value by which we recognise the browser that logged in. With `__Host-`, no other host can set it. It is `Lax`, because
 * the mail leads here from another site.
 */
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

    /** Gives the browser a value, or keeps its own. `forMs` is `undefined` if the login, and so the cookie, ends with the browser. */
    keep(req: IncomingMessage, res: ServerResponse, forMs: number | undefined): string {
      const value = read(req) ?? newToken()
      const maxAge = forMs === undefined ? '' : ` Max-Age=${Math.ceil(forMs / 1000)};`
      res.appendHeader('Set-Cookie', `${name}=${value};${maxAge} ${attributes}`)
      return value
    },

    /** Logins that wait in the windows of this browser cannot go on then. */
    drop: (res: ServerResponse) =>
      res.appendHeader('Set-Cookie', `${name}=; Max-Age=0; ${attributes}`),
  }
}
