import type { ErrorCode, MailFault } from '../errors.ts'
import type { MailKind } from './mail-kinds.ts'
import type { EndedSessions } from './sessions.ts'
import type { TokenEnd } from './token-end.ts'

/** All audit events of these flows (specification, section 6). */
export const AUDIT_EVENT_TYPES = [
  /** Somebody asked for a reset link. `reason`: why there is no mail. */
  'password_reset_requested',
  /** The mail server took the mail. `details.mail` is `password_changed` for the notice after a reset. */
  'password_reset_mail_sent',
  /** An attempt failed, or there will be no other one. `details` has the reply code and the step. */
  'password_reset_mail_failed',
  /** A reset link was used that does not work any more. `reason`: why. */
  'password_reset_rejected',
  /** The password is changed. `details`: how many sessions, grants and tokens were ended. */
  'password_reset_completed',
  /** Somebody asked for a verification link. `reason`: why there is no mail. */
  'email_verification_requested',
  /** The mail server took the mail. */
  'email_verification_mail_sent',
  /** An attempt failed, or nobody will try again. */
  'email_verification_mail_failed',
  /** A verification link was used that does not work any more. `reason`: why. */
  'email_verification_rejected',
  /** The address is verified. */
  'email_verification_completed',
  /** A login with the right password waits until the address is verified. */
  'email_login_blocked',
  /** `endSessions` was called. `details`: how many were ended. */
  'sessions_ended',
  /** `details.keys` were changed by `details.actor`. */
  'settings_changed',
  /** The admin API refused a request. `reason`: why. */
  'admin_auth_failed',
  /** An admin did `details.action`. `details.actor`: who. */
  'admin_action',
] as const

/**
 * A `switch` on `type` narrows it to the fields of that event. It never holds a token, a password, or an identifier that a
 * stranger typed.
 */
export type AuditEvent =
  | Told<`${Flow}_requested`, OfMail & { reason?: NoMail; details?: { identifier_hash: string } }>
  | Told<
      'password_reset_requested',
      OfMail & { reason: 'denied'; details: { identifier_hash: string } }
    >
  // Once for each network and minute.
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
  | Told<'password_reset_rejected', OfLink & { reason: LinkEnd | 'newer_password' }>
  | Told<'password_reset_completed', OfLink & { details: EndedSessions }>
  | Told<'email_verification_rejected', OfLink & { reason: LinkEnd | 'already_verified' }>
  | Told<'email_verification_completed', OfLink>
  | Told<'email_login_blocked', OfMail>
  | Told<'sessions_ended', { accountId: string; details: EndedSessions }>
  | Told<'settings_changed', { details: { keys: string[]; actor: string } }>
  | Told<
      'admin_auth_failed',
      { reason: 'no_token' | 'wrong_token' | 'keys_unavailable' | 'too_many_requests' }
    >
  | Told<
      'admin_auth_failed',
      { reason: 'insufficient_scope'; details: { actor: string; scope: string } }
    >
  // Each action has details of its own. Of a forgotten account `account_hash` is there, and no `accountId`.
  | Told<
      'admin_action',
      { accountId?: string | undefined; details: AnyDetails & { action: string; actor: string } }
    >

export type AuditEventType = AuditEvent['type']

type Flow = 'password_reset' | 'email_verification'

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

/** Why a request gets no mail; for the audit log and the dead letters. */
export type NoMail =
  | 'unknown'
  | 'ambiguous'
  | 'already_verified'
  | 'not_verified'
  | 'throttled'
  | 'superseded'
  | 'sent_before'
  | 'expired'
  | 'account_gone'
  | 'disabled'
  | 'no_address'
  | 'bad_address'
  | 'no_password'

/** Why a mail did not leave: there is none, or an attempt failed. */
export type MailFailure = NoMail | ErrorCode | 'unexpected_error'

/** What ended a link: its token, or its account. */
export type LinkEnd = TokenEnd | 'account_changed'

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

/** `audit_events`. */
export interface AuditLog {
  /**
   * Keeps the event for `keepMs` from now on; it is removed then or a little later. `false`: an event with this id was recorded
   * before; nothing changed.
   */
  record(event: AuditEvent, keepMs: number): Promise<boolean>
  /** The one that was recorded last comes first. */
  list(query: AuditQuery): Promise<RecordedEvent[]>
}

export interface AuditQuery {
  /** That one alone. */
  id?: string
  accountId?: string
  /** `details.identifier_hash` of what somebody typed who was not found, as `foldTyped` makes it. */
  identifierHash?: string
  types?: AuditEventType[]
  /** Only what was recorded at this time or later. */
  recordedFrom?: Date
  limit: number
}
