import type { ErrorCode, MailFault } from '../errors.ts'
import type { MailKind } from './mail-kinds.ts'
import type { TokenEnd } from '../store/tokens.ts'

/** All audit events of these flows (specification, section 6). docs/reference.md is made of this, and of what `AuditEvent` says. */
export const AUDIT_EVENT_TYPES = [
  /**
   * Somebody asked for a reset link. Where there is a `reason`, no mail follows. `denied` is by your `beforeForgotPassword`.
   * `too_many_requests` comes once for each network and minute.
   *
   * @example ({ reason = 'mail_follows' }) => count('reset asked', reason)
   */
  'password_reset_requested',
  /**
   * The mail server took the mail. `details.mail` is `password_changed` for the notice of a changed password.
   *
   * @example ({ accountId, details }) => note(accountId, details?.message_id)
   */
  'password_reset_mail_sent',
  /**
   * An attempt to send a mail failed, or nobody will try again. `details` says where the mail server failed, and what it said.
   *
   * @example ({ reason, details }) => alert(reason, details?.step, details?.reply)
   */
  'password_reset_mail_failed',
  /**
   * A reset link was used that does not work any more. `newer_password`: somebody else changed the password just then.
   * `too_many_requests` is of forms, once for each network and minute.
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
   * Somebody asked for a verification link. Where there is a `reason`, no mail follows. `denied` is by your `beforeForgotPassword`.
   * `too_many_requests` comes once for each network and minute.
   *
   * @example ({ reason = 'mail_follows' }) => count('verification asked', reason)
   */
  'email_verification_requested',
  /**
   * The mail server took the mail.
   *
   * @example ({ accountId, details }) => note(accountId, details?.queue_id)
   */
  'email_verification_mail_sent',
  /**
   * An attempt to send a mail failed, or nobody will try again. `details` says where the mail server failed, and what it said.
   *
   * @example ({ reason, details }) => alert(reason, details?.code)
   */
  'email_verification_mail_failed',
  /**
   * A verification link was used that does not work any more; once an hour for each link. `wrong_code`: a wrong code was typed.
   * `too_many_requests` is of forms, once for each network and minute.
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
   * An account was invited. Where there is a `reason`, no mail follows.
   *
   * @example ({ reason = 'mail_follows' }) => count('invited', reason)
   */
  'invitation_requested',
  /**
   * The mail server took the mail.
   *
   * @example ({ accountId, details }) => note(accountId, details?.message_id)
   */
  'invitation_mail_sent',
  /**
   * An attempt to send a mail failed, or nobody will try again. `details` says where the mail server failed, and what it said.
   *
   * @example ({ reason, details }) => alert(reason, details?.code)
   */
  'invitation_mail_failed',
  /**
   * An invitation was used that does not work any more. `too_many_requests` is of forms, once for each network and minute.
   *
   * @example ({ reason }) => count('invitation refused', reason)
   */
  'invitation_rejected',
  /**
   * The first password is set, and the address verified. All that was signed in before is ended.
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
   * A client was told that the account is ended there (back-channel logout), and has ended its sessions. `details.attempts` says how
   * often it was tried.
   *
   * @example ({ clientId, details }) => note(clientId, 'was told, attempts:', details.attempts)
   */
  'client_logout_sent',
  /**
   * A client was not told. It comes with the first failure, such as `timeout`, `refused_address` or `http_500`. It comes once more with
   * the reason `gave_up`, when nobody will try again; `details.last` is then why the last attempt failed.
   *
   * @example ({ clientId, reason }) => reason === 'gave_up' && alert('sessions live on at', clientId)
   */
  'client_logout_failed',
  /**
   * Your own page changed a password, and called `flows.passwordChanged`. All that was signed in before is ended.
   *
   * @example ({ accountId, details }) => note(accountId, 'sessions ended:', details.idp)
   */
  'password_changed',

  /**
   * Somebody pressed "This wasn't me" of a mail. `details.mail` is its kind. `details.password` is `blocked` where the password signs nobody
   * in any more. `details.done` says what was done. `details.blocked` names the blocked password; it tells nothing about one that worked.
   *
   * @example ({ accountId, details }) => alert(accountId, details.mail, details.password)
   */
  'mail_reported',
  /**
   * Settings were changed. `details` has their names, and who did it. It has no values.
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
   * An admin did something. Each action has details of its own. Of a forgotten account `account_hash` is there, and no `accountId`.
   *
   * @example ({ accountId, details }) => note(details.actor, details.action, accountId)
   */
  'admin_action',
] as const

