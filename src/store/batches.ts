/** Calls that share a command, and what becomes of a swap whose answer is lost. */
import type { Clock } from '../clock.ts'
import { AccountFlowsError } from '../errors.ts'
import { checkChange, checkId, checkQuery, isDone, isOfAny } from './record-checks.ts'
import type { Change, Kind, Query, RecordStore, Stored } from './record-store.ts'

/** The most items in one command. */
const MAX = 100
/** A call does not wait for a command that began longer ago than this. */
const SLOW_MS = 250

/**
 * Calls of the same turn of the event loop share a command, and so do calls that wait for a running one. A call never joins a command that
 * was sent before: its answer would not include later writes. If `run` throws, all callers of the command get the error.
 */
export function together<Item, Result>(
  { now }: Pick<Clock, 'now'>,
  run: (items: Item[]) => Promise<Result[]>,
): (item: Item) => Promise<Result> {
  const waiting: { item: Item; resolve(result: Result): void; reject(error: unknown): void }[] = []
  let underWay = 0
  let begunAt = 0

  async function runAll() {
    while (waiting.length > 0) {
      const calls = waiting.splice(0, MAX)
      begunAt = now().getTime()
      try {
        const results = await run(calls.map(({ item }) => item))
        // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- one result an item
        for (const [index, { resolve }] of calls.entries()) resolve(results[index] as Result)
      } catch (error) {
        for (const { reject } of calls) reject(error)
      }
      // A caller that has its answer may make its next call now.
      await Promise.resolve()
    }
    underWay -= 1
  }

  return (item) =>
    new Promise((resolve, reject) => {
      waiting.push({ item, resolve, reject })
      const isSlow = Math.abs(now().getTime() - begunAt) > SLOW_MS
      if (underWay > 0 && waiting.length < MAX && !isSlow) return
      underWay += 1
      process.nextTick(() => void runAll())
    })
}

export type Commands = ReturnType<typeof createCommands>

/** The verbs for one item each. It is checked before it joins others in a command. */
export function createCommands(store: RecordStore, clock: Clock) {
  const ofKinds = new Map<string, ReturnType<typeof batched>>()
  function of(kind: Kind) {
    const known = ofKinds.get(kind.name) ?? batched(store, kind, clock)
    ofKinds.set(kind.name, known)
    return known
  }

  return {
    /** `undefined`: there is no such record. */
    async get(kind: Kind, id: string): Promise<Stored | undefined> {
      checkId(kind, id)
      return of(kind).get(id)
    },

    async find(kind: Kind, query: Query): Promise<Stored[]> {
      checkQuery(kind, query)
      return of(kind).find(query)
    },

    async swap(kind: Kind, change: Change): Promise<boolean> {
      checkChange(kind, change)
      const done = await of(kind).swap(change)
      if (typeof done !== 'boolean') throw done
      return done
    },
  }
}

const batched = (store: RecordStore, kind: Kind, clock: Clock) => ({
  get: together(clock, (ids: string[]) => store.get(kind, ids)),
  find: together(clock, (queries: Query[]) => findAll(store, kind, queries)),
  swap: together(clock, (changes: Change[]) => swapAll(store, kind, changes)),
})

/** Returns for each change whether it was done, or the error that leaves this unknown. */
async function swapAll(store: RecordStore, kind: Kind, changes: Change[]): Promise<unknown[]> {
  // Of several overwrites of a record, the last one is enough: no caller has read the others.
  const overwrites = changes.filter(isOfAny)
  const last = new Map(overwrites.map((change) => [change.id, change]))
  const sent = changes.map((change) => (isOfAny(change) && last.get(change.id)) || change)
  const answers = new Map<Change, unknown>()
  for (let left = [...new Set(sent)]; left.length > 0;) {
    // A command holds at most one change of each record.
    const firsts = new Map(left.toReversed().map((change) => [change.id, change]))
    const now = left.filter((change) => firsts.get(change.id) === change)
    left = left.filter((change) => firsts.get(change.id) !== change)
    const done = await swapOnce(store, kind, now)
    for (const [index, change] of now.entries()) answers.set(change, done[index] ?? false)
  }
  return sent.map((change) => answers.get(change) ?? false)
}

/**
 * After a failed swap, some changes may be done, and others may still be running. The current records show which. A change that did not
 * arrive is sent once more, alone and with the same `becomes`. So bad data of one caller fails for that caller only.
 */
async function swapOnce(store: RecordStore, kind: Kind, changes: Change[]): Promise<unknown[]> {
  const done = await store.swap(kind, changes).catch(() => undefined)
  if (done) return done
  const ids = changes.map(({ id }) => id)
  const found = await store.get(kind, ids).catch((error: unknown) => error)
  if (!Array.isArray(found)) return changes.map(() => found)
  const answers = changes.map(async (change, index): Promise<unknown> => {
    const isUnsent = isOfAny(change) || change.revision === found[index]?.revision
    const again = () => alone(store, kind, change).catch((error: unknown) => error)
    return isDone(change, found[index]) ?? (isUnsent ? again() : lost())
  })
  return Promise.all(answers)
}

async function alone(store: RecordStore, kind: Kind, change: Change): Promise<unknown> {
  const [done] = await store.swap(kind, [change])
  if (done) return true
  // The record may be what the first attempt of this change wrote.
  const [found] = await store.get(kind, [change.id])
  return found ? (isDone(change, found) ?? lost()) : false
}

const lost = () =>
  new AccountFlowsError('ERR_STORE_UNAVAILABLE', 'the answer of the database was lost')

/** Sends queries that differ in one text only as one command. */
function findAll(store: RecordStore, kind: Kind, queries: Query[]): Promise<Stored[][]> {
  const groups = new Map<string, { texts: Set<string>; found?: Promise<Stored[]> }>()
  const answers = queries.map(async (query) => {
    const { equal = {}, ...rest } = query
    const [[field, text] = [], ...others] = Object.entries(equal)
    if (field === undefined || typeof text !== 'string' || others.length > 0)
      return store.find(kind, query)
    const key = JSON.stringify([field, rest])
    const group = groups.get(key) ?? { texts: new Set() }
    groups.set(key, group)
    group.texts.add(text)
    // By then, the others of this turn are in their groups.
    await Promise.resolve()
    const texts = [...group.texts]
    if (texts.length === 1) return (group.found ??= store.find(kind, query))
    const limit = query.limit * texts.length
    const ofAll = { ...query, equal: { [field]: texts }, limit }
    const found = await (group.found ??= store.find(kind, ofAll))
    const own = found.filter(({ fields }) => fields?.[field] === text).slice(0, query.limit)
    // A damaged record does not show whose it is. At the limit, records of other queries may have taken the places of this one's.
    const isWhole = found.length < limit || own.length === query.limit
    return isWhole && found.every(({ fields }) => fields) ? own : store.find(kind, query)
  })
  return Promise.all(answers)
}
