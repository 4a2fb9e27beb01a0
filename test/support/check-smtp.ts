/**
 * A process of its own, for what is set when a process starts: checks each of the SMTP settings in its argument, a JSON array, by
 * sending a mail, and prints what each check found as another.
 */
import { checkSmtp } from '../../src/mail/smtp-check.ts'
import type { SmtpSettings } from '../../src/mail/smtp-settings.ts'
import { MAIL } from './mail-sending.ts'
import { systemClock } from '../../src/clock.ts'

const wanted = JSON.parse(process.argv[2] ?? '[]') as SmtpSettings[]
const { to, ...mail } = MAIL
const found = await Promise.all(
  wanted.map((settings) =>
    checkSmtp(settings, { to, mail, signal: AbortSignal.timeout(20_000) }, systemClock),
  ),
)
process.stdout.write(JSON.stringify(found))
