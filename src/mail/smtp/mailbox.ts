import { randomUUID } from 'node:crypto'
import { systemClock } from '../../clock.ts'
import type { MailTransport, TransportMail } from '../../contract/index.ts'

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
