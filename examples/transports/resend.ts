import type { MailTransport } from '../../src/index.ts'

/** Sends through Resend (https://resend.com/docs/api-reference/emails/send-email). `smtp_from` names the sender. */
export function resend(apiKey: string, api = 'https://api.resend.com'): MailTransport {
  return {
    async send({ from, replyTo, to, subject, text, html, headers }, signal) {
      if (!from) throw new Error('smtp_from is not set')
      const name = from.name.replaceAll(/["\\]/g, '')
      const response = await fetch(`${api}/emails`, {
        method: 'POST',
        headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
        body: JSON.stringify({
          from: `"${name}" <${from.address}>`,
          to: [to],
          reply_to: replyTo,
          subject,
          text,
          html,
          headers,
        }),
        signal,
      })
      const answer: { id: string; name: string; message: string } = Object(await response.json())
      if (response.ok) return { accepted: true, id: answer.id }
      // A wrong key, sender or limit is no fault of this mail: it waits.
      const isForGood = response.status === 422 && /`to`/.test(answer.message)
      return { accepted: false, isForGood, reason: `${response.status} ${answer.message}` }
    },
  }
}
