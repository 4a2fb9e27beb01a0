import { AccountFlowsError } from '../../src/errors.ts'
import type { SmtpSlots } from '../../src/smtp/sender.ts'
import type { Settings } from '../../src/settings/table.ts'
import type { SmtpSettings } from '../../src/smtp/settings.ts'
import type { OutgoingMail } from '../../src/ports/index.ts'

export const MAIL: OutgoingMail = {
  to: 'Ada@example.org',
  subject: 'Set a new password',
  text: 'Open https://id.example.com/x?token=t1 now. Grüße',
  html: '<p>Open <a href="https://id.example.com/x?token=t1">this</a></p>',
}

/** The settings that these come from. */
export function settingsLike(smtp: SmtpSettings): Settings {
  return {
    smtpHost: smtp.host,
    smtpPort: smtp.port,
    smtpTls: smtp.tls,
    smtpFrom: smtp.from,
    smtpUsername: smtp.username,
    smtpPassword: smtp.password,
  } as Settings
}

export async function sendThrough(
  slots: SmtpSlots,
  mail = MAIL,
  signal = new AbortController().signal,
): Promise<void> {
  const connection = await slots.connect(signal)
  try {
    await connection.send(mail)
  } finally {
    connection.release()
  }
}

/** The error with which it failed; fails where it did not, or with another kind of error. */
export async function failureOf(trying: Promise<unknown>): Promise<AccountFlowsError> {
  const error: unknown = await trying.then(
    () => new Error('It went well'),
    (reason: unknown) => reason,
  )
  if (!(error instanceof AccountFlowsError)) throw error
  return error
}
