import { within, type Clock } from '../clock.ts'
import { AccountFlowsError } from '../errors.ts'

const WAIT_MS = 5_000

/**
 * Waits 5 seconds at most: an admin who asks why nothing works is not kept waiting as long as the driver of a database waits.
 * Throws `ERR_STORE_UNAVAILABLE`.
 */
export async function inTime<T>(clock: Clock, work: Promise<T>): Promise<T> {
  const answer = await within(clock, WAIT_MS, work)
  if (answer !== 'late') return answer
  throw new AccountFlowsError(
    'ERR_STORE_UNAVAILABLE',
    'The database does not answer in time. Try again in a minute',
  )
}
