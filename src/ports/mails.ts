/** The ports of mails: the outbox that they wait in, and whoever takes them. */
import type { CarriedParameters, Requester } from './requests.ts'
import type { Settings } from '../settings/table.ts'
import type { MailKind } from './mail-kinds.ts'

export type { MailKind } from './mail-kinds.ts'

/** A request for one mail. */
export interface NewMailJob {
  id: string
  kind: MailKind
  /** As typed, until a worker has looked the user up. `undefined`: the account is known. */
  identifier: string | undefined
  /** `undefined`: not looked up yet. */
  accountId: string | undefined
  pendingLoginId: string | undefined
  /** Where the mail goes, whatever address the account has by then. `undefined`: to that. */
  sendTo?: string | undefined
  /** When it was asked for, the account had not verified `sendTo`. Left out: that is judged when the mail leaves. */
  isClaim?: boolean
  carried: CarriedParameters
  requester: Requester
  /** A form asked for it that can be sent again: the id stays taken for a week after the job is over. */
  isOfForm?: boolean
  /** No worker takes the job before this time. */
  notBefore: Date
  /** After this time nobody wants the mail any more. */
  expiresAt: Date
}

/** A mail that a worker has claimed. */
export interface MailJob extends NewMailJob {
  /** Whether the account asked again since: then this job ends without a mail. */
  isSuperseded: boolean
  /** Whether its account was looked up before, by a worker that did not come to the end. */
  isResolved: boolean
  /** Time of the database, not of the process. */
  requestedAt: Date
  /** How often it was taken to be sent, this time included. */
  attempts: number
  /** Names the claim; a write with the id of an earlier claim changes nothing. */
  leaseId: string
  /** When it may be given to another caller. */
  heldUntil: Date
}

/** A request of a known account, also one that ended as a dead letter. */
export interface RequestOfAccount extends Pick<
  MailJob,
  'id' | 'requestedAt' | 'expiresAt' | 'pendingLoginId'
> {
  /** Whether its account was looked up. */
  isResolved: boolean
  /** Whether its mail may leave yet: it is neither superseded nor a dead letter. */
  isWaiting: boolean
}

/**
 * Why a job is taken. `resolve`: to look its account up, or to end it if it is superseded. `send`: to send it, once it is
 * resolved and within its life. `expire`: to end it, if nobody sent it within its life.
 */
export type MailStage = 'resolve' | 'send' | 'expire'

/**
 * Keeps the requests for mails, in `mail_outbox`. A job never holds a token or a link. A write for a job changes nothing if its
 * lease was lost or it is superseded; a boolean answer is then `false`.
 */
export interface MailOutbox extends OutboxAdministration {
  /** One write, the same for everybody. It changes nothing if the id exists or is still taken. */
  add(job: NewMailJob): Promise<void>
  /** Takes at most this many jobs that nobody holds, the longest due first. Each is given to one caller. */
  claim(stage: MailStage, most: number, at: Date, heldUntil: Date): Promise<MailJob[]>
  /**
   * Keeps the account, and erases the typed identifier. The job counts as resolved from here on, also as a dead letter; and as taken
   * to be sent, by the same caller.
   */
  resolve(job: MailJob, accountId: string, at: Date, heldUntil: Date): Promise<boolean>
  /** What an account asked for, of one kind, as far as it was not removed. */
  requestsOf(accountId: string, kind: MailKind): Promise<RequestOfAccount[]>
  /** Ends what waits of these, whoever holds it: a worker takes it once more, and removes it. */
  supersede(ids: readonly string[], at: Date): Promise<void>
  isHeld(job: MailJob): Promise<boolean>
  /** Gives the job back, to be claimed again from `at` on. Without a reason nobody tried to send it, and that counts as no attempt. */
  release(job: MailJob, at: Date, reason?: string): Promise<void>
  /** The job is over; nothing of it stays but the id of one of a form. Also whoever held it before may remove a superseded one: it was just sent. */
  remove(job: MailJob): Promise<void>
  /** Nobody will try again; the record stays for a week as a dead letter, with its reason and without the typed identifier. */
  giveUp(job: MailJob, at: Date, reason: string): Promise<boolean>
  /** Makes a dead letter of each record that is no readable job, and answers their ids. */
  giveUpUnreadable(at: Date): Promise<string[]>
}

/** One mail, rendered. */
export interface OutgoingMail {
  to: string
  subject: string
  text: string
  html: string
  /** Tells a machine what mail this is, in the header `X-Account-Flows-Mail`. `undefined`: no such header. */
  kind?: MailKind
}

/** What a mail that left is known by. */
export interface SentMail {
  /** With its angle brackets. `undefined`: it has none of ours. */
  messageId?: string
  /** What the mail server or the transport calls it. `undefined`: its answer told none. */
  queueId?: string
}

