import { jsonOf, reachCodeOf, textOf } from '../../errors.ts'
import type { OAuthSettings } from './settings.ts'

const MAX_ANSWER_BYTES = 65_536
/** What may be in a token (RFC 6749, appendix A): it cannot end the command that it is sent in. */
const TOKEN = /^[ -~]{1,16384}$/
const ERROR_CODE = /^\w{1,64}$/

export interface IssuedToken {
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
export async function requestToken(
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
): IssuedToken {
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
