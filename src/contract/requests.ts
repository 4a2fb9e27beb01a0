/**
 * The OAuth 2.0 parameters carried through the flows (4.2, 4.6, 4.7). An absent parameter and an empty one are two
 * different things: absent is no property at all.
 */
export interface CarriedParameters {
  clientId?: string
  redirectUri?: string
  scope?: string
  state?: string
}

/** Carried parameters that are genuine, and their client; or neither. */
export interface IdentifiedClient {
  carried: CarriedParameters
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

/**
 * The place of a request in time. Of two requests for a mail the later one wins, in any order of the mails. Within one
 * millisecond the ids decide. Of one request the later attempt wins: a worker that lost the job cannot undo what its successor
 * did.
 */
export interface RequestOrder {
  /** Time of the database. */
  requestedAt: Date
  mailJobId: string
  /** 0: before any attempt. */
  attempt: number
}

/** A form that asks for a link and was judged to be one, before anything is done for it. */
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
