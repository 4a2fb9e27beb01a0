import type { ErrorCode, MailFault } from '../errors.ts'
import type { MAIL_KINDS, MailKind } from './mail-kinds.ts'

/** What an event has besides the common fields: a note for TypeScript, and nothing at run time. */
type Holds<Fields> = { readonly fields?: Fields }

/** All audit events (6), each with what it holds. docs/reference.md is generated from this table. */
const AUDIT_EVENTS = {
  /** A reset link was requested. */
  password_reset_requested: {} as Holds<Requested>,
  password_reset_mail_sent: {} as Holds<MailSent>,
  password_reset_mail_failed: {} as Holds<MailFailed>,
  /** A reset link was used that no longer works. */
  password_reset_rejected: {} as Holds<PasswordLinkRejected | TooManyForms>,
  /** The password is changed, and the account is signed out everywhere. */
  password_reset_completed: {} as Holds<OfLink & { details: EndedSessions }>,
  /** A verification link was requested. */
  email_verification_requested: {} as Holds<Requested>,
  email_verification_mail_sent: {} as Holds<MailSent>,
  email_verification_mail_failed: {} as Holds<MailFailed>,
  /** A verification link was used that no longer works; once an hour for each link. `wrong_code`: the user typed a wrong code. */
  email_verification_rejected: {} as Holds<(OfLink & { reason: VerificationEnd }) | TooManyForms>,
  /** The address is verified, by a link, a code or a reset. `replaced`: it took the place of the address of the account. */
  email_verification_completed: {} as Holds<OfLink & { details?: { address: 'replaced' } }>,
  /** The user typed another address on the page that waits. The account keeps its own until the mailbox of the other is proven. */
  email_replacement_requested: {} as Holds<OfLink>,
  /** A login with the right password waits until the address is verified. */
  email_login_blocked: {} as Holds<OfMail>,
  /** An account was invited. */
  invitation_requested: {} as Holds<Requested>,
  invitation_mail_sent: {} as Holds<MailSent>,
  invitation_mail_failed: {} as Holds<MailFailed>,
  /** An invitation was used that no longer works. */
  invitation_rejected: {} as Holds<PasswordLinkRejected | TooManyForms>,
  /** The first password is set, and the address is verified. All earlier sign-ins are ended. */
  invitation_completed: {} as Holds<OfLink & { details: EndedSessions }>,
  /** An account was signed out everywhere: by `flows.endSessions`, by an admin, or by its owner with "This wasn't me". */
  sessions_ended: {} as Holds<{ accountId: string; details: EndedSessions }>,
  /** A client was notified that the account is ended there (back-channel logout), and answered 200 or 204. */
  client_logout_sent: {} as Holds<OfClient & { details: { attempts: number } }>,
  /**
   * A client was not notified. The reason of the first failure is such as `timeout`, `refused_address` or `http_500`. `gave_up`: no worker
   * tries any more; `details.last` is then why the last attempt failed.
   */
  client_logout_failed: {} as Holds<
    OfClient & { reason: string; details: { attempts: number; last?: string } }
  >,
  /** Your own page changed a password, and called `flows.passwordChanged`. All earlier sign-ins are ended. */
  password_changed: {} as Holds<{ accountId: string; details: EndedSessions }>,
  /** Your own page changed the address of an account, and called `flows.emailChanged`. The event has no address. */
  email_changed: {} as Holds<{ accountId: string }>,
  /** The reader of a mail pressed "This wasn't me". `blocked` is an id of the blocked password, and reveals no password. */
  mail_reported: {} as Holds<{
    accountId: string
    details: { mail: MailKind; password: 'blocked' | 'kept'; done: ReportOutcome; blocked?: string }
  }>,
  /** Settings changed. `details` contains their names and who changed them, but no values. */
  settings_changed: {} as Holds<{ details: { keys: string[]; actor: string } }>,
  /** The admin API refused a request. `too_many_requests` comes once for each network and minute. */
  admin_auth_failed: {} as Holds<
    | { reason: 'no_token' | 'wrong_token' | 'keys_unavailable' | 'too_many_requests' }
    | { reason: 'insufficient_scope'; details: { actor: string; scope: string } }
  >,
  /** An admin did something. Each action has its own details. For a forgotten account, there is `account_hash` and no `accountId`. */
  admin_action: {} as Holds<{
    accountId?: string | undefined
    details: AnyDetails & { action: string; actor: string }
  }>,
}

/** The `type` of an event, such as `password_reset_completed`. */
export type AuditEventType = keyof typeof AUDIT_EVENTS

export const AUDIT_EVENT_TYPES = Object.keys(AUDIT_EVENTS).filter((name): name is AuditEventType =>
  Object.hasOwn(AUDIT_EVENTS, name),
)

/** If there is a `reason`, no mail follows. `denied`, never of an invitation: your `beforeForgotPassword` refused the form. */
type Requested =
  | (OfMail & { reason?: NoMail; details?: { identifier_hash: string } })
  | (OfMail & { reason: 'denied'; details: { identifier_hash: string } })
  | TooManyForms

/** The mail server accepted the mail. `link: 'none'`: it has no link. */
type MailSent = OfMail & {
  details?: { mail?: MailKind; message_id?: string; queue_id?: string; link?: 'none' }
}

