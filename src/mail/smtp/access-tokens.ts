/** Access tokens for the mail server: held in memory, asked for at the token endpoint by refresh tokens, which are among the settings. */
import { timeout, type Clock } from '../../clock.ts'
import type { Log } from '../../contract/index.ts'
import { jsonOf, reachCodeOf, textOf } from '../../errors.ts'
import type { SettingsKeeper } from '../../settings/settings.ts'
import type { OAuthSettings } from './settings.ts'

/** A token is renewed so long before its end, or after half of its life where that is short. */
const RENEW_BEFORE_MS = 60_000
/** Where the endpoint does not say how long a token is good. */
const UNKNOWN_LIFE_MS = 300_000
const REQUEST_MS = 10_000
const MAX_ANSWER_BYTES = 65_536
/** What may be in a token (RFC 6749, appendix A): it cannot end the command that it is sent in. */
const TOKEN = /^[ -~]{1,16384}$/
const ERROR_CODE = /^\w{1,64}$/

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

    /** The token that is held. */
    held: () => held?.token,
  }
}

/** A new refresh token is no reason for another access token: each of many processes would make one for all others. */
export function tokenKey(oauth: OAuthSettings): string {
  return JSON.stringify({ ...oauth, refreshToken: undefined })
}

/** Keeps the newest refresh token among the settings, sealed, for all processes. */
export function createRefreshTokens(
  { current, refresh, change }: Pick<SettingsKeeper, 'current' | 'refresh' | 'change'>,
  log: Log,
): RefreshTokens {
  let unstored: { next: string; placeOf: string } | undefined

  function newest({ endpoint, clientId, refreshToken }: OAuthSettings): string | undefined {
    const { smtpOauthTokenEndpoint, smtpOauthClientId, smtpOauthRefreshToken } = current()
    const isSame = smtpOauthTokenEndpoint === endpoint && smtpOauthClientId === clientId
    const stored = isSame ? smtpOauthRefreshToken : refreshToken
    return unstored && unstored.placeOf === stored ? unstored.next : stored
  }

  return {
    current: newest,

    async latest(oauth) {
      // The provider has refused it, or never gave it out.
      unstored = undefined
      await refresh()
      return newest(oauth)
    },

    async keep(used, next) {
      const placeOf = unstored?.next === used ? unstored.placeOf : used
      const isPlaceLeft = () => current().smtpOauthRefreshToken === placeOf
      if (next === placeOf || !isPlaceLeft()) return
      unstored = { next, placeOf }
      // It is called with what is stored in force. An admin who set another one meant that.
      const announce = async () => {
        if (!isPlaceLeft()) throw new Error('replaced')
      }
      await change({ smtp_oauth_refresh_token: next }, { announce }).catch(() => {})
      if (!isPlaceLeft()) unstored = undefined
      else log('warn', 'a new refresh token could not be stored. This is tried again later')
    },
  }
}

interface IssuedToken {
  token: string
  /** `undefined`: the endpoint did not say. */
  lifeMs: number | undefined
  /** Takes the place of the one that was used. `undefined`: that stays. */
  refreshToken: string | undefined
}

/** No access token came. `why` is short, and never what the endpoint wrote, but for the code of its error. */
export class TokenError extends Error {
  readonly why: string

  constructor(why: string) {
    super(`No access token came (${why})`)
    this.name = 'TokenError'
    this.why = why
  }
}

/** Asks the token endpoint: by refresh token, or as the client itself. Throws a `TokenError`. */
async function requestToken(
  { endpoint, clientId, clientSecret, scope }: OAuthSettings,
  refreshToken: string | undefined,
  signal: AbortSignal,
): Promise<IssuedToken> {
  const form = {
    grant_type: refreshToken === undefined ? 'client_credentials' : 'refresh_token',
    client_id: clientId,
    ...(clientSecret !== undefined && { client_secret: clientSecret }),
    ...(refreshToken !== undefined && { refresh_token: refreshToken }),
    ...(scope !== undefined && { scope }),
  }
  let answer: { status: number; text: string }
  try {
    const response = await fetch(endpoint, {
      method: 'POST',
      body: new URLSearchParams(form),
      headers: { Accept: 'application/json' },
      // The secrets are for this address alone.
      redirect: 'manual',
      signal,
    })
    answer = { status: response.status, text: (await textOf(response, MAX_ANSWER_BYTES)) ?? '' }
  } catch (error) {
    throw new TokenError(signal.aborted ? 'out of time' : reachCodeOf(error))
  }
  return issuedBy(answer, [clientSecret, refreshToken])
}

function issuedBy(
  { status, text }: { status: number; text: string },
  sent: (string | undefined)[],
) {
  const json = jsonOf(text)
  const said: Record<string, unknown> = Object(json)
  const { access_token: token, token_type: type = 'Bearer', expires_in: seconds } = said
  const { refresh_token: refreshToken, error } = said
  if (typeof error === 'string' && ERROR_CODE.test(error) && !repeats(error, sent)) {
    throw new TokenError(`${status} ${error}`)
  }
  if (status !== 200) throw new TokenError(String(status))
  if (typeof json !== 'object' || json === null) throw new TokenError('not JSON')
  if (!isToken(token)) throw new TokenError('no token in it')
  if (typeof type !== 'string' || type.toLowerCase() !== 'bearer') {
    throw new TokenError('another kind of token')
  }
  const life = Number(seconds)
  return {
    token,
    lifeMs: seconds !== undefined && life > 0 && life < Infinity ? life * 1000 : undefined,
    refreshToken: isToken(refreshToken) ? refreshToken : undefined,
  }
}

/** A code that is a secret, or a part of one, is not told. */
function repeats(code: string, secrets: (string | undefined)[]): boolean {
  const words = secrets.flatMap((secret) => secret?.replaceAll(/\W/g, '') || [])
  return words.some((secret) => secret.includes(code) || code.includes(secret))
}

const isToken = (value: unknown): value is string => typeof value === 'string' && TOKEN.test(value)
