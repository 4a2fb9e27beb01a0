import { randomUUID } from 'node:crypto'
import type { Mailer, OutgoingMail } from '../ports.ts'

export interface ReceivedMail extends OutgoingMail {
  id: string
  receivedAt: Date
}

/** The development mailbox: delivers nothing, keeps the newest mails in memory. */
export function memoryMailbox({ limit = 200 }: { limit?: number } = {}): Mailer & {
  messages(): ReceivedMail[]
} {
  const kept: ReceivedMail[] = []

  return {
    async send({ to, subject, text, html }) {
      kept.unshift({ to, subject, text, html, id: randomUUID(), receivedAt: new Date() })
      kept.splice(limit)
    },

    /** Newest first. */
    messages: () => [...kept],
  }
}
