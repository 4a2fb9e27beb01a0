import { newId } from '../crypto/token.ts'
import type { PendingLoginStore } from '../ports/index.ts'

/**
 * Does the work in the one turn of a login that waits. Work that fails gives the turn back, and so does a turn of which nobody
 * knows whether it was taken: each has a name, so that nobody gives back the turn of another.
 *
 * @returns `false`: the turn was taken before, and nothing was done.
 */
export async function inLoginTurn(
  pendingLogins: Pick<PendingLoginStore, 'takeTurn' | 'returnTurn'>,
  pendingLoginId: string,
  at: Date,
  work: () => Promise<void>,
): Promise<boolean> {
  const turn = newId()
  try {
    if (!(await pendingLogins.takeTurn(pendingLoginId, at, turn))) return false
    await work()
    return true
  } catch (error) {
    // Where that fails too, the turn stays taken: the next sign-in goes through.
    await pendingLogins.returnTurn(pendingLoginId, turn).catch(() => {})
    throw error
  }
}
