/** Changes of records, one process at a time: those that wait for the same record are written by one swap. */
import { AccountFlowsError } from '../errors.ts'
import type { Clock } from '../clock.ts'
import { newId } from '../crypto/token.ts'
import type { Change, Fields, Kind, Stored } from '../ports/record-store.ts'
import { damaged } from './kind.ts'

/** What a record becomes, and what the caller is answered. `next` as it was: nothing is written. */
export interface Changed<A> {
  next: Fields | undefined
  answer: A
}

/**
 * A pure function of the record as it is; `undefined`: there is none. It may be called many times, and only the last answer counts.
 */
export type ChangeOf<A> = (before: Fields | undefined) => Changed<A>

/** As many may wait for one record, and for all of them. */
const MOST_OF_RECORD = 1_000
const MOST = 10_000
/** Others, in other processes, may change the record first for so long. */
const LONGEST_MS = 5_000

interface Waiting {
  change: ChangeOf<unknown>
  since: number
  resolve(answer: unknown): void
  reject(error: unknown): void
}

interface Verbs {
  get(kind: Kind, id: string): Promise<Stored | undefined>
  swap(kind: Kind, change: Change): Promise<boolean>
}

/**
 * Changes a record by a function of what it is.
 *
 * @throws AccountFlowsError `ERR_STORE_CONTENTION` where too many wait, or other processes change the record first for too long.
 */
export type ChangeRecord = <A>(kind: Kind, id: string, change: ChangeOf<A>) => Promise<A>

export function createChanges({ get, swap }: Verbs, { now, sleep }: Clock): ChangeRecord {
  const queues = new Map<string, Waiting[]>()
  let all = 0

  async function work(kind: Kind, id: string, key: string, waiting: Waiting[]) {
    for (let lost = 0; waiting.length > 0;) {
      const turn = waiting.splice(0)
      const losers = await tryOnce(kind, id, turn)
      all -= turn.length - losers.length
      lost = losers.length > 0 ? lost + 1 : 0
      if (lost === 0) continue
      const tooLate = losers.filter(({ since }) => now().getTime() - since > LONGEST_MS)
      for (const { reject } of tooLate) reject(contention())
      all -= tooLate.length
      waiting.unshift(...losers.filter((one) => !tooLate.includes(one)))
      // Only other processes come first, and they wait for a random time as well.
      await sleep(Math.random() * Math.min(200, 2 ** lost))
    }
    queues.delete(key)
  }

  /** Answers those whose change must be tried again. */
  async function tryOnce(kind: Kind, id: string, turn: Waiting[]): Promise<Waiting[]> {
    try {
      const found = await get(kind, id)
      if (found?.damaged !== undefined) throw damaged(kind, found)
      const { answered, next } = applied(found?.fields, turn)
      const change = { id, revision: found?.revision, next, becomes: newId() }
      if (next !== found?.fields && !(await swap(kind, change))) return answered.map(([one]) => one)
      for (const [{ resolve }, answer] of answered) resolve(answer)
    } catch (error) {
      for (const { reject } of turn) reject(error)
    }
    return []
  }

  return (kind, id, change) =>
    new Promise((resolve, reject) => {
      const key = JSON.stringify([kind.name, id])
      const waiting = queues.get(key) ?? []
      if (all >= MOST || waiting.length >= MOST_OF_RECORD) return reject(contention())
      all += 1
      waiting.push({
        change,
        since: now().getTime(),
        resolve,
        reject,
      })
      if (queues.has(key)) return
      queues.set(key, waiting)
      void work(kind, id, key, waiting)
    })
}

/** All changes in turn. One that throws fails its caller alone. */
function applied(before: Fields | undefined, turn: Waiting[]) {
  const answered: [Waiting, unknown][] = []
  let next = before
  for (const one of turn) {
    try {
      const changed = one.change(next)
      next = changed.next
      answered.push([one, changed.answer])
    } catch (error) {
      one.reject(error)
    }
  }
  return { answered, next }
}

const contention = () =>
  new AccountFlowsError('ERR_STORE_CONTENTION', 'too many change the same record at once')
