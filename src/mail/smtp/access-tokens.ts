import { timeout, type Clock } from '../../clock.ts'
import type { OAuthSettings } from './settings.ts'
import { requestToken, TokenError, type IssuedToken } from './token-request.ts'

/** A token is renewed so long before its end, or after half of its life where that is short. */
const RENEW_BEFORE_MS = 60_000
/** Where the endpoint does not say how long a token is good. */
const UNKNOWN_LIFE_MS = 300_000
const REQUEST_MS = 10_000

/** Where refresh tokens are kept: some endpoints give a new one with each access token. */
export interface RefreshTokens {
  /** The newest one for this endpoint and client. `undefined`: there is none. */
  current(oauth: OAuthSettings): string | undefined
  /** As `current`, after a look at what another process stored meanwhile. */
  latest(oauth: OAuthSettings): Promise<string | undefined>
  /** Stores `next` in the place of `used`, where that is in force still; if it cannot be stored, with the next call. It never throws. */
  keep(used: string, next: string): Promise<void>
}

export type AccessTokens = ReturnType<typeof createAccessTokens>

/** Holds the newest token in memory, and nowhere else. One request is under way at a time. */
export function createAccessTokens(clock: Clock, refreshTokens: RefreshTokens) {
  let held: { key: string; token: string; renewAt: number } | undefined
  let asked: { key: string; token: Promise<string> } | undefined
  const now = () => clock.now().getTime()

  async function request(oauth: OAuthSettings, used: string | undefined): Promise<IssuedToken> {
    const { signal, cancel } = timeout(clock, REQUEST_MS)
    const issued = await requestToken(oauth, used, signal).finally(cancel)
    // Not every answer brings a new one.
    if (used !== undefined) await refreshTokens.keep(used, issued.refreshToken ?? used)
    return issued
  }

  async function renewed(oauth: OAuthSettings, key: string): Promise<string> {
    const used = refreshTokens.current(oauth)
    const issued = await request(oauth, used).catch(async (error: unknown) => {
      // Another process may have used it up a moment ago.
      const isUsedUp = error instanceof TokenError && error.why.endsWith('invalid_grant')
      const latest = used !== undefined && isUsedUp ? await refreshTokens.latest(oauth) : undefined
      if (latest === undefined || latest === used) throw error
      return request(oauth, latest)
    })
    const { token, lifeMs = UNKNOWN_LIFE_MS } = issued
    held = { key, token, renewAt: now() + Math.max(lifeMs - RENEW_BEFORE_MS, lifeMs / 2) }
    return token
  }

  return {
    /**
     * A token for the mail server: the one that is held, or a new one. Throws a `TokenError`; a request takes 10 seconds at most.
     *
     * @param rejected - the mail server did not take this one.
     */
    async get(oauth: OAuthSettings, rejected?: string) {
      const key = tokenKey(oauth)
      if (held?.key === key && held.token !== rejected && now() < held.renewAt) {
        return { token: held.token, isHeld: true }
      }
      if (asked?.key !== key) {
        const token = renewed(oauth, key).finally(() => {
          if (asked?.token === token) asked = undefined
        })
        asked = { key, token }
      }
      return { token: await asked.token, isHeld: false }
    },
  }
}

/** A new refresh token is no reason for another access token: each of many processes would make one for all others. */
export function tokenKey(oauth: OAuthSettings): string {
  return JSON.stringify({ ...oauth, refreshToken: undefined })
}
