import { setTimeout as sleep } from 'node:timers/promises'
import type { AdminClient, MailOutcome } from '../src/admin/client.ts'

const INTERVAL_MS = 500
const CLEARED_LINE = '\r\u001B[K'

/** What became of a mail, as soon as that is final; after the time given: what is so then. */
export async function awaitMail(
  admin: AdminClient,
  mailId: string,
  seconds: number,
): Promise<MailOutcome> {
  const end = Date.now() + seconds * 1_000
  const { stderr } = process
  for (;;) {
    const outcome = await admin.mailOutcome({ mail_id: mailId })
    const left = end - Date.now()
    if (outcome.state !== 'waiting' || left <= 0) {
      if (stderr.isTTY) stderr.write(CLEARED_LINE)
      return outcome
    }
    if (stderr.isTTY) {
      stderr.write(`${CLEARED_LINE}The mail waits to be sent (${Math.ceil(left / 1_000)} s) …`)
    }
    await sleep(Math.min(INTERVAL_MS, left))
  }
}
