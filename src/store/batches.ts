/** One command for many calls of one turn. Where the answer of a swap is lost, what is there is read. */
import type { Clock } from '../clock.ts'
import { AccountFlowsError } from '../errors.ts'
import {
  ANY,
  isDone,
  type Change,
  type Kind,
  type Query,
  type RecordStore,
  type Stored,
} from './record-store.ts'

/** Commands grow no longer than this. */
const MAX = 100
/** A command that takes so long keeps no other call waiting. */
const SLOW_MS = 250

/**
 * One command for many calls. Calls that come while a command runs, or in the same turn of the event loop, share the next one. A
 * call never joins a command that was sent before: its answer would not know what was written since.
 *
 * @param run - answers a result for each item, in their order; what it throws, all its callers get.
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
      // Who has an answer may have its next call ready.
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

/** The verbs for one kind, one item a call. */
export const batched = (store: RecordStore, kind: Kind, clock: Clock) => ({
  get: together(clock, (ids: string[]) => store.get(kind, ids)),
  find: together(clock, (queries: Query[]) => findAll(store, kind, queries)),
  swap: together(clock, (changes: Change[]) => swapAll(store, kind, changes)),
})

/** Whether a change was done, or why that is not known. */
type Answer = unknown

async function swapAll(store: RecordStore, kind: Kind, changes: Change[]): Promise<Answer[]> {
  // Of several that overwrite a record the last one is enough: nobody has seen the others.
  const overwrites = changes.filter(({ revision }) => revision === ANY)
  const last = new Map(overwrites.map((change) => [change.id, change]))
  const sent = changes.map((change) => (change.revision === ANY && last.get(change.id)) || change)
  const answers = new Map<Change, Answer>()
  for (let left = [...new Set(sent)]; left.length > 0;) {
    // A command has one change of a record.
    const firsts = new Map(left.toReversed().map((change) => [change.id, change]))
    const now = left.filter((change) => firsts.get(change.id) === change)
    left = left.filter((change) => firsts.get(change.id) !== change)
    const done = await swapOnce(store, kind, now)
    for (const [index, change] of now.entries()) answers.set(change, done[index] ?? false)
  }
  return sent.map((change) => answers.get(change) ?? false)
}

/**
 * Where a swap failed, some changes of it may be done, and others may be under way still. What is there tells. What did not arrive is sent
 * once more, under the same name, and alone: what one caller gave fails for that caller.
 */
async function swapOnce(store: RecordStore, kind: Kind, changes: Change[]): Promise<Answer[]> {
  const done = await store.swap(kind, changes).catch(() => undefined)
  if (done) return done
  const ids = changes.map(({ id }) => id)
  const found = await store.get(kind, ids).catch((error: unknown) => error)
  if (!Array.isArray(found)) return changes.map(() => found)
  const answers = changes.map(async (change, index): Promise<Answer> => {
    const { revision } = change
    const isUnsent = revision === ANY || revision === found[index]?.revision
    const again = () => alone(store, kind, change).catch((error: unknown) => error)
    return isDone(change, found[index]) ?? (isUnsent ? again() : lost())
  })
  return Promise.all(answers)
}

async function alone(store: RecordStore, kind: Kind, change: Change): Promise<Answer> {
  const [done] = await store.swap(kind, [change])
  if (done) return true
  // It may be the first one that came in between.
  const [found] = await store.get(kind, [change.id])
  return found ? (isDone(change, found) ?? lost()) : false
}

const lost = () =>
  new AccountFlowsError('ERR_STORE_UNAVAILABLE', 'the answer of the database was lost')

/** What queries are found by that ask for the same, each for another text of one field. */
interface Group {
  texts: Set<string>
  found?: Promise<Stored[]>
}

/** Queries that differ in one value alone are one command. */
function findAll(store: RecordStore, kind: Kind, queries: Query[]): Promise<Stored[][]> {
  const groups = new Map<string, Group>()
  const asked = queries.map((query) => {
    const { equal = {}, ...rest } = query
    const [[field, text] = [], ...others] = Object.entries(equal)
    if (field === undefined || typeof text !== 'string' || others.length > 0) return { query }
    const key = JSON.stringify([field, rest])
    const group = groups.get(key) ?? { texts: new Set() }
    groups.set(key, group)
    group.texts.add(text)
    return { query, one: { field, text, group } }
  })
  const answers = asked.map(async ({ query, one }) => {
    if (!one) return store.find(kind, query)
    const { field, text, group } = one
    const texts = [...group.texts]
    if (texts.length === 1) return (group.found ??= store.find(kind, query))
    const limit = query.limit * texts.length
    const found = await (group.found ??= store.find(kind, {
      ...query,
      equal: { [field]: texts },
      limit,
    }))
    const own = found.filter(({ fields }) => fields?.[field] === text).slice(0, query.limit)
    // Whose a damaged record is, nobody knows; and others may have taken the places of more.
    const isWhole = found.length < limit || own.length === query.limit
    return isWhole && found.every(({ fields }) => fields) ? own : store.find(kind, query)
  })
  return Promise.all(answers)
}
