import type { AdapterPayload } from 'oidc-provider'

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

/** Beside what oidc-provider stores of grants, codes and tokens: the second of the login that they come from. */
export const LOGIN_SECOND = 'accountFlowsLoginAt'

/** Whose a stored record of oidc-provider is, and since which second; what a cut-off is compared with. */
export interface AccountStamp {
  accountId: string
  /** The second of the login behind the record; `undefined` in a record that does not tell: any cut-off ends it. */
  second: number | undefined
  kind: 'idp' | 'oauth'
}

/** `undefined`: the record belongs to no account, and no cut-off ends it. */
export function accountStamp(model: string, payload: AdapterPayload): AccountStamp | undefined {
  if (model === 'Interaction') return interactionStamp(payload)
  const { accountId } = payload
  if (accountId === undefined) return undefined
  return model === 'Session'
    ? { accountId, second: payload.loginTs, kind: 'idp' }
    : { accountId, second: oauthSecond(model, payload), kind: 'oauth' }
}

// A login result may be held back for as long as the interaction lives, before or behind the consent page.
function interactionStamp({ result, lastSubmission, iat }: AdapterPayload) {
  const login = result?.login ?? lastSubmission?.login
  return login && { accountId: login.accountId, second: login.ts ?? iat, kind: 'idp' as const }
}

// Of what was made outside a request, or before this was noted, the earliest time is taken: rotation and exchange make a new iat.
function oauthSecond(model: string, payload: AdapterPayload): number | undefined {
  const { iat, iiat, authTime } = payload
  const login: unknown = Reflect.get(payload, LOGIN_SECOND)
  if (typeof login === 'number') return login
  switch (model) {
    case 'AuthorizationCode':
      return earliest(authTime, iat)
    case 'RefreshToken':
      return earliest(authTime, iiat, iat)
    case 'DeviceCode':
    case 'BackchannelAuthenticationRequest':
      return authTime ?? iat
    default:
      return iat
  }
}

function earliest(...seconds: (number | undefined)[]): number | undefined {
  const known = seconds.filter((second) => second !== undefined)
  return known.length > 0 ? Math.min(...known) : undefined
}
