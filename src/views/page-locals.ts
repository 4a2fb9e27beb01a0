import type { CarriedParameters, PasswordRefusal, ReasonWords } from '../ports/index.ts'

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

/** Names of apps. */
export interface ShownApps {
  names: string[]
  /** How many there are besides. */
  more: number
}

/** The apps that the person was signed in to. */
export interface SignedOutApps {
  /** They are told to sign the person out, or were. */
  told: ShownApps
  /** Nobody tells them. */
  untold: ShownApps
}

/** The window that logged in, and goes on by itself once the address is confirmed. */
export interface WaitingPage {
  /** Of the pending login; of no use without the cookie of this browser. */
  pendingLoginId: string
  /** For how long it is worth asking. */
  forMs: number
  /** What the person who opens the link elsewhere is asked for. `undefined`: nobody is. */
  number?: number | undefined
  /** Its window never goes on: it asks nothing, and only its ways out are there. */
  isStill?: boolean
}

/** The login that waits in another window, as whoever may let it go on is told of it. */
export interface WaitingElsewhere {
  username: string
  /** When it began. */
  at: Date
  /** Told only as far as it is that of a well-known browser. */
  userAgent?: string | undefined
  /** It waits no more: a number is not asked for, and confirming signs nobody in. */
  isOver?: boolean
  /** `unread`: no number was typed; `wrong`: a wrong one, and one try is left; `ended`: it is over by now. */
  fault?: 'unread' | 'wrong' | 'ended' | undefined
}

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
      waiting?: WaitingPage | undefined
      /** Until another mail may be asked for. `undefined`: at any time. */
      waitMs?: number | undefined
      /** Somebody said "I have confirmed", and it is not so. */
      isNotYet?: boolean
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
      waiting?: WaitingPage | undefined
      isRenewed?: boolean
      waitMs?: number | undefined
    }
  /** Nobody was named that a link is to be sent to. */
  | {
      mode: 'invalid'
      carried: CarriedParameters
      client?: ShownClient | undefined
      waiting?: WaitingPage | undefined
    }
  /** `goesOnElsewhere`: the window that logged in finishes the login. */
  | { mode: 'verified'; goesOnElsewhere?: boolean; client?: ShownClient | undefined }
  /** The question whether this browser may go on. `isNotYet`: it was answered, and nobody pressed the button. */
  | {
      mode: 'confirm'
      link: LinkFields
      client?: ShownClient | undefined
      isNotYet?: boolean
      /** The number of that window is asked for. `undefined`: a button is enough. */
      waiting?: WaitingElsewhere | undefined
    }
  /** Whoever opened the link saw no window that waits: nothing was confirmed, and that login is over. */
  | { mode: 'disowned' }
  /** The question which account to go on as, about a link or about the window that waited; `session` names the one that was asked about. */
  | {
      mode: 'other_account'
      link?: LinkFields
      pendingLoginId?: string
      session: string
      client?: ShownClient | undefined
    }
  /** The login went on in another window of this browser. */
  | { mode: 'signed_in'; client?: ShownClient | undefined }
  /** The login went on once; whether somebody is signed in by it now is not known here. */
  | { mode: 'continued'; client?: ShownClient | undefined }
  /** The login that waited is over, or was never this browser's, and then there is no client. */
  | { mode: 'ended'; client?: ShownClient | undefined }

/** The same for all kinds of mails, and all accounts. `isNotYet`: it was answered, and nobody pressed the button. */
type NotMe =
  | { mode: 'confirm'; token: string; isNotYet?: boolean }
  | { mode: 'stopped' }
  /** The next step is a link for another password. */
  | { mode: 'secured'; carried: CarriedParameters }
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
