import type { AddressInfo } from 'node:net'
import { simpleParser } from 'mailparser'
import { SMTPServer } from 'smtp-server'
import { eventually } from '../support/eventually.ts'

/** The points of an SMTP dialogue, in their order. */
export const SMTP_POINTS = [
  'connected',
  'sender named',
  'recipient named',
  'data begun',
  /** All of it is there, and kept; the client does not know yet. */
  'data complete',
  'accepted',
] as const

export type SmtpPoint = (typeof SMTP_POINTS)[number]

export interface ReceivedLink {
  to: string
  link: string
}

/** A real SMTP server that keeps what it gets, and lets a test act in the middle of a dialogue. */
export interface InterruptibleMailServer {
  port: number
  /** The links of all mails, in the order of their arrival. */
  links: ReceivedLink[]
  linkTo(address: string): Promise<string>
  /**
   * Does `act` at that point of the dialogue about this recipient, once. Before the recipient is named that may be another's;
   * where a connection is used again, and never reaches that point, at the next one.
   */
  interrupt(
    point: SmtpPoint,
    recipient: string,
    act: () => Promise<unknown>,
  ): { happened: Promise<boolean>; cancel(): void }
  close(): Promise<void>
}

interface Armed {
  point: SmtpPoint
  recipient: string
  strike(): Promise<void>
}

export async function startInterruptibleMailServer(): Promise<InterruptibleMailServer> {
  const links: ReceivedLink[] = []
  const armed = new Set<Armed>()

  async function reach(point: SmtpPoint, recipient?: string): Promise<void> {
    for (const each of armed) {
      const isThere = SMTP_POINTS.indexOf(point) >= SMTP_POINTS.indexOf(each.point)
      if (!isThere || (recipient !== undefined && recipient !== each.recipient)) continue
      armed.delete(each)
      await each.strike()
    }
  }

  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS', 'AUTH'],
    closeTimeout: 1_000,
    onConnect: (_session, callback) => void reach('connected').then(() => callback(), callback),
    onMailFrom: (_address, _session, callback) =>
      void reach('sender named').then(() => callback(), callback),
    onRcptTo: ({ address }, _session, callback) =>
      void reach('recipient named', address).then(() => callback(), callback),
    onData(stream, { envelope }, callback) {
      const to = envelope.rcptTo[0]?.address ?? ''
      const receive = async () => {
        await reach('data begun', to)
        const mail = await simpleParser(stream)
        const link = /https?:\/\/\S+/.exec(mail.text ?? '')?.[0]
        if (link !== undefined) links.push({ to, link })
        await reach('data complete', to)
        callback()
        await reach('accepted', to)
      }
      receive().catch(callback)
    },
  })
  // A process that is killed leaves its connections in the middle of something.
  server.on('error', () => {})
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.server.address() as AddressInfo

  return {
    port,
    links,
    linkTo: (address) =>
      eventually(`a link to ${address}`, () => links.find(({ to }) => to === address)?.link),

    interrupt(point, recipient, act) {
      let settle: (is: boolean) => void = () => {}
      const happened = new Promise<boolean>((resolve) => (settle = resolve))
      const entry: Armed = { point, recipient, strike: () => act().then(() => settle(true)) }
      armed.add(entry)
      return {
        happened,
        cancel() {
          if (armed.delete(entry)) settle(false)
        },
      }
    },

    close: () => new Promise((resolve) => server.close(() => resolve())),
  }
}
