import type { SMTPConnectionSendInfo } from 'nodemailer/lib/smtp-connection'
import type { SentMail } from '../sending.ts'

/**
 * The id of the mail at the mail server. The server has seen the link by then. So only one id of its answer is kept, and only
 * if it shares no long piece with the mail.
 */
export function receiptOf(
  messageId: string,
  answer: Partial<SMTPConnectionSendInfo> | undefined,
  isInMail: (id: string) => boolean,
): SentMail {
  const { response = '', serverMessageId } = answer ?? {}
  const isOfMail = (id: string) => sharesPiece(id, isInMail)
  const queueId = queueIdOf(response, isOfMail)
  const isReplaced =
    serverMessageId !== undefined && !isOfMail(serverMessageId.replaceAll(/[<>]/g, ''))
  return {
    messageId: isReplaced ? serverMessageId : messageId,
    ...(queueId !== undefined && { queueId }),
  }
}

/** Whether it is in the mail, or a long piece of it is. */
export function sharesPiece(id: string, isInMail: (piece: string) => boolean): boolean {
  return isInMail(id) || piecesOf(id).some(isInMail)
}

/** So many letters of a token are worth keeping secret. */
const PIECE = 20

function piecesOf(id: string): string[] {
  return (id.match(/[\w-]+/g) ?? []).flatMap((run) =>
    Array.from({ length: Math.max(run.length - PIECE + 1, 0) }, (_, at) =>
      run.slice(at, at + PIECE),
    ),
  )
}

/** As Postfix and Exim say it, or else the first word that looks like one: it has a digit, and is no number. No token fits into 40 letters. */
function queueIdOf(response: string, isOfMail: (id: string) => boolean): string | undefined {
  const words = response.replace(/^\d{3}[ -](\d\.\d{1,3}\.\d{1,3}\s)?/, '')
  const isKept = (id: string) => id.length <= 40 && !isOfMail(id)
  const named = /\b(?:queued as |id=)([\w.-]{4,})/i.exec(words)?.[1]
  if (named !== undefined) return isKept(named) ? named : undefined
  const ids = words.match(/[\w.-]{6,}/g) ?? []
  return ids.find((id) => /\d/.test(id) && /\D/.test(id) && isKept(id))
}
