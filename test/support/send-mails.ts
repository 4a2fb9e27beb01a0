/**
 * A process of its own, for what is set when a process starts: sends one mail under each of the settings in its argument, a JSON
 * array, and prints the outcomes as another.
 */
import { AccountFlowsError } from '../../src/errors.ts'
import { smtpPool } from '../../src/mail/smtp-pool.ts'
import type { SmtpSettings } from '../../src/mail/smtp-settings.ts'
import { MAIL, sendThrough } from './mail-sending.ts'
import { systemClock } from '../../src/clock.ts'

const wanted = JSON.parse(process.argv[2] ?? '[]') as SmtpSettings[]

const outcomes = await Promise.all(
  wanted.map(async (settings) => {
    const pool = smtpPool(settings, systemClock)
    try {
      await sendThrough(pool, MAIL, AbortSignal.timeout(20_000))
      return 'sent'
    } catch (error) {
      if (!(error instanceof AccountFlowsError)) throw error
      return `${error.code}: ${error.message}`
    } finally {
      pool.close()
    }
  }),
)
process.stdout.write(JSON.stringify(outcomes))
