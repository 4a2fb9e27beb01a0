/** The one way to the store. Waiting changes of one record share a swap within a process; processes compete. */
import type { Clock } from '../clock.ts'
import { newId } from '../crypto/token.ts'
import { AccountFlowsError } from '../errors.ts'
import { createCommands, type Commands } from './batches.ts'
import { setNewest } from './bounded-map.ts'
import { revisionOf } from './record-checks.ts'
import type { Change, Fields, Kind, RecordStore, Stored } from './record-store.ts'

export type Records = ReturnType<typeof createRecords>

export function createRecords(store: RecordStore, clock: Clock) {
  const commands = createCommands(store, clock)
  return {
    ...commands,
    /** Writes a record of this revision; without `next`, it removes the record. Returns whether it was done. */
    write: (kind: Kind, id: string, revision: Change['revision'], next?: Fields) =>
      commands.swap(kind, { id, revision, next, becomes: newId() }),
    change: createChanges(commands, clock),
  }
}

/** The new state of a record, and the caller's answer. If `next` is unchanged, nothing is written. */
export interface Changed<N, A> {
  next: N | undefined
  answer: A
}

/** A pure function of the current record; `undefined`: there is none. It may run many times, and only the last answer counts. */
type ChangeOf<A> = (before: Stored | undefined) => Changed<Fields, A>

/** How many changes may wait for one record, and for all records together. */
const MAX_OF_RECORD = 1_000
const MAX = 10_000
/** After other processes have won for this long, a change fails. */
const LONGEST_MS = 5_000
const MAX_REMEMBERED = 5_000

interface Waiting {
  change: ChangeOf<unknown>
  since: number
  resolve(answer: unknown): void
  reject(error: unknown): void
}

export interface ChangedKind extends Kind {
  /** The process keeps the state after its last change, and need not read it. */
  isRemembered?: boolean
  /** The first try inserts an unknown record without reading it. */
  isMostlyNew?: boolean
  /** A damaged record counts as absent, and begins anew. Otherwise a change of it throws. */
  damagedIsNone?: boolean
}

const keyOf = ({ name }: Kind, id: string) => JSON.stringify([name, id])

function createChanges({ get, swap }: Commands, { now, sleep }: Clock) {
  const remembered = new Map<string, Stored>()
  const queues = new Map<string, Waiting[]>()
  let all = 0

  /** Returns the changes that must be tried again. */
  async function tryOnce(kind: ChangedKind, id: string, turn: Waiting[], isFirst: boolean) {
    const key = keyOf(kind, id)
    const guess = remembered.get(key)
    const isGuessed = guess || (isFirst && kind.isMostlyNew)
    remembered.delete(key)
    try {
      let tried = isGuessed && applied(id, guess, turn)
      // Only a swap shows whether the guess was right.
      if (!tried || tried.isUnchanged) tried = applied(id, await get(kind, id), turn)
      const { found, answered, next, isUnchanged } = tried
      const change: Change = { id, revision: revisionOf(found), next, becomes: newId() }
      if (!isUnchanged && !(await swap(kind, change))) return answered.map(([one]) => one)
      const written = next && { id, revision: change.becomes, was: undefined, fields: next }
      const known = isUnchanged ? found : written
      if (known && kind.isRemembered) setNewest(remembered, key, known, MAX_REMEMBERED)
      for (const [{ resolve }, answer] of answered) resolve(answer)
    } catch (error) {
      for (const { reject } of turn) reject(error)
    }
    return []
  }

  async function work(kind: ChangedKind, id: string, waiting: Waiting[]) {
    for (let [lost, isFirst] = [0, true]; waiting.length > 0; isFirst = false) {
      const began = now().getTime()
      const losers = await tryOnce(kind, id, waiting.splice(0), isFirst)
      lost = losers.length > 0 ? lost + 1 : 0
      const isTooLate = ({ since }: Waiting) => now().getTime() - since > LONGEST_MS
      for (const { reject } of losers.filter(isTooLate)) reject(contention())
      waiting.unshift(...losers.filter((one) => !isTooLate(one)))
      // Other processes read before they swap. Without a pause, this one would always win.
      const longest = lost > 0 ? 2 ** lost : 2 * (now().getTime() - began)
      if (waiting.length > 0) await sleep(Math.random() * Math.min(200, longest))
    }
    queues.delete(keyOf(kind, id))
  }

  /** Changes a record by a function of its state. `known`: as the caller has just found it, which saves a read. */
  return async <A>(kind: ChangedKind, id: string, change: ChangeOf<A>, known?: Stored) => {
    const key = keyOf(kind, id)
    const waiting = queues.get(key) ?? []
    if (all >= MAX || waiting.length >= MAX_OF_RECORD) throw contention()
    all += 1
    const answer = new Promise<A>((resolve, reject) =>
      waiting.push({ change, since: now().getTime(), resolve, reject }),
    )
    if (!queues.has(key)) {
      queues.set(key, waiting)
      if (known) remembered.set(key, known)
      void work(kind, id, waiting)
    }
    return answer.finally(() => (all -= 1))
  }
}

/** Applies all changes in order. If one throws, only its own caller fails. */
function applied(id: string, found: Stored | undefined, turn: Waiting[]) {
  const answered: [Waiting, unknown][] = []
  let before = found
  for (const one of turn) {
    try {
      const { next, answer } = one.change(before)
      answered.push([one, answer])
      if (next !== before?.fields)
        before = next && { id, revision: '', was: undefined, fields: next }
    } catch (error) {
      one.reject(error)
    }
  }
  const next = before?.fields
  return { found, answered, next, isUnchanged: next === found?.fields }
}

const contention = () =>
  new AccountFlowsError('ERR_STORE_UNAVAILABLE', 'too many change the same record at once')
