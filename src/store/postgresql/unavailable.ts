import { AccountFlowsError } from '../../errors.ts'

const SQLSTATE = /^(?:\d[\dA-Z]|F0|HV|P0|XX)[\dA-Z]{3}$/
/** Of the connection, its resources, an operator's intervention, the system; and of a standby, which only reads. */
const UNAVAILABLE = /^(?:08|53|57|58|25006)/
/** A deadlock, or two transactions that cannot be put in an order. */
const ENDED_FOR_ANOTHER = new Set(['40P01', '40001'])

/**
 * The answer of the database. A statement that was ended for another one is sent again.
 *
 * @throws AccountFlowsError `ERR_STORE_UNAVAILABLE` where the database cannot be reached; every other error as it is.
 */
export async function answeredBy<T>(ask: () => Promise<T>, turns: number): Promise<T> {
  try {
    return await ask()
  } catch (error) {
    const state = stateOf(error)
    if (turns > 1 && state !== undefined && ENDED_FOR_ANOTHER.has(state))
      return answeredBy(ask, turns - 1)
    if (state !== undefined && !UNAVAILABLE.test(state)) throw error
    // Without the message, which tells the address of the database.
    const message = 'PostgreSQL cannot be reached, or does not answer in time'
    throw new AccountFlowsError('ERR_STORE_UNAVAILABLE', message, { cause: error })
  }
}

/** The SQLSTATE that the database told. `undefined`: it told none, or was not reached. */
function stateOf(error: unknown): string | undefined {
  const code: unknown = error instanceof Error ? Reflect.get(error, 'code') : undefined
  return typeof code === 'string' && SQLSTATE.test(code) ? code : undefined
}
