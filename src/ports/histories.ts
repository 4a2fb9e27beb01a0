/**
 * What support staff asks the stores: what became of a link, a mail, an account. Nothing here consumes or changes a token.
 *
 * @module
 */
import type { AuditEvent, AuditEventType, CarriedParameters, MailKind } from './index.ts'

/** What is known of a token, dead or alive; never the token or its hash. */
export interface TokenHistory {
  id: string
  userId: string
  /** The address that the link was mailed to. */
  email: string
  /** Digest of the password hash that the token was issued for. */
  passwordDigest: string
  carried: CarriedParameters
  /** The request that it was issued for. */
  mailJobId: string
  createdAt: Date
  expiresAt: Date
  /** Effect 2 of 3.3, or the verification. */
  usedAt: Date | undefined
  /** A reset was decided with it. Always `undefined` for a verification token. */
  claimedAt: Date | undefined
  /** A newer one took its place, or its mail was given up. Always `undefined` for a verification token. */
  invalidatedAt: Date | undefined
  /** All effects of the reset are done. Always `undefined` for a verification token. */
  completedAt: Date | undefined
}

/** What both token stores tell. A record that no token of ours can be is as if it were not there. */
export interface TokenHistories {
  /** `undefined`: there is no such token, or it was removed a week after it expired. */
  findHistory(tokenHash: string): Promise<TokenHistory | undefined>
  /** The user's tokens, newest first, at most `limit`. */
  historiesOf(userId: string, limit: number): Promise<TokenHistory[]>
}

/** A record of the outbox without what was typed, and without its lease. */
export interface MailJobStatus {
  id: string
  /** A `string` that is no kind of ours: the record was damaged. */
  kind: MailKind | (string & {})
  /** `dead`: nobody will try again. */
  state: 'waiting' | 'dead'
  /** `undefined`: it was not looked up yet, or nobody is meant. */
  accountId: string | undefined
  requestedAt: Date | undefined
  /** When a worker takes it next; in the past while all are busy. `undefined`: never. */
  nextAttemptAt: Date | undefined
  expiresAt: Date | undefined
  /** How often it was taken to be sent. */
  attempts: number
  /** Why the last attempt failed, or why nobody will try again. */
  reason: string | undefined
  /** Whether a worker holds it. */
  isHeld: boolean
}

export interface MailJobQuery {
  state?: MailJobStatus['state']
  accountId?: string
  /** Only what was requested before this time. */
  requestedBefore?: Date
  limit: number
}

/** What the outbox tells an admin, and lets an admin do. */
export interface OutboxAdministration {
  /** Newest request first. A damaged record is told with what can be read of it. */
  list(query: MailJobQuery, at: Date): Promise<MailJobStatus[]>
  /** `undefined`: there is no such record; it left, or it ended without a mail. */
  status(id: string, at: Date): Promise<MailJobStatus | undefined>
  /**
   * A dead letter becomes a request that its account made now, on database time; a job that waits becomes due `at` once. Atomic: of
   * concurrent callers one gets `revived` for a dead letter. `no_account`: a dead letter without an account, of which nobody knows
   * any more for whom it was. `held`: a worker has it, or takes it next because it is due already. `not_found` also for a record that
   * no worker could read. But for `revived`, nothing changed.
   */
  revive(
    id: string,
    at: Date,
    expiresAt: Date,
  ): Promise<'revived' | 'no_account' | 'held' | 'not_found'>
  /** Removes a dead letter, or a job that waits and that no worker holds. `held`, `not_found`: nothing was removed. */
  discard(id: string, at: Date): Promise<'discarded' | 'held' | 'not_found'>
  /** Removes all dead letters; answers how many. */
  discardDead(): Promise<number>
}

export interface RecordedEvent extends AuditEvent {
  /** When it was written down, by the clock of that process; the event itself may have been earlier. */
  recordedAt: Date
}

export interface AuditQuery {
  accountId?: string
  /** `details.identifier_hash` of what somebody typed who was not found. */
  identifierHash?: string
  types?: AuditEventType[]
  /** Only what was recorded at this time or later. */
  recordedFrom?: Date
  limit: number
}

/** What the audit log tells. */
export interface AuditHistory {
  /** The one that was recorded last comes first. */
  list(query: AuditQuery): Promise<RecordedEvent[]>
  /** `undefined`: no event with this id was recorded. */
  find(id: string): Promise<RecordedEvent | undefined>
}

/** What a store says of itself. */
export interface StoreInspection {
  /** Indexes that are missing or have other options, as `collection.index`. */
  wrongIndexes: string[]
  /** Whether everything is lost when the process ends. */
  isVolatile: boolean
}
