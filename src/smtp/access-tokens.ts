import { timeout, type Clock } from '../clock.ts'
import type { OAuthSettings } from './settings.ts'
import { requestToken, TokenError, type IssuedToken } from './token-request.ts'

/** A token is renewed so long before its end, or after half of its life where that is short. */
const RENEW_BEFORE_MS = 60_000
/** Where the endpoint does not say how long a token is good. */
const UNKNOWN_LIFE_MS = 300_000
const REQUEST_MS = 10_000

/** Where refresh tokens are kept: some endpoints give a new one with each access token. */
export interface RefreshTokens {
  /** The one in force for this endpoint and client. `undefined`: there is none. */
  current(oauth: OAuthSettings): string | undefined
  /** As `current`, after a look at what another process stored meanwhile. */
  latest(oauth: OAuthSettings): Promise<string | undefined>
  /** Stores `next` in the place of `stored`, where that is stored still. It never throws. */
  keep(stored: string, next: string): Promise<void>
}

export type AccessTokens = ReturnType<typeof createAccessTokens>

/** Holds the newest token in memory, and nowhere else. One request is under way at a time. */
export function createAccessTokens(clock: Clock, refreshTokens: RefreshTokens) {
  let held: { key: string; token: string; renewAt: number } | undefined
  let asked: { key: string; token: Promise<string> } | undefined
  /** The newest refresh token, until it is stored. */
  let rotated: { stored: string; newest: string } | undefined
  const now = () => clock.now().getTime()

  async function request(oauth: OAuthSettings, used?: string, stored = used): Promise<IssuedToken> {
    const { signal, cancel } = timeout(clock, REQUEST_MS)
    const issued = await requestToken(oauth, used, signal).finally(cancel)
    // Not every answer brings a new one, and the last one may not be stored yet.
    const newest = issued.refreshToken ?? used
    if (stored === undefined || newest === undefined || newest === stored) return issued
    rotated = { stored, newest }
    await refreshTokens.keep(stored, newest)
    if (refreshTokens.current(oauth) !== stored) rotated = undefined
    return issued
  }

  // Another process may have used it up a moment ago.
  async function requestAgain(oauth: OAuthSettings, used: string | undefined, error: unknown) {
    const isUsedUp = error instanceof TokenError && error.why.endsWith('invalid_grant')
    const latest = used !== undefined && isUsedUp ? await refreshTokens.latest(oauth) : undefined
    if (latest === undefined || latest === used) throw error
    return request(oauth, latest)
  }

  async function renewed(oauth: OAuthSettings, key: string): Promise<string> {
    const stored = refreshTokens.current(oauth)
    const used = rotated && rotated.stored === stored ? rotated.newest : stored
    const issued = await request(oauth, used, stored).catch((error: unknown) =>
      requestAgain(oauth, used, error),
    )
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
