import type { NodemailerError } from 'nodemailer'
import { AccountFlowsError } from '../errors.ts'

/** Commands of which the name tells more than what was being done. */
const TELLING = /^(?:EHLO|STARTTLS|AUTH [A-Z0-9-]+|MAIL FROM|RCPT TO|DATA|RSET)$/

/** Whether the server answered the mail, and not the connection: then the connection is good for another mail. */
export function answersTheMail(cause: unknown): boolean {
  const { code, responseCode } = detailsOf(cause)
  return (code === 'EENVELOPE' || code === 'EMESSAGE') && responseCode !== 421
}

/**
 * Says what happened, and at which step, in codes alone: the words of a server may repeat what was sent to it, so neither they
 * nor the cause are kept. A refused login or sender (RFC 3463: 5.1.7, 5.1.8)
 * is the admin's to mend, so the mail itself may still succeed.
 */
function smtpError(cause: unknown, doing: string): AccountFlowsError {
  const { permanent, responseCode, response, command, timeoutType, originalCode, code } =
    detailsOf(cause)
  const at = command !== undefined && TELLING.test(command) ? `at ${command}` : `while ${doing}`
  const isForAdmin =
    responseCode === 530 || command === 'MAIL FROM' || /^5\d\d[ -]5\.1\.[78]\b/.test(response ?? '')
  if (permanent && answersTheMail(cause) && !isForAdmin) {
    const reply = replyCodes(responseCode, response)
    return new AccountFlowsError(
      'ERR_MAIL_REFUSED',
      `The mail server refused the mail for good (${reply} ${at})`,
    )
  }
  const reason = responseCode
    ? replyCodes(responseCode, response)
    : (timeoutType ?? originalCode ?? code)
  return new AccountFlowsError(
    'ERR_MAIL_FAILED',
    `The mail was not sent (${reason ?? 'unknown reason'} ${at})`,
  )
}

/** An aborted signal ended it, whatever came of that. */
export function errorOf(
  cause: unknown,
  { aborted, reason }: AbortSignal,
  doing: string,
): AccountFlowsError {
  if (!aborted) return smtpError(cause, doing)
  const isLate = reason instanceof Error && reason.name === 'TimeoutError'
  return new AccountFlowsError(
    'ERR_MAIL_FAILED',
    `The mail was not sent (${isLate ? 'out of time' : 'stopped'} while ${doing})`,
  )
}

function detailsOf(cause: unknown): Partial<NodemailerError> {
  return cause instanceof Error ? cause : {}
}

/** Such as `550 5.1.1`. */
function replyCodes(responseCode: number | undefined, response: string | undefined): string {
  const enhanced = /^\d{3}[ -]([245]\.\d{1,3}\.\d{1,3})(?!\S)/.exec(response ?? '')?.[1]
  return enhanced ? `${responseCode} ${enhanced}` : String(responseCode)
}
