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

/** Beside what oidc-provider stores: the second in which the request that made a grant or an access token arrived. */
export const REQUEST_SECOND = 'accountFlowsRequestedAt'

/** Whose a stored record of oidc-provider is, and since which second; what a cut-off is compared with (D9). */
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

// Rotation and exchange make a new iat; the login behind it stays as old as it was.
function oauthSecond(model: string, payload: AdapterPayload): number | undefined {
  const { iat, iiat, authTime } = payload
  const requestedAt: unknown = Reflect.get(payload, REQUEST_SECOND)
  switch (model) {
    case 'AuthorizationCode':
      return earliest(authTime, iat)
    case 'RefreshToken':
      return earliest(authTime, iiat, iat)
    case 'DeviceCode':
    case 'BackchannelAuthenticationRequest':
      return authTime ?? iat
    default:
      return earliest(iat, typeof requestedAt === 'number' ? requestedAt : undefined)
  }
}

function earliest(...seconds: (number | undefined)[]): number | undefined {
  const known = seconds.filter((second) => second !== undefined)
  return known.length > 0 ? Math.min(...known) : undefined
}