/** One mail, as a transport is handed it. `sendMail` of nodemailer takes it as it is. */
export interface TransportMail {
  /** The settings `smtp_from` and `smtp_from_name`; the name may be empty. Left out: `smtp_from` is not set. */
  from?: { name: string; address: string }
  /** One plain address. */
  to: string
  /** One line. */
  subject: string
  text: string
  html: string
  /** With its angle brackets. Left out: `smtp_from` is not set. */
  messageId?: string
  /** Further headers, by name. */
  headers: Record<string, string>
}

/** The outcome of a mail. `id` is its name at the mail service; `reason` is kept for admins, without addresses. */
export type TransportAnswer =
  { accepted: true; id?: string } | { accepted: false; isForGood: boolean; reason: string }

/** Sends mails in the place of SMTP. */
export interface MailTransport {
  /**
   * Hands one mail over. An error means: try again. The signal aborts after 30 seconds, or when the process stops; a later
   * answer does not count. At most five calls run at the same time.
   */
  send(mail: TransportMail, signal: AbortSignal): Promise<TransportAnswer>
  /**
   * It delivers nothing, such as a development mailbox. It gets mails only while SMTP is not configured, and production refuses
   * it.
   */
  isStandIn?: boolean
}

/** A connection to the mail server, free for one mail. */
export interface MailConnection {
  /**
   * Throws one of three errors. `ERR_MAIL_ADDRESS`: nothing was said to the server yet. `ERR_MAIL_REFUSED`: the server will
   * never accept this mail. `ERR_MAIL_FAILED`: a later attempt may succeed.
   */
  send(mail: OutgoingMail): Promise<SentMail>
  /** Gives it back for the next mail; one that failed is closed. Repeated, it changes nothing. */
  release(): void
}

/** So many are open to the mail server, at most. */
export const MOST_CONNECTIONS = 5

/** Sends through the transport of the host, or through an SMTP server. */
export interface MailSender {
  /** Whether there is anywhere to send to under the settings in force. */
  canSend(): boolean
  /**
   * Opens a connection with these settings, or takes an idle one that still answers; a transport replaces it. At most
   * `MOST_CONNECTIONS` are open, and later callers wait. Aborting the signal destroys the socket at any stage until its
   * release; the running step fails with `ERR_MAIL_FAILED`.
   */
  connect(settings: Settings, signal: AbortSignal): Promise<MailConnection>
  /** Idle connections at once, busy ones when their mail is through. */
  close(): void
}

/** The steps of handing a mail over, in their order; `token` only with `smtp_auth` `xoauth2`. */
export type MailStep = 'dns' | 'connect' | 'tls' | 'token' | 'auth' | 'from' | 'rcpt' | 'data'

/** What one check found. After the first that failed, the rest is `skipped`. */
export interface CheckedStep<Step extends string = MailStep> {
  step: Step
  status: 'ok' | 'advice' | 'warning' | 'failed' | 'skipped'
  /** One sentence: what is so. */
  message: string
  /** What the other side said, without anything secret; at most 500 printable characters. */
  reply?: string
  /** What to do. */
  advice?: string
}

export interface MailCheckOptions {
  /** Whom to send to. `undefined`: no recipient is tried. */
  to?: string
  /** Really sent to `to`. `undefined`: the recipient is tried, and nothing is sent. */
  mail?: Omit<OutgoingMail, 'to'>
}

/**
 * Tests the settings, without the outbox and its connections. It always answers every step, in their order, or one step
 * `transport` instead. It never throws for faults of settings, network or server. It takes at most 32 seconds.
 */
export type CheckMail = (
  settings: Settings,
  options: MailCheckOptions,
) => Promise<CheckedStep<'configuration' | 'transport' | MailStep>[]>

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

/** Which records of the outbox an admin asks for. */
export interface MailJobQuery {
  /** That one alone. */
  id?: string
  state?: MailJobStatus['state']
  accountId?: string
  /** Only what was requested before this time. */
  requestedBefore?: Date
  /** Only what was requested at this time or later. */
  requestedFrom?: Date
  limit: number
}

/** What the outbox tells an admin, and lets an admin do. */
export interface OutboxAdministration {
  /** Newest request first. A damaged record is not told: it becomes a dead letter. */
  list(query: MailJobQuery, at: Date): Promise<MailJobStatus[]>
  /**
   * A dead letter becomes a request that its account made now, on database time. A waiting job becomes due `at` once. Atomic:
   * of concurrent callers one gets `revived` for a dead letter. `no_account`: a dead letter whose account is unknown. `held`: a
   * worker has it, or takes it next because it is due already. `not_found`: also for a record that no worker could read. Except
   * for `revived`, nothing changed.
   */
  revive(
    id: string,
    at: Date,
    expiresAt: Date,
  ): Promise<'revived' | 'no_account' | 'held' | 'not_found'>
  /** Removes a dead letter or a job that waits, unless a worker holds it; or all dead letters. Answers how many. */
  discard(which: { id: string } | 'dead', at: Date): Promise<number>
}
