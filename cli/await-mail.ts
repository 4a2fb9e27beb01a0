import { setTimeout as sleep } from 'node:timers/promises'
import type { Connection } from './connection.ts'
import { exitCodeOf, exitCodes } from './exit-codes.ts'
import { withProgress } from './output.ts'
import type { MailOutcome } from '../src/admin/client.ts'

const INTERVAL_MS = 500
/** For one answer, also when the time is over. */
const LEAST_MS = 5_000

/**
 * What became of a mail, as soon as that is final; after the time given: what is so then. A server that is away meanwhile may come
 * back.
 *
 * @throws AdminApiError where it is away at the end.
 */
export function awaitMail(
  { admin, run }: Connection,
  mailId: string,
  seconds: number,
): Promise<MailOutcome> {
  const end = Date.now() + seconds * 1_000
  return withProgress(run.io, async (tell) => {
    for (;;) {
      const outcome = await outcomeOf()
      if (outcome !== undefined) return outcome
      const left = Math.max(0, end - Date.now())
      tell(`The mail waits to be sent (${Math.ceil(left / 1_000)} s) …`)
      await sleep(Math.min(INTERVAL_MS, left))
    }
  })

  /** `undefined`: ask again. */
  async function outcomeOf(): Promise<MailOutcome | undefined> {
    try {
      const signal = AbortSignal.timeout(Math.max(LEAST_MS, end - Date.now()))
      const outcome = await admin.mailOutcome({ mail_id: mailId }, { signal })
      return outcome.state === 'waiting' && Date.now() < end ? undefined : outcome
    } catch (error) {
      const mayComeBack = exitCodeOf(error) === exitCodes.unreachable && Date.now() < end
      if (mayComeBack) return undefined
      throw error
    }
  }
}
