import { setTimeout as sleep } from 'node:timers/promises'
import type { Connection } from './connection.ts'
import { exitCodeOf, exitCodes } from './exit-codes.ts'
import { outcomeText } from './mail-words.ts'
import { withProgress } from './output.ts'
import type { Accepted, AccountQuery, MailOutcome } from '../src/admin/client.ts'

const INTERVAL_MS = 500
/** For one answer, also when the time is over. */
const LEAST_MS = 5_000

export type Ask = 'sendReset' | 'inviteUser' | 'sendVerification'

/** @param wait - how many seconds. */
export async function sendAndWait(
  ask: Ask,
  account: AccountQuery,
  connection: Connection,
  wait: number,
): Promise<void> {
  const { admin, output, run } = connection
  const accepted = await admin[ask](account)
  if (wait === 0) return output.answer(accepted, acceptedText)
  if (!output.isJson) output.note(acceptedText(accepted))
  const outcome = await awaitMail(connection, accepted.mail_id, Date.now() + wait * 1_000)
  output.answer(outcome, outcomeText)
  if (outcome.state !== 'sent') run.exitCode = exitCodes.refused
}

function acceptedText({ mail_id }: Accepted): string {
  return `The mail was asked for: ${mail_id}`
}

/** As soon as it is final, or what is so at the end. A server that is away meanwhile may come back. */
function awaitMail({ admin, run }: Connection, mailId: string, end: number): Promise<MailOutcome> {
  const left = () => Math.max(0, end - Date.now())
  return withProgress(run.io, async (tell) => {
    for (;;) {
      try {
        const signal = AbortSignal.timeout(Math.max(LEAST_MS, left()))
        const outcome = await admin.mailOutcome({ mail_id: mailId }, { signal })
        if (outcome.state !== 'waiting' || left() === 0) return outcome
      } catch (error) {
        if (exitCodeOf(error) !== exitCodes.unreachable || left() === 0) throw error
      }
      tell(`The mail waits to be sent (${Math.ceil(left() / 1_000)} s) …`)
      await sleep(Math.min(INTERVAL_MS, left()))
    }
  })
}
