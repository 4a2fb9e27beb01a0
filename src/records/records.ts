/**
 * The one way to the store. Calls of the same turn share a command, and changes that wait for the same record share a swap. Where the
 * answer of a swap is lost, what is there is read.
 */
import type { Clock } from '../clock.ts'
import { AccountFlowsError } from '../errors.ts'
import { newId } from '../crypto/token.ts'
import {
  ANY,
  checkChange,
  checkId,
  checkQuery,
  isDone,
  type Change,
  type Fields,
  type Kind,
  type Query,
  type RecordStore,
  type Stored,
} from '../ports/record-store.ts'
import { createChanges } from './changes.ts'
import { findAll } from './joined-finds.ts'
import { together } from './together.ts'

export type Records = ReturnType<typeof createRecords>

export function createRecords(store: RecordStore, clock: Clock) {
  const ofKinds = new Map<string, ReturnType<typeof batched>>()
  function of(kind: Kind) {
    const known = ofKinds.get(kind.name) ?? batched(store, kind, clock)
    ofKinds.set(kind.name, known)
    return known
  }
  const get = (kind: Kind, id: string) => of(kind).get(id)
  const swap = (kind: Kind, change: Change) => of(kind).swap(change)
  const write = (kind: Kind, id: string, revision: Change['revision'], next: Fields | undefined) =>
    swap(kind, { id, revision, next, becomes: newId() })

  return {
    /** `undefined`: there is none. */
    get,
    find: (kind: Kind, query: Query) => of(kind).find(query),
    /** Answers whether it was inserted: neither its id nor a unique field was taken. */
    insert: (kind: Kind, id: string, fields: Fields) => write(kind, id, undefined, fields),
    /** Whatever there is. */
    overwrite: async (kind: Kind, id: string, fields: Fields): Promise<void> =>
      void (await write(kind, id, ANY, fields)),
    /** Whatever there is. */
    remove: async (kind: Kind, id: string): Promise<void> =>
      void (await write(kind, id, ANY, undefined)),
    change: createChanges({ get, swap }, clock),
  }
}

/** The verbs for one kind, one item a call. */
function batched(store: RecordStore, kind: Kind, clock: Clock) {
  const got = together(clock, (ids: string[]) => store.get(kind, ids))
  const swapped = together(clock, (changes: Change[]) => swapAll(store, kind, changes))
  const findByOne = together(clock, (queries: Query[]) => findAll(store, kind, queries))

  // Each item is checked before it joins others.
  return {
    async get(id: string): Promise<Stored | undefined> {
      checkId(kind, id)
      return got(id)
    },

    async swap(change: Change): Promise<boolean> {
      checkChange(kind, change)
      const done = await swapped(change)
      if (done instanceof Error) throw done
      return done
    },

    async find(query: Query): Promise<Stored[]> {
      checkQuery(kind, query)
      return findByOne(query)
    },
  }
}

/** Whether a change was done, or why that is not known. */
type Answer = boolean | Error

async function swapAll(store: RecordStore, kind: Kind, changes: Change[]): Promise<Answer[]> {
  const answers = new Map<Change, Answer>()
  // Of several that overwrite a record the last one is enough: nobody has seen the others.
  const overwrites = changes.filter(({ revision }) => revision === ANY)
  const last = new Map(overwrites.map((change) => [change.id, change]))
  const sent = (change: Change) => (change.revision === ANY && last.get(change.id)) || change
  let left = [...new Set(changes.map(sent))]
  while (left.length > 0) {
    // A command has one change of a record.
    const ids = new Set<string>()
    const now = left.filter(({ id }) => !ids.has(id) && ids.add(id))
    left = left.filter((change) => !now.includes(change))
    for (const [change, answer] of await swapOnce(store, kind, now)) answers.set(change, answer)
  }
  return changes.map((change) => answers.get(sent(change)) ?? false)
}

async function swapOnce(store: RecordStore, kind: Kind, changes: Change[]) {
  const done = await store.swap(kind, changes).catch(() => undefined)
  if (done) return new Map<Change, Answer>(changes.map((change, at) => [change, done[at] === true]))
  return answersFound(store, kind, changes).catch(
    (error: Error) => new Map<Change, Answer>(changes.map((change) => [change, error])),
  )
}

/**
 * Where a swap failed, some changes of it may be done, and others may be under way still. What is there tells. What did not arrive is sent
 * once more, under the same name, and alone: what one caller gave fails for that caller.
 */
async function answersFound(store: RecordStore, kind: Kind, changes: Change[]) {
  const found = await store.get(
    kind,
    changes.map(({ id }) => id),
  )
  const answers = changes.map(async (change, index): Promise<[Change, Answer]> => {
    const { revision } = change
    const isUnsent = revision === ANY || revision === found[index]?.revision
    const again = () => (isUnsent ? alone(store, kind, change) : lost())
    return [change, isDone(change, found[index]) ?? (await again())]
  })
  return new Map(await Promise.all(answers))
}

async function alone(store: RecordStore, kind: Kind, change: Change): Promise<Answer> {
  try {
    const [done] = await store.swap(kind, [change])
    if (done) return true
    // It may be the first one that came in between.
    const [found] = await store.get(kind, [change.id])
    return found ? (isDone(change, found) ?? lost()) : false
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error))
  }
}

const lost = () =>
  new AccountFlowsError('ERR_STORE_UNAVAILABLE', 'the answer of the database was lost')
