/** How to send a mail, and how to check sending: what `smtp/` implements for the queue and the admin API. */
import type { MailKind, TransportMail, User } from '../contract/index.ts'
import { AccountFlowsError } from '../errors.ts'
import type { AwaitedAddress } from '../flows/other-address.ts'
import type { Settings } from '../settings/table.ts'
import { defined } from '../store/kind.ts'

export interface Recipient {
  user: User
  /** The address of the account, or that of a notice. */
  email: string
  /** The address that the account waits for: the mail goes there. */
  awaited?: AwaitedAddress | undefined
}

export interface OutgoingMail extends Pick<TransportMail, 'to' | 'subject' | 'text' | 'html'> {
  /** Names the kind of mail for machines, in the header `X-Account-Flows-Mail`. `undefined`: no such header. */
  kind?: MailKind
}

/** A mail that left. */
export interface SentMail {
  /** With its angle brackets. `undefined`: the mail has no message id of this package. */
  messageId?: string
  /** The id at the mail server or the transport. `undefined`: its answer contained none. */
  queueId?: string
}

/** The mail of a job that left. */
export interface Delivered extends SentMail {
  hasLink: boolean
}

/** The right of a mail to use one of the few connections. */
export interface MailSlot {
  /** Mails are leaving just now. So a connection will be free in a moment, and the mail can be made meanwhile. */
  isFlowing: boolean
  /** Opens its connection, or takes an idle one; it waits while too many are open. Throws `ERR_MAIL_FAILED`. */
  open(): Promise<unknown>
  /** Throws `ERR_MAIL_ADDRESS` before the server hears anything, `ERR_MAIL_REFUSED` for good, or `ERR_MAIL_FAILED` for now. */
  send(mail: OutgoingMail): Promise<SentMail>
}

/** The step of a fault once the server gets the content of a mail, and the code of one where no answer came in time. */
export const HANDING_OVER = 'handing the mail over'
export const OUT_OF_TIME = 'out of time'

/** Whether the mail may have arrived: its content was handed over, and no answer came. */
export function mayHaveArrived(error: unknown): boolean {
  const fault = error instanceof AccountFlowsError ? error.fault : undefined
  if (fault?.step === HANDING_OVER) return !/^\d{3}/.test(fault.code)
  return fault?.step === 'transport' && fault.code === OUT_OF_TIME
}

/** Sends through the transport of the host, or through an SMTP server. */
export interface MailSender {
  /** Whether there is anywhere to send to under the settings in force. */
  canSend(): boolean
  /**
   * Waits for a slot, and calls `work` with it. At its deadline, or when `stop` aborts, the connection is destroyed, and the running step
   * fails with `ERR_MAIL_FAILED`. `undefined`: no slot got free in time, or under these settings, or `stop` aborted. Nothing was tried.
   */
  withSlot<T>(stop: AbortSignal, work: (slot: MailSlot) => Promise<T>): Promise<T | undefined>
  /** Closes idle connections at once, and busy ones when their mail is through. */
  close(): void
}

/** The steps of handing a mail over, in their order; `token` only with `smtp_auth` `xoauth2`. */
export type MailStep = 'dns' | 'connect' | 'tls' | 'token' | 'auth' | 'from' | 'rcpt' | 'data'

/** What one check found. After the first that failed, the rest is `skipped`. */
export interface CheckedStep<Step extends string = MailStep> {
  step: Step
  status: 'ok' | 'advice' | 'warning' | 'failed' | 'skipped'
  message: string
  /** The other side's reply, without secrets; at most 500 printable characters. */
  reply?: string
  advice?: string
}

export type Finding = Omit<CheckedStep, 'step'>

export function finding(
  status: Finding['status'],
  message: string,
  advice?: string,
  reply?: string,
): Finding {
  return { status, message, ...defined({ advice, reply }) }
}

export interface MailCheckOptions {
  /** The recipient. `undefined`: no recipient is tried. */
  to?: string
  /** The mail to really send to `to`. `undefined`: the recipient is tried, and nothing is sent. */
  mail?: Omit<OutgoingMail, 'to'>
}

/** Tests settings within 32 seconds, and throws for no fault of theirs. It answers every step in their order, or one step `transport`. */
export type CheckMail = (
  settings: Settings,
  options: MailCheckOptions,
) => Promise<CheckedStep<'configuration' | 'transport' | MailStep>[]>
