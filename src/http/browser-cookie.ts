import type { IncomingMessage, ServerResponse } from 'node:http'
import { isToken, newToken } from '../crypto/token.ts'

export type BrowserCookie = ReturnType<typeof createBrowserCookie>

/**
 * One random value for each browser, by which the one that logged in is known again. `__Host-`: no other host can set it. Lax, because
 * the mail leads here from elsewhere.
 */
export function createBrowserCookie(isSecure: boolean) {
  const name = `${isSecure ? '__Host-' : ''}account_flows_browser`
  const attributes = `Path=/; HttpOnly; SameSite=Lax${isSecure ? '; Secure' : ''}`

  /** `undefined`: the browser sent none, or something else. */
  function read({ headers: { cookie = '' } }: IncomingMessage) {
    const pairs = cookie.split(';').map((pair) => pair.trim())
    const ours = pairs.filter((pair) => pair.startsWith(`${name}=`))
    return ours.map((pair) => pair.slice(name.length + 1)).find(isToken)
  }

  return {
    read,

    /**
     * Gives the browser a value, or keeps the one that it has, for as long as a login can wait. `undefined`: until the browser is
     * closed, for a login that is not to be remembered either.
     */
    keep(req: IncomingMessage, res: ServerResponse, forMs: number | undefined): string {
      const value = read(req) ?? newToken()
      const maxAge = forMs === undefined ? '' : ` Max-Age=${Math.ceil(forMs / 1000)};`
      res.appendHeader('Set-Cookie', `${name}=${value};${maxAge} ${attributes}`)
      return value
    },

    /** Takes the value from the browser: what waited in its windows goes on in none of them. */
    drop: (res: ServerResponse) =>
      res.appendHeader('Set-Cookie', `${name}=; Max-Age=0; ${attributes}`),
  }
}
