/** Access tokens for the mail server, from their token endpoint. They stay in memory; the refresh tokens are among the settings. */
import { timeout, type Clock } from '../../clock.ts'
import type { Log } from '../../contract/index.ts'
import { jsonOf, reachCodeOf, textOf } from '../../errors.ts'
import type { SettingsKeeper } from '../../settings/settings.ts'
import type { Settings } from '../../settings/table.ts'
import { defined } from '../../store/kind.ts'
import { isNoToken, noToken } from './answers.ts'

/** A token is renewed this long before its end, or after half of its life if that is short. */
const RENEW_BEFORE_MS = 60_000
const UNKNOWN_LIFE_MS = 300_000
const REQUEST_MS = 10_000
const MAX_ANSWER_BYTES = 65_536
/** The characters of a token (RFC 6749, appendix A): none of them can end the command that contains it. */
const TOKEN = /^[ -~]{1,16384}$/
const ERROR_CODE = /^\w{1,64}$/

export type AccessTokens = ReturnType<typeof createAccessTokens>

/** The tokens for one mailbox at one mail server: no other server gets them. One request runs at a time. */
export function createAccessTokens(clock: Clock, refreshTokens: RefreshTokens, settings: Settings) {
  let held: { token: string; renewAt: number } | undefined
  let asked: Promise<string> | undefined
  const now = () => clock.now().getTime()

  async function request(used: string | undefined) {
    const { signal, cancel } = timeout(clock, REQUEST_MS)
    const issued = await requestToken(settings, signal, used).finally(cancel)
    // Not every answer contains a new refresh token.
    if (used !== undefined) await refreshTokens.keep(used, issued.refreshToken ?? used)
    return issued
  }

  async function renewed(): Promise<string> {
    const used = refreshTokens.current(settings)
    const { token, lifeMs } = await request(used).catch(async (error: unknown) => {
      // Another process may have used the refresh token up a moment ago.
      const isUsedUp = isNoToken(error) && error.fault?.code.endsWith('invalid_grant')
      const latest =
        used !== undefined && isUsedUp ? await refreshTokens.latest(settings, used) : undefined
      if (latest === undefined || latest === used) throw error
      return request(latest)
    })
    held = { token, renewAt: now() + Math.max(lifeMs - RENEW_BEFORE_MS, lifeMs / 2) }
    return token
  }

  return {
    /** The held token, or a new one: also if the mail server rejected the held one. Throws `ERR_MAIL_FAILED`. */
    async get(rejected?: string): Promise<string> {
      if (held && held.token !== rejected && now() < held.renewAt) return held.token
      asked ??= renewed().finally(() => (asked = undefined))
      return asked
    },

    held: () => held?.token,
  }
}

export type RefreshTokens = ReturnType<typeof createRefreshTokens>

/** Some endpoints give a new refresh token with each access token. It is kept among the settings, sealed, for all processes. */
export function createRefreshTokens({ current, refresh, change }: SettingsKeeper, log: Log) {
  let unstored: { next: string; placeOf: string } | undefined

  function newest(used: Settings): string | undefined {
    const now = current()
    const isSame =
      now.smtpOauthTokenEndpoint === used.smtpOauthTokenEndpoint &&
      now.smtpOauthClientId === used.smtpOauthClientId
    const stored = (isSame ? now : used).smtpOauthRefreshToken
    return unstored && unstored.placeOf === stored ? unstored.next : stored
  }

  return {
    /** The newest one for this endpoint and client. `undefined`: there is none. */
    current: newest,

    /** As `current`, after a look at what another process has stored. */
    async latest(settings: Settings, refused: string): Promise<string | undefined> {
      if (unstored?.next === refused) unstored = undefined
      await refresh()
      return newest(settings)
    },

    /** Stores `next` in the place of `used`, if `used` is still in force. If that fails, the next call tries again. It never throws. */
    async keep(used: string, next: string): Promise<void> {
      const placeOf = unstored?.next === used ? unstored.placeOf : used
      const isPlaceLeft = () => current().smtpOauthRefreshToken === placeOf
      if (next === placeOf || !isPlaceLeft()) return
      unstored = { next, placeOf }
      // This runs with the stored settings in force. If an admin has set another token, that one stays.
      const announce = async () => {
        if (!isPlaceLeft()) throw new Error('replaced')
      }
      await change({ smtp_oauth_refresh_token: next }, { announce }).catch(() => {})
      if (!isPlaceLeft()) unstored = undefined
      else log('warn', 'a new refresh token could not be stored. This is tried again later')
    },
  }
}

export const endpointOf = ({ smtpOauthTokenEndpoint: endpoint }: Settings) =>
  endpoint && new URL(endpoint).host

/** Asks the token endpoint with a refresh token, or as the client itself. */
async function requestToken(settings: Settings, signal: AbortSignal, refreshToken?: string) {
  const { smtpOauthTokenEndpoint: endpoint = '', smtpOauthClientId: clientId = '' } = settings
  const { smtpOauthClientSecret: clientSecret, smtpOauthScope: scope } = settings
  const form = {
    grant_type: refreshToken === undefined ? 'client_credentials' : 'refresh_token',
    client_id: clientId,
    ...defined({ client_secret: clientSecret, refresh_token: refreshToken, scope }),
  }
  const body = new URLSearchParams(form)
  const headers = { Accept: 'application/json' }
  // The secrets are for this address only.
  const request = { method: 'POST', body, headers, redirect: 'manual', signal } as const
  const [status, text] = await fetch(endpoint, request)
    .then(async (answer) => [answer.status, await textOf(answer, MAX_ANSWER_BYTES)] as const)
    .catch((error: unknown) => {
      throw noToken(signal.aborted ? 'out of time' : reachCodeOf(error))
    })
  return issuedBy(status, jsonOf(text ?? ''), [clientSecret, refreshToken])
}

function issuedBy(status: number, json: unknown, sent: (string | undefined)[]) {
  const said: Record<string, unknown> = Object(json)
  const { access_token: token, token_type: type = 'Bearer', expires_in: seconds } = said
  const { refresh_token: refreshToken, error } = said
  if (typeof error === 'string' && ERROR_CODE.test(error) && !repeats(error, sent)) {
    throw noToken(`${status} ${error}`)
  }
  if (status !== 200) throw noToken(String(status))
  if (said !== json) throw noToken('not JSON')
  if (!isToken(token)) throw noToken('no token in it')
  if (typeof type !== 'string' || type.toLowerCase() !== 'bearer') {
    throw noToken('another kind of token')
  }
  const lifeMs = Number(seconds) * 1_000
  return {
    token,
    lifeMs: lifeMs > 0 && lifeMs < Infinity ? lifeMs : UNKNOWN_LIFE_MS,
    // `undefined`: the used one stays.
    refreshToken: isToken(refreshToken) ? refreshToken : undefined,
  }
}

/** Whether an error code is a secret or a part of one, so that it must stay hidden. */
function repeats(code: string, secrets: (string | undefined)[]): boolean {
  const words = secrets.flatMap((secret) => secret?.replaceAll(/\W/g, '') || [])
  return words.some((secret) => secret.includes(code) || code.includes(secret))
}

const isToken = (value: unknown): value is string => typeof value === 'string' && TOKEN.test(value)
