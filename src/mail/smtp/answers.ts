/** The answer of a mail server: an error, the id of the mail, and words that may be shown. It keeps no secrets. */
import type { NodemailerError } from 'nodemailer'
import type { SMTPConnectionSendInfo } from 'nodemailer/lib/smtp-connection'
import { AccountFlowsError, atStep, type MailFault } from '../../errors.ts'
import type { Settings } from '../../settings/table.ts'
import { defined } from '../../store/kind.ts'
import { OUT_OF_TIME } from '../sending.ts'

/** The commands whose names say more than the step under way. */
const TELLING = /^(?:EHLO|STARTTLS|AUTH [A-Z0-9-]+|MAIL FROM|RCPT TO|DATA|RSET)$/
const MAX_CHARS = 500
const MAX_KEPT = 200
const MAX_READ = 2_000
/** A piece of a token with this many characters must stay secret. */
const PIECE = 20

/** Whether the server refused the mail rather than the connection. Then the connection is good for another mail. */
export function answersTheMail(cause: unknown): boolean {
  const { code, responseCode } = detailsOf(cause)
  return (code === 'EENVELOPE' || code === 'EMESSAGE') && responseCode !== 421
}

/** The message is logged, so it has codes only; the server's words are beside it, for admins. If the signal aborted, that is the reason. */
export function errorOf(cause: unknown, signal: AbortSignal, doing: string, settings?: Settings) {
  if (signal.aborted) {
    const reason: unknown = signal.reason
    const isLate = reason instanceof Error && reason.name === 'TimeoutError'
    return failed({ code: isLate ? OUT_OF_TIME : 'stopped', step: doing })
  }
  if (isNoToken(cause)) return cause
  const fault = faultOf(cause, doing, settings)
  if (!isForGood(cause)) return failed(fault)
  const message = `The mail server refused the mail for good (${fault.code} ${atStep(fault)})`
  return new AccountFlowsError('ERR_MAIL_REFUSED', message, { fault })
}

function failed(fault: MailFault): AccountFlowsError {
  const message = `The mail was not sent (${fault.code} ${atStep(fault)})`
  return new AccountFlowsError('ERR_MAIL_FAILED', message, { fault })
}

/** No access token came. The code is short; of the endpoint's words it contains only the error code. */
export const noToken = (code: string) => failed({ code, step: 'token' })

export function isNoToken(error: unknown): error is AccountFlowsError {
  return error instanceof AccountFlowsError && error.fault?.step === 'token'
}

/** Whether the mail can never succeed. What an admin can mend may: a refused login or sender (RFC 3463: 5.1.7, 5.1.8). */
function isForGood(cause: unknown): boolean {
  const { response = '', responseCode = 0, command, permanent } = detailsOf(cause)
  const isForAdmin =
    responseCode === 530 || command === 'MAIL FROM' || /^5\d\d[ -]5\.1\.[78]\b/.test(response)
  // The host's nodemailer may be older, and not set `permanent`.
  return (permanent ?? responseCode >= 500) && answersTheMail(cause) && !isForAdmin
}

function faultOf(cause: unknown, doing: string, settings?: Settings): MailFault {
  const { code, responseCode, response = '', command, timeoutType, originalCode } = detailsOf(cause)
  const step = command !== undefined && TELLING.test(command) ? command : doing
  if (!responseCode) return { step, code: timeoutType ?? originalCode ?? code ?? 'unknown reason' }
  // A server that answers the whole mail has seen its link; one that answers a login has seen the password.
  const isTold = settings && response && code !== 'EMESSAGE' && !step.startsWith('AUTH')
  return {
    step,
    code: codesOf(response) || String(responseCode),
    ...(isTold && { reply: harmless(response, settings) }),
  }
}

const detailsOf = (cause: unknown): Partial<NodemailerError> =>
  cause instanceof Error ? cause : {}

/** Such as `550 5.1.1`. */
function codesOf(reply: string): string {
  const [codes = ''] = /^\d{3}(?:[ -][245]\.\d{1,3}\.\d{1,3}(?!\S))?/.exec(reply) ?? []
  return codes.replace('-', ' ')
}

/** The server has seen the link by then. So only one id of its answer is kept, and only if it shares no long piece with what was sent. */
export function receiptOf(messageId: string, sent: string, reply?: SMTPConnectionSendInfo) {
  const { response = '', serverMessageId } = reply ?? {}
  const isOfMail = (id: string) => sharesPiece(id, sent)
  const queueId = queueIdOf(response, isOfMail)
  const isReplaced =
    serverMessageId !== undefined && !isOfMail(serverMessageId.replaceAll(/[<>]/g, ''))
  return { messageId: isReplaced ? serverMessageId : messageId, ...defined({ queueId }) }
}

/** Whether the text contains the id, or a long piece of it. */
export function sharesPiece(id: string, text: string): boolean {
  const pieces = (id.match(/[\w-]+/g) ?? []).flatMap((run) =>
    Array.from({ length: Math.max(run.length - PIECE + 1, 0) }, (_, at) =>
      run.slice(at, at + PIECE),
    ),
  )
  return [id, ...pieces].some((piece) => text.includes(piece))
}

/** The id as Postfix and Exim name it, or else the first word that looks like one. No token fits into 40 characters. */
function queueIdOf(response: string, isOfMail: (id: string) => boolean): string | undefined {
  const words = response.replace(/^\d{3}[ -](\d\.\d{1,3}\.\d{1,3}\s)?/, '')
  const isKept = (id: string) => id.length <= 40 && !isOfMail(id)
  const named = /\b(?:queued as |id=)([\w.-]{4,})/i.exec(words)?.[1]
  if (named !== undefined) return isKept(named) ? named : undefined
  const ids = words.match(/[\w.-]{6,}/g) ?? []
  return ids.find((id) => /\d/.test(id) && /\D/.test(id) && isKept(id))
}

/** Makes a reply printable and short. If it repeats the password, as it is or as it was sent, only the codes stay. */
export function shown(reply: string, username = '', password = ''): string {
  const text = reply
    .replaceAll(/\n\d{3}[ -]/g, ' ')
    .replace(/^(\d{3})-/, '$1 ')
    .replaceAll(/[\p{Cc}\p{Z}]+/gu, ' ')
    .replaceAll(/\p{C}/gu, '')
    .trim()
  const base64 = (secret: string) => Buffer.from(secret).toString('base64')
  const pair = `\0${username}\0${password}`
  const bearer = `user=${username}\u0001auth=Bearer ${password}\u0001\u0001`
  const secrets = [password, ...[password, pair, bearer].map(base64)]
  const isTelling = password !== '' && secrets.some((each) => `${reply}\n${text}`.includes(each))
  return isTelling ? `${codesOf(text)} …`.trim() : text.slice(0, MAX_CHARS)
}

/** Makes one short line, without addresses or anything that could be a token. Its author may have seen the token of an earlier mail. */
export function harmless(text: string, settings?: Settings): string {
  return shown(text.slice(0, MAX_READ), settings?.smtpUsername, settings?.smtpPassword)
    .replaceAll(/[^\s<>]+/g, (word) => (/@|%40/.test(word) ? '…' : word))
    .replaceAll(/[\w-]{20,}/g, '…')
    .slice(0, MAX_KEPT)
}
