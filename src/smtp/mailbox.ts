import { randomUUID } from 'node:crypto'
import { systemClock } from '../clock.ts'
import type { Mailer, OutgoingMail } from '../ports/index.ts'

export interface ReceivedMail extends OutgoingMail {
  id: string
  receivedAt: Date
}

/** The development mailbox: delivers nothing, keeps the newest mails in memory. */
export function memoryMailbox({ limit = 200, clock = systemClock } = {}): Mailer & {
  messages(): ReceivedMail[]
} {
  const kept: ReceivedMail[] = []

  return {
    async send({ to, subject, text, html }) {
      kept.unshift({ to, subject, text, html, id: randomUUID(), receivedAt: clock.now() })
      kept.splice(limit)
    },

    /** Newest first. */
    messages: () => [...kept],
  }
}
