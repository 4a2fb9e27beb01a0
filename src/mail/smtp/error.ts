import type { NodemailerError } from 'nodemailer'
import { AccountFlowsError, atStep, type MailFault } from '../../errors.ts'
import { harmless } from './reply-text.ts'
import type { SmtpSettings } from './settings.ts'
import { TokenError } from './token-request.ts'

/** Commands of which the name tells more than what was being done. */
const TELLING = /^(?:EHLO|STARTTLS|AUTH [A-Z0-9-]+|MAIL FROM|RCPT TO|DATA|RSET)$/

/** Whether the server answered the mail, and not the connection: then the connection is good for another mail. */
export function answersTheMail(cause: unknown): boolean {
  const { code, responseCode } = detailsOf(cause)
  return (code === 'EENVELOPE' || code === 'EMESSAGE') && responseCode !== 421
}

/**
 * Says what happened, and at which step: the message in codes alone, as it is logged; the words of the server beside it, for admins. The
 * cause is not kept. An aborted signal ended it, whatever came of that.
 */
export function errorOf(
  cause: unknown,
  { aborted, reason }: AbortSignal,
  doing: string,
  settings?: SmtpSettings,
): AccountFlowsError {
  if (aborted) {
    const isLate = reason instanceof Error && reason.name === 'TimeoutError'
    return failed({ code: isLate ? 'out of time' : 'stopped', step: doing })
  }
  if (cause instanceof TokenError) return failed({ code: cause.why, step: 'token' })
  const fault = faultOf(cause, doing, settings)
  if (!isForGood(cause)) return failed(fault)
  const message = `The mail server refused the mail for good (${fault.code} ${atStep(fault)})`
  return new AccountFlowsError('ERR_MAIL_REFUSED', message, { fault })
}

/** A refused login or sender (RFC 3463: 5.1.7, 5.1.8) is the admin's to mend, so the mail itself may still succeed. */
function isForGood(cause: unknown): boolean {
  const { responseCode = 0, response = '', command } = detailsOf(cause)
  // A nodemailer of the host's may be older, and not say `permanent`.
  const { permanent = responseCode >= 500 } = detailsOf(cause)
  const isForAdmin =
    responseCode === 530 || command === 'MAIL FROM' || /^5\d\d[ -]5\.1\.[78]\b/.test(response)
  return permanent && answersTheMail(cause) && !isForAdmin
}

function faultOf(cause: unknown, doing: string, settings?: SmtpSettings): MailFault {
  const { code, responseCode, response, command, timeoutType, originalCode } = detailsOf(cause)
  const step = command !== undefined && TELLING.test(command) ? command : doing
  if (!responseCode) return { step, code: timeoutType ?? originalCode ?? code ?? 'unknown reason' }
  // Whoever answers the whole mail has seen its link; whoever answers a login, the password.
  const isTold = settings && response && code !== 'EMESSAGE' && !step.startsWith('AUTH')
  return {
    step,
    code: replyCodes(responseCode, response),
    ...(isTold && { reply: harmless(response, settings) }),
  }
}

function failed(fault: MailFault): AccountFlowsError {
  const message = `The mail was not sent (${fault.code} ${atStep(fault)})`
  return new AccountFlowsError('ERR_MAIL_FAILED', message, { fault })
}

function detailsOf(cause: unknown): Partial<NodemailerError> {
  return cause instanceof Error ? cause : {}
}

/** Such as `550 5.1.1`. */
function replyCodes(responseCode: number | undefined, response: string | undefined): string {
  const enhanced = /^\d{3}[ -]([245]\.\d{1,3}\.\d{1,3})(?!\S)/.exec(response ?? '')?.[1]
  return enhanced ? `${responseCode} ${enhanced}` : String(responseCode)
}
