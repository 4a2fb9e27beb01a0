import { smtpSlots, type SmtpSlots } from '../../src/smtp/sender.ts'
import type { SmtpSettings } from '../../src/smtp/settings.ts'
import { startFaultySmtp, type FaultySmtp, type FaultySmtpOptions } from './faulty-smtp.ts'
import { ACCESS_TOKENS } from './no-rotation.ts'
import { movableClock } from './time.ts'

export const CREDENTIALS = { username: 'mailer', password: 'S3cr3t canary' }
export const SENDER = 'no-reply@login.example.com'

/** What the tests of a suite start, and have closed after each: the connections, then their servers. */
export function suiteSmtp() {
  const ends: (() => unknown)[] = []
  const endWith = (end: () => unknown) => void ends.push(end)
  afterEach(async () => {
    for (const end of ends.splice(0).toReversed()) await end()
  })

  return {
    endWith,

    async start(options: FaultySmtpOptions = {}): Promise<FaultySmtp> {
      const server = await startFaultySmtp({ offersAuth: true, ...options })
      endWith(server.close)
      return server
    },

    slotsFor(
      { host, port }: Pick<FaultySmtp, 'host' | 'port'>,
      settings: Partial<SmtpSettings> = CREDENTIALS,
    ): SmtpSlots {
      const slots = smtpSlots(
        { host, port, tls: 'auto', from: SENDER, ...settings },
        movableClock,
        ACCESS_TOKENS,
      )
      endWith(slots.close)
      return slots
    },
  }
}
