import type { SMTPConnectionSendInfo } from 'nodemailer/lib/smtp-connection'
import type { SentMail } from '../ports/index.ts'

/**
 * What the mail is known by to whoever runs the mail server. The server has seen the link by then, so that nothing of its answer is
 * kept but one id, and that only where the mail itself does not hold it.
 */
export function receiptOf(
  messageId: string,
  answer: Partial<SMTPConnectionSendInfo> | undefined,
  isInMail: (id: string) => boolean,
): SentMail {
  const { response = '', serverMessageId } = answer ?? {}
  const queueId = queueIdOf(response, isInMail)
  const isReplaced =
    serverMessageId !== undefined && !isInMail(serverMessageId.replaceAll(/[<>]/g, ''))
  return {
    messageId: isReplaced ? serverMessageId : messageId,
    ...(queueId !== undefined && { queueId }),
  }
}

/** As Postfix and Exim say it, or else the first word that looks like one: it has a digit, and is no number. */
function queueIdOf(response: string, isInMail: (id: string) => boolean): string | undefined {
  const words = response.replace(/^\d{3}[ -](\d\.\d{1,3}\.\d{1,3}\s)?/, '')
  const named = /\b(?:queued as |id=)([\w.-]{4,80})/i.exec(words)?.[1]
  if (named !== undefined) return isInMail(named) ? undefined : named
  const ids = words.match(/[\w.-]{6,80}/g) ?? []
  return ids.find((id) => /\d/.test(id) && /\D/.test(id) && !isInMail(id))
}
