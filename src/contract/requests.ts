/** What requests carry, who sent them, and which of them a host may deny. */

/**
 * The OAuth 2.0 parameters carried through the flows (4.2, 4.6, 4.7). An absent parameter and an empty one are two
 * different things: absent is no property at all.
 */
export interface RequestParameters {
  clientId?: string
  redirectUri?: string
  scope?: string
  state?: string
}

/** Request parameters that are genuine, and their client; or neither. */
export interface IdentifiedClient {
  parameters: RequestParameters
  client?: { clientName: string }
}

/** Who sent the request, for the audit log; and for the mail of the request, which language it asked for. */
export interface Requester {
  address: string | undefined
  userAgent: string | undefined
  /** `ui_locales` of the request. Kept with a mail job as far as it is language tags, 100 characters at most; never audited. */
  uiLocales?: string | undefined
  /** The tags of the header `Accept-Language`, best first, with commas between them. Kept likewise, and never audited. */
  acceptLanguage?: string | undefined
  /** An admin asked for the mail: neither language nor browser of the request are those of its reader. Never audited. */
  isAdmin?: boolean
}

/** A form that asks for a link and was checked to be one, before anything is done for it. */
export interface ForgotPasswordRequest {
  /** Which link: `password_reset` of forgot-password, or `email_verification` of resend-verification. */
  kind: 'password_reset' | 'email_verification'
  /** The username or the address, as typed: anybody may have typed anything. */
  identifier: string
  /** As carried, not checked. `undefined`: none. */
  clientId: string | undefined
  requester: Requester
  /** All other fields of the form, such as the answer to a captcha. */
  fields: ReadonlyMap<string, string>
}

/** A check of the host's own, such as a captcha. Anything but `'allow'` is a denial. It has 10 seconds to answer. */
export type BeforeForgotPassword = (
  request: ForgotPasswordRequest,
) => 'allow' | 'deny' | Promise<'allow' | 'deny'>

type ParameterName = 'client_id' | 'redirect_uri' | 'scope' | 'state'

/** The request parameters, and their names on the wire (4.6). */
export const REQUEST_PARAMETERS: readonly [field: keyof RequestParameters, name: ParameterName][] =
  [
    ['clientId', 'client_id'],
    ['redirectUri', 'redirect_uri'],
    ['scope', 'scope'],
    ['state', 'state'],
  ]

/** Appends the request parameters under their names on the wire; what is absent stays absent. */
export function appendParameters(
  query: URLSearchParams,
  parameters: RequestParameters,
): URLSearchParams {
  for (const [field, name] of REQUEST_PARAMETERS) {
    const value = parameters[field]
    if (value !== undefined) query.append(name, value)
  }
  return query
}

/** The query of the address of a form that goes on with them, in this language. */
export function formQuery(parameters: RequestParameters, uiLocales: string | undefined): string {
  const query = appendParameters(new URLSearchParams(), parameters)
  if (uiLocales !== undefined) query.append('ui_locales', uiLocales)
  return query.size > 0 ? `?${query.toString()}` : ''
}

/** Reads them out of a form, a query or a record; what is absent stays absent. */
export function parametersFrom(fields: {
  get(name: ParameterName): string | null | undefined
}): RequestParameters {
  const parameters: RequestParameters = {}
  for (const [field, name] of REQUEST_PARAMETERS) {
    const value = fields.get(name) ?? undefined
    if (value !== undefined) parameters[field] = value
  }
  return parameters
}

/** The four parameters that a link carries (4.6), out of the request that it will finish. */
export function parametersOf({ params }: { params: Record<string, unknown> }): RequestParameters {
  const textOf = (value: unknown) => (typeof value === 'string' ? value : undefined)
  return parametersFrom({ get: (name) => textOf(params[name]) })
}

/** Absent and empty are two different things. */
export function isSameRequest(a: RequestParameters, b: RequestParameters): boolean {
  return REQUEST_PARAMETERS.every(([field]) => a[field] === b[field])
}

/**
 * Why a link does nothing. `unknown`: nobody was ever given it; all others are told to those alone who hold the token. `superseded`: a
 * newer one took its place. `changed`: the account changed since.
 */
export type LinkReason = 'unknown' | 'expired' | 'used' | 'superseded' | 'changed'

/** Of verification links; all of an account's live side by side. `used`: the address is verified. */
export type VerificationReason = Exclude<LinkReason, 'superseded'>

/** What a verification link carries (4.6), as the forms that act on it repeat it. */
export interface VerificationLink {
  token: string
  parameters: RequestParameters
  authorizeSig: string
}
