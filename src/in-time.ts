import { setTimeout as sleep } from 'node:timers/promises'
import { AccountFlowsError } from './errors.ts'

const WAIT_MS = 5_000

/**
 * Waits 5 seconds at most: an admin who asks why nothing works is not kept waiting as long as the driver of a database waits.
 * Throws `ERR_STORE_UNAVAILABLE`.
 */
export async function inTime<T>(work: Promise<T>): Promise<T> {
  const late = sleep(WAIT_MS, undefined, { ref: false }).then(() => {
    throw new AccountFlowsError('ERR_STORE_UNAVAILABLE', 'The database does not answer in time')
  })
  return Promise.race([work, late])
}
