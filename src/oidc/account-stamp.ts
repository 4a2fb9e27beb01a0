import type { AdapterPayload } from 'oidc-provider'
import type { DatedLogin, SeenCutoffs } from '../store/cutoffs.ts'

/** Models whose records the cut-off of OAuth sessions ends. */
export const OAUTH_MODELS = [
  'Grant',
  'AccessToken',
  'AuthorizationCode',
  'RefreshToken',
  'DeviceCode',
  'BackchannelAuthenticationRequest',
  'PreAuthorizedCode',
]

/** Models whose records the cut-off of IdP sessions ends. */
export const IDP_MODELS = ['Session', 'Interaction']

/** The field that we add to login results and to records of oidc-provider: the cut-offs that the login has seen, and its second. */
export const SEEN = 'accountFlowsSeen'

/** What decides whether a record of oidc-provider is ended: its account, its login, and the cut-off that ends it. */
export interface AccountStamp extends DatedLogin {
  accountId: string
  cutoff: keyof SeenCutoffs
}

/** A login of which it is known what it has seen. */
export interface KnownLogin extends DatedLogin {
  seen: SeenCutoffs
}

/** `undefined`: the record belongs to no account, and no cut-off ends it. */
export function accountStamp(model: string, payload: AdapterPayload): AccountStamp | undefined {
  const { accountId, loginTs, result, lastSubmission, iat } = payload
  if (model === 'Interaction') {
    // The login result may wait in it for as long as it lives, before or behind the consent page.
    const login = result?.login ?? lastSubmission?.login
    if (!login) return undefined
    const { accountId, ts: second = iat } = login
    return { accountId, second, seen: seenOf(login).seen, cutoff: 'idp' }
  }
  if (accountId === undefined) return undefined
  const { second, seen } = seenOf(payload)
  return model === 'Session'
    ? { accountId, second: loginTs, seen, cutoff: 'idp' }
    : { accountId, second: earliest(second, oauthSecond(model, payload)), seen, cutoff: 'oauth' }
}

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

// The earliest time, because rotation and exchange make a new `iat`. What is polled has an `iat` from before its login.
function oauthSecond(model: string, { iat, iiat, authTime }: AdapterPayload): number | undefined {
  const isPolled = model === 'DeviceCode' || model === 'BackchannelAuthenticationRequest'
  return isPolled ? (authTime ?? iat) : earliest(authTime, iiat, iat)
}

export function earliest(...seconds: (number | undefined)[]): number | undefined {
  const known = seconds.filter((second) => second !== undefined)
  return known.length > 0 ? Math.min(...known) : undefined
}
