import type { AdapterPayload } from 'oidc-provider'
import type { DatedLogin, SeenCutoffs } from '../ports/login-end.ts'

/** Models whose records end with the cut-off of OAuth sessions. */
export const OAUTH_MODELS = [
  'Grant',
  'AccessToken',
  'AuthorizationCode',
  'RefreshToken',
  'DeviceCode',
  'BackchannelAuthenticationRequest',
  'PreAuthorizedCode',
]

/** Models whose records end with the cut-off of IdP sessions. */
export const IDP_MODELS = ['Session', 'Interaction']

/**
 * In results of logins, and beside what oidc-provider stores of sessions, grants, codes and tokens: the cut-offs before the login, and its
 * second.
 */
export const SEEN = 'accountFlowsSeen'

/** Whose a stored record of oidc-provider is, and of which login; what a cut-off is compared with. */
export interface AccountStamp extends DatedLogin {
  accountId: string
  kind: keyof SeenCutoffs
}

/** A login behind records, and what it has seen. */
export interface KnownLogin extends DatedLogin {
  seen: SeenCutoffs
}

/** `undefined`: the record belongs to no account, and no cut-off ends it. */
export function accountStamp(model: string, payload: AdapterPayload): AccountStamp | undefined {
  const { accountId, loginTs, result, lastSubmission, iat } = payload
  if (model === 'Interaction') {
    // A login result may be held back for as long as the interaction lives, before or behind the consent page.
    const login = result?.login ?? lastSubmission?.login
    if (!login) return undefined
    const { accountId, ts: second = iat } = login
    return { accountId, second, seen: seenOf(login).seen, kind: 'idp' }
  }
  if (accountId === undefined) return undefined
  const { second, seen } = seenOf(payload)
  return model === 'Session'
    ? { accountId, second: loginTs, seen, kind: 'idp' }
    : { accountId, second: earliest(second, oauthSecond(model, payload)), seen, kind: 'oauth' }
}

/** The record with the login that it comes from. */
export function withLogin(payload: AdapterPayload, { second, seen }: KnownLogin): AdapterPayload {
  return { ...payload, [SEEN]: { ...seen, second } }
}

function seenOf(record: object): DatedLogin {
  const { idp, oauth, second }: Partial<SeenCutoffs & DatedLogin> = Object(
    Reflect.get(record, SEEN),
  )
  return {
    second: typeof second === 'number' ? second : undefined,
    seen: typeof idp === 'number' && typeof oauth === 'number' ? { idp, oauth } : undefined,
  }
}

// Where nothing else tells, the earliest time is taken: rotation and exchange make a new iat. Of these two it is from before the login.
function oauthSecond(model: string, { iat, iiat, authTime }: AdapterPayload): number | undefined {
  const isPolled = model === 'DeviceCode' || model === 'BackchannelAuthenticationRequest'
  return isPolled ? (authTime ?? iat) : earliest(authTime, iiat, iat)
}

export function earliest(...seconds: (number | undefined)[]): number | undefined {
  const known = seconds.filter((second) => second !== undefined)
  return known.length > 0 ? Math.min(...known) : undefined
}
