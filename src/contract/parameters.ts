/** The parameters of requests, who sent a request, and which ones a host may deny. */

/** The OAuth 2.0 parameters that the flows carry (4.2, 4.6, 4.7). An absent parameter has no property; an empty one is an empty text. */
export interface RequestParameters {
  clientId?: string
  redirectUri?: string
  scope?: string
  state?: string
}

/** Genuine request parameters and their client; or neither. */
export interface IdentifiedClient {
  parameters: RequestParameters
  client?: { clientName: string }
}

/** The sender of the request, for the audit log, and the languages for its mail. */
export interface Requester {
  address: string | undefined
  userAgent: string | undefined
  /** `ui_locales` of the request. A mail job keeps its language tags, at most 100 characters. It is never audited. */
  uiLocales?: string | undefined
  /** The tags of the header `Accept-Language`, best first, with commas between them. Kept in the same way, and never audited. */
  acceptLanguage?: string | undefined
  /** Whether an admin asked for the mail. Then the request shows neither language nor browser of the reader. Never audited. */
  isAdmin?: boolean
}

/** Where no browser is behind a request, or its browser is not known any more. */
export const NOBODY: Requester = { address: undefined, userAgent: undefined }

/** A checked form that asks for a link, before anything is done for it. */
export interface ForgotPasswordRequest {
  /** Which link: `password_reset` of forgot-password, or `email_verification` of resend-verification. */
  kind: 'password_reset' | 'email_verification'
  /** The username or the address as typed. A stranger may have typed any text. */
  identifier: string
  /** As sent, without a check. `undefined`: the form has none. */
  clientId: string | undefined
  requester: Requester
  /** All other fields of the form, such as the answer to a captcha. */
  fields: ReadonlyMap<string, string>
}

/** A check of the host's own, such as a captcha. Any answer except `'allow'` is a denial. It has 10 seconds to answer. */
export type BeforeForgotPassword = (
  request: ForgotPasswordRequest,
) => 'allow' | 'deny' | Promise<'allow' | 'deny'>

/** The request parameters, and their names on the wire (4.6). */
export const REQUEST_PARAMETERS = [
  ['clientId', 'client_id'],
  ['redirectUri', 'redirect_uri'],
  ['scope', 'scope'],
  ['state', 'state'],
] as const

/** Appends the request parameters under their names on the wire. */
export function appendParameters(query: URLSearchParams, parameters: RequestParameters) {
  for (const [field, name] of REQUEST_PARAMETERS) {
    const value = parameters[field]
    if (value !== undefined) query.append(name, value)
  }
  return query
}

/** The query of the address of a form that continues with these parameters, in this language. */
export function formQuery(parameters: RequestParameters, uiLocales: string | undefined): string {
  const query = appendParameters(new URLSearchParams(), parameters)
  if (uiLocales !== undefined) query.append('ui_locales', uiLocales)
  return query.size > 0 ? `?${query.toString()}` : ''
}

/** Reads the parameters from a form, a query or a record. */
export function parametersFrom(fields: {
  get(name: (typeof REQUEST_PARAMETERS)[number][1]): string | null | undefined
}): RequestParameters {
  const parameters: RequestParameters = {}
  for (const [field, name] of REQUEST_PARAMETERS) {
    const value = fields.get(name) ?? undefined
    if (value !== undefined) parameters[field] = value
  }
  return parameters
}

/** The four parameters that a link carries (4.6), from the request that it will finish. */
export function parametersOf({ params }: { params: Record<string, unknown> }): RequestParameters {
  const textOf = (value: unknown) => (typeof value === 'string' ? value : undefined)
  return parametersFrom({ get: (name) => textOf(params[name]) })
}

export function isSameRequest(a: RequestParameters, b: RequestParameters): boolean {
  return REQUEST_PARAMETERS.every(([field]) => a[field] === b[field])
}

/**
 * Why a link does nothing. `unknown`: this link was never sent. Only the holder of the token learns any other reason. `superseded`: a newer
 * one took its place. `changed`: the account has changed since.
 */
export type LinkReason = 'unknown' | 'expired' | 'used' | 'superseded' | 'changed'

/**
 * The reasons for verification links. All links of an account are valid side by side. `used`: the address is verified. `taken`: another
 * account has the address that the user typed.
 */
export type VerificationReason = Exclude<LinkReason, 'superseded'> | 'taken'
