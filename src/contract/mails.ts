/** The ports of mails: whoever takes them. */
import type { Settings } from '../settings/table.ts'
import type { MailKind } from './mail-kinds.ts'

export type { MailKind } from './mail-kinds.ts'

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

/** A connection to the mail server, for one mail. */
export interface MailConnection {
  /**
   * Throws one of three errors. `ERR_MAIL_ADDRESS`: nothing was said to the server yet. `ERR_MAIL_REFUSED`: the server will
   * never accept this mail. `ERR_MAIL_FAILED`: a later attempt may succeed.
   */
  send(mail: OutgoingMail): Promise<SentMail>
}

/** A mail's place at the few connections. */
export interface MailPlace {
  /** Mails leave just now. So a connection will be free in a moment, and the mail can be made until then. */
  isFlowing: boolean
  /**
   * Opens a connection, or takes an idle one that still answers; a transport replaces it. It waits until one may be open.
   * Repeated, it answers the same. Throws `ERR_MAIL_FAILED`.
   */
  open(): Promise<MailConnection>
}

/** So many are open to one mail server, at most. */
export const MOST_CONNECTIONS = 5

/** Sends through the transport of the host, or through an SMTP server. */
export interface MailSender {
  /** Whether there is anywhere to send to under the settings in force. */
  canSend(): boolean
  /**
   * Waits in line under the settings in force, and calls `work` with a place. At its deadline, or when `stop` aborts, the
   * connection is destroyed at any stage. The running step fails with `ERR_MAIL_FAILED`.
   *
   * @returns `undefined`: no place got free in time, or under these settings, or `stop` aborted. Nothing was tried.
   */
  withPlace<T>(stop: AbortSignal, work: (place: MailPlace) => Promise<T>): Promise<T | undefined>
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