/** One thing that happened. A `switch` on `type` narrows it to what that event tells. It never holds a token, a password, or an identifier that a stranger typed. */
export type AuditEvent =
  | Told<`${Flow}_requested`, OfMail & { reason?: NoMail; details?: { identifier_hash: string } }>
  | Told<`${Flow}_requested`, OfMail & { reason: 'denied'; details: { identifier_hash: string } }>
  | Told<`${Flow}_requested` | `${Flow}_rejected`, { reason: 'too_many_requests' }>
  // A notice is named in `details.mail`, and has no type of its own.
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

/** The fields of this event type besides the common ones; the others are `undefined`. */
type Told<Type extends (typeof AUDIT_EVENT_TYPES)[number], Fields> = EventBase & {
  type: Type
} & Fields & {
    [Name in Exclude<keyof Sometimes, keyof Fields>]?: undefined
  }

interface EventBase {
  /** Unique: a repeated event is recorded once. */
  id: string
  at: Date
  /** Of the network that the request came from, as far as there was one. */
  address?: string | undefined
  userAgent?: string | undefined
}

/** `accountId`: `undefined` where nobody was found, or looked for. */
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
 * everything is ended. `later`: a link that was mailed later set a password, so nothing was done. `unverified`: so is the address, and
 * everything is ended. `signed_out`: everything is ended, and nothing else could be done. `done`: it was done before.
 */
export type ReportOutcome = 'stopped' | 'secured' | 'later' | 'unverified' | 'signed_out' | 'done'

/** What the event `mail_reported` tells. */
type ReportedDetails = {
  /** Its kind. */
  mail: MailKind
  password: 'blocked' | 'kept'
  done: ReportOutcome
  /** Names the blocked password. */
  blocked?: string
}

/** Why a request gets no mail; for the audit log and the dead letters. */
export type NoMail =
  /** Nobody has this name or verified address. */
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
  /** The mail left before its process died. */
  | 'sent_before'
  /** It could not be sent in time. */
  | 'expired'
  /** The account was deleted meanwhile. */
  | 'account_gone'
  | 'disabled'
  /** The account has no address. */
  | 'no_address'
  /** The address is none that a mail can go to. */
  | 'bad_address'
  /** The account has no password that could be reset. */
  | 'no_password'
  /** The account has a password, and needs no invitation. */
  | 'has_password'

/** Why a mail did not leave: there is none, or an attempt failed. */
export type MailFailure = NoMail | ErrorCode | 'unexpected_error'

/** What ended a link: its token, or its account. */
export type LinkEnd =
  | TokenEnd
  /** The password, the address or the account was changed since. */
  | 'account_changed'

type VerificationEnd = LinkEnd | 'already_verified' | 'wrong_code'

type AnyDetails = Record<string, string | number | string[] | undefined>

interface Sometimes {
  accountId?: string | undefined
  clientId?: string | undefined
  reason?: string | undefined
  details?: AnyDetails | undefined
}

/** An event as it was kept. One that was damaged, or is of another version, may lack what its type tells. */
export interface RecordedEvent extends EventBase, Sometimes {
  type: AuditEventType
  /** When it was recorded, by the clock of that process. The event itself may be earlier. */
  recordedAt: Date
}

/** How many records were deleted. `undefined`: the adapter cannot tell; they are dead all the same. */
export type EndedCount = number | undefined

/** How many of each were ended. */
export type EndedSessions = {
  /** Grants, codes and tokens. */
  oauth: EndedCount
  /** Sessions and login results. */
  idp: EndedCount
}

/** How many clients the account was signed in to. */
export interface EndedClients {
  /** They are told to sign the person out. */
  notified: number
  /** They cannot be told: the person has to sign out there. */
  notNotified: number
}

/** What `endSessions` ended. */
export type EndedAccount = EndedSessions & {
  /** Left out if it is not known, for example because the provider tells no clients. */
  clients?: EndedClients
}
