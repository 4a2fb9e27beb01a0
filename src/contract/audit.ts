import type { ErrorCode, MailFault } from '../errors.ts'
import type { MailKind } from './mail-kinds.ts'

/** All audit events of these flows (specification, section 6). docs/reference.md is generated from this list and from `AuditEvent`. */
export const AUDIT_EVENT_TYPES = [
  /**
   * A reset link was requested. If there is a `reason`, no mail follows. `denied`: your `beforeForgotPassword` refused the request.
   * `too_many_requests` comes once for each network and minute.
   *
   * @example ({ reason = 'mail_follows' }) => count('reset asked', reason)
   */
  'password_reset_requested',
  /**
   * The mail server accepted the mail. `details.mail` is `password_changed` for the notice of a changed password.
   *
   * @example ({ accountId, details }) => note(accountId, details?.message_id)
   */
  'password_reset_mail_sent',
  /**
   * An attempt to send a mail failed, or the worker gave the mail up. `details` says at which step the mail server failed, and its reply.
   *
   * @example ({ reason, details }) => alert(reason, details?.step, details?.reply)
   */
  'password_reset_mail_failed',
  /**
   * A reset link was used that no longer works. `newer_password`: another change replaced the password at the same time.
   * `too_many_requests` is about forms, and comes once for each network and minute.
   *
   * @example ({ reason }) => count('reset refused', reason)
   */
  'password_reset_rejected',
  /**
   * The password is changed, and the account is signed out everywhere.
   *
   * @example ({ accountId, details }) => note(accountId, 'sessions ended:', details.idp)
   */
  'password_reset_completed',
  /**
   * A verification link was requested. If there is a `reason`, no mail follows. `denied`: your `beforeForgotPassword` refused the request.
   * `too_many_requests` comes once for each network and minute.
   *
   * @example ({ reason = 'mail_follows' }) => count('verification asked', reason)
   */
  'email_verification_requested',
  /**
   * The mail server accepted the mail.
   *
   * @example ({ accountId, details }) => note(accountId, details?.queue_id)
   */
  'email_verification_mail_sent',
  /**
   * An attempt to send a mail failed, or the worker gave the mail up. `details` says at which step the mail server failed, and its reply.
   *
   * @example ({ reason, details }) => alert(reason, details?.code)
   */
  'email_verification_mail_failed',
  /**
   * A verification link was used that no longer works; once an hour for each link. `wrong_code`: the user typed a wrong code.
   * `too_many_requests` is about forms, and comes once for each network and minute.
   *
   * @example ({ reason }) => count('verification refused', reason)
   */
  'email_verification_rejected',
  /**
   * The address is verified, by a link, a code or a reset.
   *
   * @example ({ accountId }) => welcome(accountId)
   */
  'email_verification_completed',
  /**
   * A login with the right password waits until the address is verified.
   *
   * @example ({ accountId }) => note(accountId, 'waits for its mail')
   */
  'email_login_blocked',
  /**
   * An account was invited. If there is a `reason`, no mail follows.
   *
   * @example ({ reason = 'mail_follows' }) => count('invited', reason)
   */
  'invitation_requested',
  /**
   * The mail server accepted the mail.
   *
   * @example ({ accountId, details }) => note(accountId, details?.message_id)
   */
  'invitation_mail_sent',
  /**
   * An attempt to send a mail failed, or the worker gave the mail up. `details` says at which step the mail server failed, and its reply.
   *
   * @example ({ reason, details }) => alert(reason, details?.code)
   */
  'invitation_mail_failed',
  /**
   * An invitation was used that no longer works. `too_many_requests` is about forms, and comes once for each network and minute.
   *
   * @example ({ reason }) => count('invitation refused', reason)
   */
  'invitation_rejected',
  /**
   * The first password is set, and the address is verified. All earlier sign-ins are ended.
   *
   * @example ({ accountId }) => welcome(accountId)
   */
  'invitation_completed',
  /**
   * An account was signed out everywhere: by `flows.endSessions`, by an admin, or by its owner with "This wasn't me".
   *
   * @example ({ accountId, details }) => note(accountId, 'sessions ended:', details.idp)
   */
  'sessions_ended',
  /**
   * A client was notified that the account is ended there (back-channel logout), and has ended its sessions. `details.attempts` is the
   * number of attempts.
   *
   * @example ({ clientId, details }) => note(clientId, 'was notified, attempts:', details.attempts)
   */
  'client_logout_sent',
  /**
   * A client was not notified. The event comes with the first failure, such as `timeout`, `refused_address` or `http_500`. It comes again
   * with the reason `gave_up` when no worker tries any more; `details.last` is then why the last attempt failed.
   *
   * @example ({ clientId, reason }) => reason === 'gave_up' && alert('sessions live on at', clientId)
   */
  'client_logout_failed',
  /**
   * Your own page changed a password, and called `flows.passwordChanged`. All earlier sign-ins are ended.
   *
   * @example ({ accountId, details }) => note(accountId, 'sessions ended:', details.idp)
   */
  'password_changed',

  /**
   * The reader of a mail pressed "This wasn't me". `details.mail` is the kind of mail. `details.password` is `blocked` if the password no
   * longer works. `details.done` says what was done. `details.blocked` names the blocked password, and reveals nothing about a working one.
   *
   * @example ({ accountId, details }) => alert(accountId, details.mail, details.password)
   */
  'mail_reported',
  /**
   * Settings changed. `details` contains their names and who changed them, but no values.
   *
   * @example ({ details }) => note(details.actor, ...details.keys)
   */
  'settings_changed',
  /**
   * The admin API refused a request. `too_many_requests` comes once for each network and minute.
   *
   * @example ({ reason, address }) => alert(reason, address)
   */
  'admin_auth_failed',
  /**
   * An admin did something. Each action has its own details. For a forgotten account, there is `account_hash` and no `accountId`.
   *
   * @example ({ accountId, details }) => note(details.actor, details.action, accountId)
   */
  'admin_action',
] as const

