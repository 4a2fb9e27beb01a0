import type { LinkReason, VerificationLink, VerificationReason } from '../contract/requests.ts'
import type {
  RequestParameters,
  ReportOutcome,
  PasswordRefusal,
  ReasonWords,
} from '../contract/index.ts'

/** A client that a page names: registered, and genuine for the request that the page is part of. */
export interface ShownClient {
  clientName: string
  /** An image that the client registered, if it is on our own origin. */
  logo?: string | undefined
  /**
   * Where a login to it starts again. The page leaves it out unless it is http, https, or a private-use scheme such as `com.example.app:`.
   */
  href?: string | undefined
}

/** Names of apps, and how many more there are. */
export type ShownApps = { names: string[]; more: number }

/** The apps that the user was signed in to. Those in `notified` are notified, and sign the user out. The others are not. */
export type SignedOutApps = Record<'notified' | 'notNotified', ShownApps>

/**
 * Why a login still waits. `not_yet`: no code was typed, and the address is not verified. `unread`: not six digits were typed. `too_many`:
 * no code is compared for `waitMs` milliseconds.
 */
export type CodeFault =
  { reason: 'not_yet' | 'unread' | 'wrong' } | { reason: 'too_many'; waitMs: number }

/** A page whose forms carry the request on. */
interface Carries {
  parameters: RequestParameters
}

/** The user asked for a mail. */
export interface Sent {
  mode: 'sent'
  /** What the user typed. The page does not show it. */
  typed?: string | undefined
  /** The user asked by one click, in place of an expired link. */
  isRenewed?: boolean
  /** Milliseconds until the user may ask for another mail. */
  waitMs?: number | undefined
}

type ForgotPassword = Carries & ({ mode: 'form' | 'invalid' } | Sent)

export type ResetFormMode = 'form' | PasswordRefusal

export interface ResetFaults {
  /** What else is wrong: passwords that differ can also be too short or too long. */
  also?: Exclude<ResetFormMode, 'form'> | undefined
  /** By how many characters the password is too long. */
  excess?: number | undefined
  /** The words of the host's own check. */
  hostReason?: ReasonWords | undefined
}

type ResetPassword =
  | (ResetFaults & { mode: ResetFormMode; token: string; minLength: number; maxLength: number })
  /** `renew`: the token, if one click sends a new link. */
  | (Carries & { mode: 'invalid'; reason: LinkReason; renew?: string | undefined })
  /** `apps`: the apps that the user was signed in to, if they are known. */
  | { mode: 'done'; apps?: SignedOutApps | undefined }

/** `sent`: the user asked by one click, in place of an expired invitation. */
type AcceptInvitation = ResetPassword | Sent

/** The page of a login that waits. */
interface Blocked extends Carries {
  mode: 'blocked'
  username: string
  /** Where the mail goes; the page shows it masked. `undefined`: the account has no address. */
  sentTo?: string | undefined
  lifetimeMs: number
  /** The id of the login, which is of no use without the cookie of this browser. `undefined`: no code can be typed. */
  waiting?: string | undefined
  /** Milliseconds until the user may ask for another mail. */
  waitMs?: number | undefined
  fault?: CodeFault | undefined
}

/** The link was opened in a browser where no login of its account waits. Nothing is verified. */
interface Elsewhere {
  mode: 'elsewhere'
  username: string
  /** The code for the page that waits. `undefined`: its login does not wait any more. */
  code?: string | undefined
  /** When that login began. */
  at?: Date | undefined
  /** For how many milliseconds no code is compared. */
  waitMs?: number | undefined
}

/**
 * `invalid`: the user typed no name. `confirm`: the link was fetched ahead, and the button opens it. `other_account`: another account is
 * signed in here, and nothing is verified. `signed_in`: the login went on in another window of this browser. `ended`: the login is over. Or
 * it is no login of this browser, and then there is no client.
 */
type VerifyEmail =
  | Blocked
  | Elsewhere
  /** `renew`: the link, if one click sends a new one. */
  | (Carries & {
      mode: 'expired'
      reason: VerificationReason
      renew?: VerificationLink | undefined
    })
  | (Sent & { waiting?: string | undefined })
  | (Carries & { mode: 'invalid'; waiting?: string | undefined })
  | { mode: 'confirm'; link: VerificationLink }
  | { mode: 'verified' | 'other_account' | 'signed_in' | 'ended' }

/** The same for all mails and accounts. `isNotYet`: a script sent the form, so the user has to press its button. */
type NotMe =
  | { mode: 'confirm'; token: string; isNotYet?: boolean }
  /** What was done. With `parameters`, a new password can be the next step. Without them, support has to help. */
  | { mode: ReportOutcome; parameters?: RequestParameters }
  | { mode: 'invalid'; reason: 'unknown' }

/** Pages for requests that have no other answer, and their status. */
export const ERROR_STATUS = {
  refused: 403,
  not_found: 404,
  method_not_allowed: 405,
  unsupported_media_type: 415,
  body_too_large: 413,
  bad_request: 400,
  request_too_long: 400,
  too_many_requests: 429,
  unavailable: 503,
  error: 500,
}

export type ErrorMode = keyof typeof ERROR_STATUS

interface Needed {
  'forgot-password': ForgotPassword
  'reset-password': ResetPassword
  'accept-invitation': AcceptInvitation
  'verify-email': VerifyEmail
  'not-me': NotMe
  error: { mode: ErrorMode }
}

/** What each page needs, by its `data-page`; `mode` is its `data-mode`. It may name the client of its request. */
export type PageLocals = {
  [N in keyof Needed]: Needed[N] & { client?: ShownClient | undefined }
}

export type PageName = keyof PageLocals
