/**
 * A process of its own, for what is set when a process starts: sends one mail under each of the SMTP settings in its argument, a JSON
 * array, or checks them with it, and prints the outcomes as another.
 */
import { systemClock } from '../../src/clock.ts'
import { AccountFlowsError } from '../../src/errors.ts'
import { createMailCheck } from '../../src/smtp/check.ts'
import { smtpSlots } from '../../src/smtp/sender.ts'
import type { SmtpSettings } from '../../src/smtp/settings.ts'
import { MAIL, sendThrough, settingsLike } from './mail-sending.ts'
import { ACCESS_TOKENS, NO_ROTATION } from './no-rotation.ts'

async function send(settings: SmtpSettings): Promise<string> {
  const slots = smtpSlots(settings, systemClock, ACCESS_TOKENS)
  try {
    await sendThrough(slots, MAIL, AbortSignal.timeout(20_000))
    return 'sent'
  } catch (error) {
    if (!(error instanceof AccountFlowsError)) throw error
    return `${error.code}: ${error.message}`
  } finally {
    slots.close()
  }
}

async function check(settings: SmtpSettings) {
  const { to, ...mail } = MAIL
  const [, ...steps] = await createMailCheck(systemClock, NO_ROTATION)(settingsLike(settings), {
    to,
    mail,
  })
  return steps
}

const [, , work, wanted = '[]'] = process.argv
const all = JSON.parse(wanted) as SmtpSettings[]
const outcomes = await Promise.all(all.map(async (each) => (work === 'send' ? send : check)(each)))
process.stdout.write(JSON.stringify(outcomes))
