import type { MailTransport } from '../../src/index.ts'

type Answer = { MessageID: string; ErrorCode: number; Message: string }

/** Sends through Postmark (https://postmarkapp.com/developer/api/email-api). `smtp_from` names the sender. */
export function postmark(token: string, api = 'https://api.postmarkapp.com'): MailTransport {
  return {
    async send({ from, replyTo, to, subject, text, html, headers }, signal) {
      if (!from) throw new Error('smtp_from is not set')
      const From = `"${from.name.replaceAll(/["\\]/g, '')}" <${from.address}>`
      const Headers = Object.entries(headers).map(([Name, Value]) => ({ Name, Value }))
      const bodies = { TextBody: text, HtmlBody: html }
      const mail = { From, To: to, ReplyTo: replyTo, Subject: subject, ...bodies, Headers }
      const response = await fetch(`${api}/email`, {
        method: 'POST',
        headers: { 'x-postmark-server-token': token, 'content-type': 'application/json' },
        body: JSON.stringify(mail),
        signal,
      })
      const answer: Answer = Object(await response.json())
      if (answer.ErrorCode === 0) return { accepted: true, id: answer.MessageID }
      // 406: an inactive recipient. 300: an address is wrong. The sender's is yours to mend, as is all else, and the mail waits.
      const isTo = answer.ErrorCode === 300 && /'To' address/.test(answer.Message)
      const isForGood = response.status === 422 && (answer.ErrorCode === 406 || isTo)
      return { accepted: false, isForGood, reason: `${response.status} ${answer.Message}` }
    },
  }
}
