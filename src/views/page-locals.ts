import type { LinkReason, VerificationLink, VerificationReason } from '../ports/links.ts'
import type {
  CarriedParameters,
  DisownedOutcome,
  PasswordRefusal,
  ReasonWords,
} from '../ports/index.ts'

/** A client that a page names: registered, and genuine for the request that the page is part of. */
export interface ShownClient {
  clientName: string
  /** An image that the client registered, on our own origin; of any other nothing is loaded. `undefined`: none. */
  logo?: string | undefined
  /**
   * Where a login to it begins anew. Left out of the page unless it is http, https, or a private-use scheme such as
   * `com.example.app:`. `undefined`: this page leads nowhere.
   */
  href?: string | undefined
}

/** Names of apps, and how many there are besides. */
export type ShownApps = { names: string[]; more: number }

/** The apps that the person was signed in to. Those in `told` are told to sign the person out, or were. Nobody tells the others. */
export type SignedOutApps = Record<'told' | 'untold', ShownApps>

/**
 * Why the page of a login waits still. `not_yet`: no code was typed, and the address is not verified. `unread`: not six digits were
 * typed. `too_many`: no code is compared for `waitMs` milliseconds.
 */
export type CodeFault =
  { reason: 'not_yet' | 'unread' | 'wrong' } | { reason: 'too_many'; waitMs: number }

/** A page whose forms go on with the request. */
interface Carries {
  carried: CarriedParameters
}

/** A mail was asked for. */
export interface Sent {
  mode: 'sent'
  /** What was typed. `undefined`: nothing was. It is not shown. */
  typed?: string | undefined
  /** At one click, in the place of a link that expired: nothing was typed. */
  isRenewed?: boolean
  /** Until another mail may be asked for. `undefined`: at any time. */
  waitMs?: number | undefined
}

type ForgotPassword = Carries & ({ mode: 'form' | 'invalid' } | Sent)

export type ResetFormMode = 'form' | PasswordRefusal

/** What a refused form is told besides its mode. */
export interface ResetFaults {
  /** What is wrong besides: passwords that differ can be too short or too long too. */
  also?: Exclude<ResetFormMode, 'form'> | undefined
  /** How many characters are too many. `undefined`: none. */
  excess?: number | undefined
  /** The words of the host's own judgement. `undefined`: it had none, or was not asked. */
  hostReason?: ReasonWords | undefined
}

type ResetPassword =
  | (ResetFaults & { mode: ResetFormMode; token: string; minLength: number; maxLength: number })
  /** `renew`: the genuine token that a new mail is one click away with. */
  | (Carries & { mode: 'invalid'; reason: LinkReason; renew?: string | undefined })
  /** `apps`: left out where it is not known which apps the person was signed in to. */
  | { mode: 'done'; apps?: SignedOutApps | undefined }

/** `sent`: at one click, in the place of an invitation that expired. */
type AcceptInvitation = ResetPassword | Sent

/** The page of a login that waits. */
interface Blocked extends Carries {
  mode: 'blocked'
  username: string
  /** Where the mail goes; the page shows it masked. `undefined`: nowhere, the account has no such address. */
  sentTo?: string | undefined
  lifetimeMs: number
  /** Of the login that waits; of no use without the cookie of this browser. `undefined`: no code can be typed. */
  waiting?: string | undefined
  /** Until another mail may be asked for. `undefined`: at any time. */
  waitMs?: number | undefined
  fault?: CodeFault | undefined
}

/** The link was opened where no login of its account waits: nothing is verified. */
interface Elsewhere {
  mode: 'elsewhere'
  username: string
  /** For the page that waits. `undefined`: that login waits no more. */
  code?: string | undefined
  /** When that login began. */
  at?: Date | undefined
  /** For how long no code is compared. `undefined`: it is compared now. */
  waitMs?: number | undefined
}

/**
 * `invalid`: nobody was named that a link is to be sent to. `confirm`: nothing looked at the link but a program; its button opens it
 * again. `other_account`: another account is signed in here, and nothing is verified. `signed_in`: the login went on in another window
 * of this browser. `ended`: it is over, or was never this browser's, and then there is no client.
 */
type VerifyEmail =
  | Blocked
  | Elsewhere
  /** `renew`: the genuine link that a new mail is one click away with. */
  | (Carries & {
      mode: 'expired'
      reason: VerificationReason
      renew?: VerificationLink | undefined
    })
  | (Sent & { waiting?: string | undefined })
  | (Carries & { mode: 'invalid'; waiting?: string | undefined })
  | { mode: 'confirm'; link: VerificationLink }
  | { mode: 'verified' | 'other_account' | 'signed_in' | 'ended' }

/** The same for all kinds of mails, and all accounts. `isNotYet`: it was answered, and nobody pressed the button. */
type NotMe =
  | { mode: 'confirm'; token: string; isNotYet?: boolean }
  /** What was done. With `carried`, the next step may be a link for another password; without, support has to help. */
  | { mode: DisownedOutcome; carried?: CarriedParameters }
  | { mode: 'invalid'; reason: 'unknown' }

/** The pages for what cannot be answered in another way, and the status of each. */
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
