import { createTransport } from 'nodemailer'
import type { SESTransportOptions } from 'nodemailer/lib/ses-transport'
import type { MailTransport } from '../../src/index.ts'

/**
 * Sends through Amazon SES by nodemailer's transport. The SDK signs, and finds its credentials:
 * `ses({ sesClient: new SESv2Client({ region }), SendEmailCommand })`, both of `@aws-sdk/client-sesv2`.
 */
export function ses(SES: SESTransportOptions['SES']): MailTransport {
  const mailer = createTransport({ SES })
  return {
    async send(mail) {
      try {
        return { accepted: true, id: (await mailer.sendMail(mail)).response }
      } catch (error) {
        if (!(error instanceof Error) || error.name !== 'MessageRejected') throw error
        // A sender that is not verified yet is yours to mend: the mail waits.
        const isForGood = !/not verified/.test(error.message)
        return { accepted: false, isForGood, reason: error.message }
      }
    },
  }
}