/** An attempt to send a mail failed, or the worker gave the mail up. `details` says at which step, and the reply of the mail server. */
type MailFailed = OfMail & {
  reason: MailFailure
  details?: { mail?: MailKind } & Partial<MailFault>
}

/** `newer_password`: another change replaced the password at the same time. */
type PasswordLinkRejected = OfLink & { reason: LinkEnd | 'newer_password' }

/** `too_many_requests` is about forms, and comes once for each network and minute. */
type TooManyForms = { reason: 'too_many_requests' }

type OfMail = { accountId?: string | undefined; clientId?: string | undefined }

type OfClient = { accountId: string; clientId: string }

type OfLink = { accountId: string; clientId?: string | undefined }

/** What "This wasn't me" did. */
export type ReportOutcome =
  | 'stopped' // The links of that kind are void, and no login waits.
  | 'secured' // The password is blocked, and everything is ended.
  | 'later' // A link that was mailed later set a password, so nothing was done.
  | 'unverified' // The address is unverified again, and everything is ended.
  | 'signed_out' // Everything is ended, and nothing else could be done.
  | 'done' // It was done before.

/** One thing that happened. A `switch` on `type` narrows it. It never has a token, a password, or an identifier that a stranger typed. */
export type AuditEvent = {
  [Type in AuditEventType]: Told<
    OfAnyFlow<Type>,
    NonNullable<(typeof AUDIT_EVENTS)[Type]['fields']>
  >
}[AuditEventType]

/** Events of mails hold the same for each flow. As one type, code that serves all flows can record them. */
type OfAnyFlow<Type> = Type extends `${Flow}_${infer Step extends MailStep}`
  ? `${Flow}_${Step}`
  : Type
type Flow = (typeof MAIL_KINDS)[MailKind]['flow']
type MailStep = 'requested' | 'mail_sent' | 'mail_failed'

/** An event of this type. */
export type AuditEventOf<Type extends AuditEventType> = AuditEvent & { type: Type }

/** The fields of this event type besides the common ones; all others are `undefined`. */
type Told<Type, Fields> = Fields extends unknown
  ? EventBase & { type: Type } & Fields & {
        [Name in Exclude<keyof Sometimes, keyof Fields>]?: undefined
      }
  : never

interface EventBase {
  /** Unique: a repeated event is recorded once. */
  id: string
  at: Date
  /** The address of the network that the request came from, if there was a request. */
  address?: string | undefined
  userAgent?: string | undefined
}

type AnyDetails = Record<string, string | number | string[] | undefined>

interface Sometimes {
  accountId?: string | undefined
  clientId?: string | undefined
  reason?: string | undefined
  details?: AnyDetails | undefined
}

/** A stored event. If it is damaged, or comes from another version, it may lack fields of its type. */
export interface RecordedEvent extends EventBase, Sometimes {
  type: AuditEventType
  /** When it was recorded, by the clock of the recording process. The event itself may be earlier. */
  recordedAt: Date
}

/** The most characters of an audited client id: a stranger may have written it. */
export const MAX_AUDITED_LENGTH = 256

/** Why a request gets no mail, for the audit log and the dead letters. */
export type NoMail =
  | 'unknown' // No account has this name or verified address.
  | 'ambiguous' // Several accounts could be meant.
  | 'already_verified' // There is nothing left to verify.
  | 'other_address' // The account waits for another address. Besides, only notices leave.
  | 'not_verified' // The address is not verified, and a reset link needs that.
  | 'throttled' // The account asked too often.
  | 'superseded' // A newer request took its place.
  | 'sent_before' // An earlier attempt sent the mail before its process died.
  | 'expired' // The mail could not be sent in time.
  | 'account_gone' // The account has been deleted since.
  | 'disabled'
  | 'no_address' // The account has no address.
  | 'bad_address' // No mail can go to this address.
  | 'no_password' // The account has no password that could be reset, and may choose none.
  | 'has_password' // The account has a password, and needs no invitation.

/** Why a mail did not leave: the request gets none, or an attempt failed. */
export type MailFailure = NoMail | ErrorCode | 'unexpected_error'

export type TokenEnd =
  | 'invalidated' // A newer link replaced it, its mail was given up, or its form was refused in the end.
  | 'used'
  | 'expired' // Its time is over, or it was voided, for example by a sign-out everywhere.

/** What ended a link: its token, or its account. */
export type LinkEnd = TokenEnd | 'account_changed' // The password, the address or the account has changed since.

/** `address_taken`: another account has the address that the user typed. */
type VerificationEnd = LinkEnd | 'already_verified' | 'wrong_code' | 'address_taken'

/** How many records of each group were deleted. `undefined`: the adapter cannot count them; they are dead all the same. */
export type EndedSessions = {
  /** Grants, codes and tokens. */
  oauth: number | undefined
  /** Sessions and login results. */
  idp: number | undefined
}

/** How many clients the account was signed in to. */
export interface EndedClients {
  /** They are notified, so that they sign the user out. */
  notified: number
  /** They cannot be notified: the user has to sign out there. */
  notNotified: number
}

/** What `endSessions` ended. */
export type EndedAccount = EndedSessions & {
  /** Left out if unknown, for example because the provider notifies no clients. */
  clients?: EndedClients
}