/**
 * One thing that happened. A `switch` on `type` narrows it to the fields of that event. It never contains a token, a password, or an
 * identifier that a stranger typed.
 */
export type AuditEvent =
  | Told<`${Flow}_requested`, OfMail & { reason?: NoMail; details?: { identifier_hash: string } }>
  | Told<`${Flow}_requested`, OfMail & { reason: 'denied'; details: { identifier_hash: string } }>
  | Told<`${Flow}_requested` | `${Flow}_rejected`, { reason: 'too_many_requests' }>
  // `details.mail` names a notice, which has no event type of its own.
  | Told<
      `${Flow}_mail_sent`,
      OfMail & { details?: { mail?: MailKind; message_id?: string; queue_id?: string } }
    >
  | Told<
      `${Flow}_mail_failed`,
      OfMail & { reason: MailFailure; details?: { mail?: MailKind } & Partial<MailFault> }
    >
  | Told<`${PasswordFlow}_rejected`, OfLink & { reason: LinkEnd | 'newer_password' }>
  | Told<`${PasswordFlow}_completed`, OfLink & { details: EndedSessions }>
  | Told<'email_verification_rejected', OfLink & { reason: VerificationEnd }>
  | Told<'email_verification_completed', OfLink>
  | Told<'email_login_blocked', OfMail>
  | Told<'client_logout_sent', OfClient & { details: { attempts: number } }>
  | Told<
      'client_logout_failed',
      OfClient & { reason: string; details: { attempts: number; last?: string } }
    >
  | Told<'sessions_ended' | 'password_changed', { accountId: string; details: EndedSessions }>
  | Told<'mail_reported', { accountId: string; details: ReportedDetails }>
  | Told<'settings_changed', { details: { keys: string[]; actor: string } }>
  | Told<
      'admin_auth_failed',
      { reason: 'no_token' | 'wrong_token' | 'keys_unavailable' | 'too_many_requests' }
    >
  | Told<
      'admin_auth_failed',
      { reason: 'insufficient_scope'; details: { actor: string; scope: string } }
    >
  | Told<
      'admin_action',
      { accountId?: string | undefined; details: AnyDetails & { action: string; actor: string } }
    >

/** The `type` of an event, such as `password_reset_completed`. */
export type AuditEventType = AuditEvent['type']

