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

type ForgotPassword =
  | {
      mode: 'form' | 'invalid'
      carried: CarriedParameters
      client?: ShownClient | undefined
    }
  | {
      mode: 'sent'
      carried: CarriedParameters
      client?: ShownClient | undefined
      /** What was typed. `undefined`: nothing was. It is not shown. */
      typed?: string | undefined
      /** At one click, in the place of a link that expired: nothing was typed. */
      isRenewed?: boolean
      /** Until another mail may be asked for. `undefined`: at any time. */
      waitMs?: number | undefined
    }

export type ResetFormMode = 'form' | PasswordRefusal

/** Told to those alone who hold a genuine token; all others read `unknown`. `changed`: the account changed since. */
export type LinkReason = 'unknown' | 'expired' | 'used' | 'superseded' | 'changed'

/** Of verification links; all of an account's live side by side. `used`: the address is verified. */
export type VerificationReason = Exclude<LinkReason, 'superseded'>

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
  | ({
      mode: ResetFormMode
      token: string
      minLength: number
      maxLength: number
      client?: ShownClient | undefined
    } & ResetFaults)
  /** `renew`: the genuine token that a new mail is one click away with. */
  | {
      mode: 'invalid'
      reason: LinkReason
      carried: CarriedParameters
      client?: ShownClient | undefined
      renew?: string | undefined
    }
  /** `apps`: left out where it is not known which apps the person was signed in to. */
  | { mode: 'done'; client?: ShownClient | undefined; apps?: SignedOutApps | undefined }

/** `sent`: at one click, in the place of an invitation that expired. */
type AcceptInvitation =
  | ResetPassword
  | {
      mode: 'sent'
      client?: ShownClient | undefined
      /** Until another mail may be asked for. `undefined`: at any time. */
      waitMs?: number | undefined
    }

/** A verification link, as the forms that act on it repeat it. */
export interface LinkFields {
  token: string
  carried: CarriedParameters
  authorizeSig: string
}

type VerifyEmail =
  | {
      mode: 'blocked'
      username: string
      /** Where the mail goes; the page shows it masked. `undefined`: nowhere, the account has no such address. */
      sentTo?: string | undefined
      lifetimeMs: number
      carried: CarriedParameters
      client?: ShownClient | undefined
      /** Of the login that waits; of no use without the cookie of this browser. `undefined`: no code can be typed. */
      waiting?: string | undefined
      /** Until another mail may be asked for. `undefined`: at any time. */
      waitMs?: number | undefined
      fault?: CodeFault | undefined
    }
  | {
      mode: 'expired'
      reason: VerificationReason
      carried: CarriedParameters
      /** The genuine link that a new mail is one click away with. */
      renew?: LinkFields | undefined
      client?: ShownClient | undefined
    }
  /** `isRenewed`: at one click, in the place of a link that expired. */
  | {
      mode: 'sent'
      client?: ShownClient | undefined
      /** What was typed. `undefined`: nothing was. It is not shown. */
      typed?: string | undefined
      waiting?: string | undefined
      isRenewed?: boolean
      waitMs?: number | undefined
    }
  /** Nobody was named that a link is to be sent to. */
  | {
      mode: 'invalid'
      carried: CarriedParameters
      client?: ShownClient | undefined
      waiting?: string | undefined
    }
  | { mode: 'verified'; client?: ShownClient | undefined }
  /** Nothing looked at the link but a program. Its button opens it again. */
  | { mode: 'confirm'; link: LinkFields; client?: ShownClient | undefined }
  /** The link was opened where no login of its account waits: nothing is verified. */
  | {
      mode: 'elsewhere'
      username: string
      client?: ShownClient | undefined
      /** For the page that waits. `undefined`: that login waits no more. */
      code?: string | undefined
      /** When that login began. */
      at?: Date | undefined
      /** For how long no code is compared. `undefined`: it is compared now. */
      waitMs?: number | undefined
    }
  /** Another account is signed in here: nothing is verified, and nobody signed out. */
  | { mode: 'other_account'; client?: ShownClient | undefined }
  /** The login went on in another window of this browser. */
  | { mode: 'signed_in'; client?: ShownClient | undefined }
  /** The login went on once; whether somebody is signed in by it now is not known here. */
  | { mode: 'continued'; client?: ShownClient | undefined }
  /** The login that waited is over, or was never this browser's, and then there is no client. */
  | { mode: 'ended'; client?: ShownClient | undefined }

/** The same for all kinds of mails, and all accounts. `isNotYet`: it was answered, and nobody pressed the button. */
type NotMe =
  | { mode: 'confirm'; token: string; isNotYet?: boolean }
  /** What was done. With `carried`, the next step may be a link for another password; without, support has to help. */
  | {
      mode: DisownedOutcome
      carried?: CarriedParameters
    }
  | { mode: 'invalid'; reason: 'unknown' }

export type ErrorMode =
  | 'refused'
  | 'not_found'
  | 'method_not_allowed'
  | 'unsupported_media_type'
  | 'body_too_large'
  | 'bad_request'
  | 'request_too_long'
  | 'too_many_requests'
  | 'unavailable'
  | 'error'

/** What each page needs, by its `data-page`; `mode` is its `data-mode`. */
export interface PageLocals {
  'forgot-password': ForgotPassword
  'reset-password': ResetPassword
  'accept-invitation': AcceptInvitation
  'verify-email': VerifyEmail
  'not-me': NotMe
  error: { mode: ErrorMode }
}

export type PageName = keyof PageLocals
