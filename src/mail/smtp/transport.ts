import { randomUUID } from 'node:crypto'
import { systemClock, unlessAborted } from '../../clock.ts'
import { AccountFlowsError } from '../../errors.ts'
import type { MailTransport, TransportMail } from '../../contract/index.ts'
import { OUT_OF_TIME, type OutgoingMail } from '../sending.ts'
import { isSmtpConfigured, type Settings } from '../../settings/table.ts'
import { defined } from '../../store/kind.ts'
import { headersOf, mustBeAddress, newMessageId } from './compose.ts'
import { errorOf, harmless, sharesPiece } from './answers.ts'

const ID = /^[!-~]{1,200}$/
/** A code of an operating system or a mail server. No token is this short. */
const CODE = /^[\w. ]{1,30}$/
const MAX_CAUSES = 5

/** Whether mails go to this transport under these settings. A stand-in gives way to SMTP. */
export const isInUse = (transport: MailTransport | undefined, settings: Settings) =>
  transport !== undefined && !(transport.isStandIn && isSmtpConfigured(settings))

/** Throws the same errors as `MailSlot.send`. */
export async function handOver(
  transport: MailTransport,
  mail: OutgoingMail,
  settings: Settings,
  signal: AbortSignal,
) {
  const { to, text, html, kind } = mail
  mustBeAddress(to)
  const { smtpFrom: address, smtpFromName: name = '', mailReplyTo: replyTo } = settings
  const from = address === undefined ? undefined : { name, address }
  const messageId = from && newMessageId(from.address)
  // A transport may write the subject into a header as it is.
  const subject = mail.subject.replaceAll(/\p{Cc}+/gu, ' ')
  const headers = headersOf(kind)
  const handed = { ...defined({ from, replyTo, messageId }), to, subject, text, html, headers }
  let answer: unknown
  try {
    answer = await unlessAborted(signal, async () => transport.send(handed, signal))
  } catch (cause) {
    const { code, fault } = errorOf(cause, signal, 'transport')
    const why = causesOf(cause).some(isTimeout) ? OUT_OF_TIME : String(fault?.code)
    const reason = signal.aborted ? '' : reasonOf(cause)
    throw failure(code === 'ERR_MAIL_REFUSED', CODE.test(why) ? why : 'unknown reason', reason)
  }
  const { accepted, id, isForGood, reason }: Record<string, unknown> = Object(answer)
  if (accepted === true) {
    const isKept = typeof id === 'string' && ID.test(id) && !sharesPiece(id, `${text}${html}`)
    return defined({ messageId, queueId: isKept ? id : undefined })
  }
  // The mail may have left: a mistake in the transport must not send it again and again.
  if (accepted !== false) {
    throw failure(true, 'no answer', 'Its answer has neither accepted: true nor accepted: false.')
  }
  const isRefused = isForGood === true
  throw failure(isRefused, isRefused ? 'refused' : 'try again', textOf(reason))
}

function failure(isRefused: boolean, code: string, reason: string): AccountFlowsError {
  const reply = harmless(reason)
  const outcome = isRefused ? 'refused the mail for good' : 'did not accept the mail'
  const fault = { step: 'transport', code, ...(reply !== '' && { reply }) }
  const errorCode = isRefused ? 'ERR_MAIL_REFUSED' : 'ERR_MAIL_FAILED'
  return new AccountFlowsError(errorCode, `The transport ${outcome} (${code})`, { fault })
}

const textOf = (reason: unknown) => (typeof reason === 'string' ? reason : '')

/** An error of `fetch` gives the reason in its cause only. */
const reasonOf = (thrown: unknown): string =>
  causesOf(thrown)
    .map(({ message }) => textOf(message))
    .join(': ')

function causesOf(thrown: unknown): Error[] {
  const causes: Error[] = []
  for (let cause = thrown; cause instanceof Error; cause = cause.cause)
    if (causes.push(cause) === MAX_CAUSES) break
  return causes
}

/** Not a time-out of the connection: then nothing was handed over. */
const isTimeout = (error: Error): boolean =>
  error.name === 'TimeoutError' ||
  /^UND_ERR_(HEADERS|BODY)_TIMEOUT$/.test(String(Reflect.get(error, 'code')))

/** A mail that `memoryMailbox` keeps. */
export interface ReceivedMail extends Pick<TransportMail, 'to' | 'subject' | 'text' | 'html'> {
  id: string
  receivedAt: Date
}

/** A transport for development: delivers nothing, keeps the newest mails in memory. */
export function memoryMailbox({ limit = 200, clock = systemClock } = {}): MailTransport & {
  messages(): ReceivedMail[]
} {
  const kept: ReceivedMail[] = []

  return {
    isStandIn: true,

    async send({ to, subject, text, html }) {
      kept.unshift({ to, subject, text, html, id: randomUUID(), receivedAt: clock.now() })
      kept.splice(limit)
      return { accepted: true }
    },

    /** Newest first. */
    messages: () => [...kept],
  }
}
