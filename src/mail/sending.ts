/** How to send a mail, and how to check sending: the interface of `smtp/` for jobs and the admin API. */
import type { MailKind } from '../contract/mail-kinds.ts'
import type { Settings } from '../settings/table.ts'

/** One rendered mail. */
export interface OutgoingMail {
  to: string
  subject: string
  text: string
  html: string
  /** Names the kind of mail for machines, in the header `X-Account-Flows-Mail`. `undefined`: no such header. */
  kind?: MailKind
}

/** The ids of a mail that left. */
export interface SentMail {
  /** With its angle brackets. `undefined`: the mail has no message id of this package. */
  messageId?: string
  /** The id at the mail server or the transport. `undefined`: its answer contained none. */
  queueId?: string
}

/** A connection to the mail server, for one mail. */
export interface MailConnection {
  /**
   * Throws one of three errors. `ERR_MAIL_ADDRESS`: the address is wrong, and the server has heard nothing yet. `ERR_MAIL_REFUSED`: the
   * server will never accept this mail. `ERR_MAIL_FAILED`: a later attempt may succeed.
   */
  send(mail: OutgoingMail): Promise<SentMail>
}

/** A mail's place in the queue for the few connections. */
export interface MailPlace {
  /** Mails are leaving just now. So a connection will be free in a moment, and the mail can be made meanwhile. */
  isFlowing: boolean
  /**
   * Opens a connection, or takes an idle one that still answers; a transport replaces it. It waits while too many are open. A repeated call
   * returns the same one. Throws `ERR_MAIL_FAILED`.
   */
  open(): Promise<MailConnection>
}

/** The most open connections to one mail server. */
export const MAX_CONNECTIONS = 5

/** Sends through the transport of the host, or through an SMTP server. */
export interface MailSender {
  /** Whether there is anywhere to send to under the settings in force. */
  canSend(): boolean
  /**
   * Waits in line under the settings in force, and calls `work` with a place. At its deadline, or when `stop` aborts, the connection is
   * destroyed at any stage. The running step fails with `ERR_MAIL_FAILED`.
   *
   * @returns `undefined`: no place got free in time, or under these settings, or `stop` aborted. Nothing was tried.
   */
  withPlace<T>(stop: AbortSignal, work: (place: MailPlace) => Promise<T>): Promise<T | undefined>
  /** Closes idle connections at once, and busy ones when their mail is through. */
  close(): void
}

/** The steps of handing a mail over, in their order; `token` only with `smtp_auth` `xoauth2`. */
export type MailStep = 'dns' | 'connect' | 'tls' | 'token' | 'auth' | 'from' | 'rcpt' | 'data'

/** What one check found. After the first that failed, the rest is `skipped`. */
export interface CheckedStep<Step extends string = MailStep> {
  step: Step
  status: 'ok' | 'advice' | 'warning' | 'failed' | 'skipped'
  /** One sentence about the result. */
  message: string
  /** The other side's reply, without secrets; at most 500 printable characters. */
  reply?: string
  /** What the admin can do. */
  advice?: string
}

export interface MailCheckOptions {
  /** The recipient. `undefined`: no recipient is tried. */
  to?: string
  /** The mail to really send to `to`. `undefined`: the recipient is tried, and nothing is sent. */
  mail?: Omit<OutgoingMail, 'to'>
}

/**
 * Tests the settings, without the outbox and its connections. It always answers every step, in their order, or one step `transport`
 * instead. It never throws for faults of settings, network or server. It takes at most 32 seconds.
 */
export type CheckMail = (
  settings: Settings,
  options: MailCheckOptions,
) => Promise<CheckedStep<'configuration' | 'transport' | MailStep>[]>