/** An event of this type. */
export type AuditEventOf<Type extends AuditEventType> = AuditEvent & { type: Type }

type PasswordFlow = 'password_reset' | 'invitation'

type Flow = PasswordFlow | 'email_verification'

/** The fields of this event type besides the common ones; all others are `undefined`. */
type Told<Type extends (typeof AUDIT_EVENT_TYPES)[number], Fields> = EventBase & {
  type: Type
} & Fields & {
    [Name in Exclude<keyof Sometimes, keyof Fields>]?: undefined
  }

interface EventBase {
  /** Unique: a repeated event is recorded once. */
  id: string
  at: Date
  /** The address of the network that the request came from, if there was a request. */
  address?: string | undefined
  userAgent?: string | undefined
}

/** `accountId`: `undefined` if no account was found or looked up. */
interface OfMail {
  accountId?: string | undefined
  clientId?: string | undefined
}

interface OfLink {
  accountId: string
  clientId?: string | undefined
}

interface OfClient {
  accountId: string
  clientId: string
}

/**
 * What "This wasn't me" did. `stopped`: the links of that kind are void, and no login waits. `secured`: the password is blocked, and
 * everything is ended. `later`: a link that was mailed later set a password, so nothing was done. `unverified`: the address is unverified
 * again, and everything is ended. `signed_out`: everything is ended, and nothing else could be done. `done`: it was done before.
 */
export type ReportOutcome = 'stopped' | 'secured' | 'later' | 'unverified' | 'signed_out' | 'done'

/** The details of the event `mail_reported`. */
type ReportedDetails = {
  /** The kind of the reported mail. */
  mail: MailKind
  password: 'blocked' | 'kept'
  done: ReportOutcome
  /** Names the blocked password. */
  blocked?: string
}

/** Why a request gets no mail, for the audit log and the dead letters. */
export type NoMail =
  /** No account has this name or verified address. */
  | 'unknown'
  /** Several accounts could be meant. */
  | 'ambiguous'
  /** There is nothing left to verify. */
  | 'already_verified'
  /** The address is not verified, and a reset link needs that. */
  | 'not_verified'
  /** The account asked too often. */
  | 'throttled'
  /** A newer request took its place. */
  | 'superseded'
  /** An earlier attempt sent the mail before its process died. */
  | 'sent_before'
  /** The mail could not be sent in time. */
  | 'expired'
  /** The account has been deleted since. */
  | 'account_gone'
  | 'disabled'
  /** The account has no address. */
  | 'no_address'
  /** No mail can go to this address. */
  | 'bad_address'
  /** The account has no password that could be reset. */
  | 'no_password'
  /** The account has a password, and needs no invitation. */
  | 'has_password'

/** The most characters of an audited client id: a stranger may have written it. */
export const MAX_AUDITED_LENGTH = 256

/** Why a mail did not leave: the request gets none, or an attempt failed. */
export type MailFailure = NoMail | ErrorCode | 'unexpected_error'

export type TokenEnd =
  /** The user asked for a newer link, or the account was signed out everywhere. */
  | 'invalidated'
  /** It was used before. */
  | 'used'
  /** Its time was over. */
  | 'expired'

/** What ended a link: its token, or its account. */
export type LinkEnd =
  | TokenEnd
  /** The password, the address or the account has changed since. */
  | 'account_changed'

type VerificationEnd = LinkEnd | 'already_verified' | 'wrong_code'

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

/** How many records were deleted. `undefined`: the adapter cannot count them; they are dead all the same. */
export type EndedCount = number | undefined

/** How many records of each group were ended. */
export type EndedSessions = {
  /** Grants, codes and tokens. */
  oauth: EndedCount
  /** Sessions and login results. */
  idp: EndedCount
}

/** How many clients the account was signed in to. */
export interface EndedClients {
  /** Clients that are notified, so that they sign the user out. */
  notified: number
  /** Clients that cannot be notified: the user has to sign out there. */
  notNotified: number
}

/** What `endSessions` ended. */
export type EndedAccount = EndedSessions & {
  /** Left out if unknown, for example because the provider notifies no clients. */
  clients?: EndedClients
}
