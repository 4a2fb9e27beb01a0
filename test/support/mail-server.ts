import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { simpleParser, type ParsedMail } from 'mailparser'
import { SMTPServer } from 'smtp-server'

export interface ReceivedMail {
  to: string[]
  mail: ParsedMail
  /** The one link in the text part. */
  link: string
}

/** A real SMTP server that keeps what it gets. */
export interface MailServer {
  port: number
  mails: ReceivedMail[]
  /** Waits for the mail number `count` (from 1) to this address. */
  mailTo(address: string, count?: number): Promise<ReceivedMail>
  close(): Promise<void>
}

export async function startMailServer(): Promise<MailServer> {
  const mails: ReceivedMail[] = []
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS', 'AUTH'],
    onData(stream, session, callback) {
      simpleParser(stream).then((mail) => {
        const to = session.envelope.rcptTo.map(({ address }) => address)
        const link = /https?:\/\/\S+/.exec(mail.text ?? '')?.[0] ?? ''
        mails.push({ to, mail, link })
        callback()
      }, callback)
    },
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.server.address() as AddressInfo

  return {
    port: address.port,
    mails,
    async mailTo(recipient, count = 1) {
      for (let waited = 0; waited < 10_000; waited += 20) {
        const found = mails.filter(({ to }) => to.includes(recipient))[count - 1]
        if (found) return found
        await sleep(20)
      }
      throw new Error(`no mail number ${count} to ${recipient} within 10 s`)
    },
    close: () => new Promise((resolve) => server.close(() => resolve())),
  }
}
