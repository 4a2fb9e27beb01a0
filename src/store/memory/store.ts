/** Keeps records and users in this process. It knows kinds and their fields, and never what a record means. */
import { systemClock, type Clock } from '../../clock.ts'
import { checkQuery, isOfAny, keptText, storedOf } from '../record-checks.ts'
import type { Change, Fields, Kind, Query, RecordStore, Stored, Value } from '../record-store.ts'
import { equalsInAsciiCase, hashOf, type User, type UserStore } from '../../contract/users.ts'

type Kept = Stored & { fields: Fields }

/** Beyond this many records of a kind, a new one removes the oldest one that has a `purgedAt`. */
const MAX = 10_000

/** A store in memory whose records tests can list. */
export interface MemoryStore extends RecordStore {
  /** All records of a kind, oldest first. */
  all(kind: Kind): Stored[]
}

/** Keeps records in this process, for a first try and for tests. Nothing survives a restart, and other processes see nothing of it. */
export function memoryStore({ now }: Pick<Clock, 'now'> = systemClock): MemoryStore {
  const tables = new Map<string, Map<string, Kept>>()

  function tableOf({ name }: Kind): Map<string, Kept> {
    const table = tables.get(name) ?? new Map<string, Kept>()
    tables.set(name, table)
    return table
  }

  function applied(kind: Kind, table: Map<string, Kept>, change: Change): boolean {
    const { id, revision, next, becomes } = change
    const before = table.get(id)
    if (next === undefined && !before) return true
    if (!isOfAny(change) && before?.revision !== revision) return false
    if (next === undefined) return table.delete(id)
    if (isTaken(kind, table, change)) return false
    const isFirst = revision === undefined && kind.insertedAt !== undefined
    const fields = isFirst ? { ...next, [`${kind.insertedAt}`]: now() } : next
    const was = typeof revision === 'string' ? revision : undefined
    table.set(id, structuredClone({ id, fields, revision: becomes, was }))
    if (table.size > MAX) dropOldest(kind, table)
    return true
  }

  return {
    purges: false,
    isVolatile: true,
    start: async () => {},
    now: async () => now(),

    async get(kind, ids) {
      const table = tableOf(kind)
      return ids.map((id) => {
        const kept = table.get(id)
        return kept && storedFrom(kind, kept)
      })
    },

    async find(kind, query) {
      checkQuery(kind, query)
      const found = [...tableOf(kind).values()].filter((kept) => isFound(query, kept))
      const sorted = found.toSorted(inOrder(query))
      return sorted.slice(0, query.limit).map((kept) => storedFrom(kind, kept))
    },

    async swap(kind, changes) {
      const table = tableOf(kind)
      return changes.map((change) => applied(kind, table, change))
    },

    all: (kind) => [...tableOf(kind).values()].map((kept) => storedFrom(kind, kept)),
  }
}

/** Removes the oldest record that has a `purgedAt`. Records without one are kept for ever. */
function dropOldest({ purgedAt = '' }: Kind, table: Map<string, Kept>): void {
  for (const [id, { fields }] of table)
    if (fields[purgedAt] !== undefined) return void table.delete(id)
}

const storedFrom = (kind: Kind, kept: Kept) => storedOf(kind, kept.id, structuredClone(kept))

function isTaken({ unique }: Kind, table: Map<string, Kept>, { id, next }: Change): boolean {
  const held = unique.filter((field) => next?.[field] !== undefined)
  if (held.length === 0) return false
  return [...table.values()].some(
    (other) => other.id !== id && held.some((field) => other.fields[field] === next?.[field]),
  )
}

function isFound(query: Query, { id, fields }: Kept): boolean {
  const { equal = {}, by, from, below, after, isDescending } = query
  const value = by === undefined ? '' : fields[by]
  if (value === undefined) return false
  const isEqual = ([name, wanted]: [string, Value | readonly Value[]]) =>
    [wanted].flat().some((one) => isSame(fields[name], one))
  if (!Object.entries(equal).every(isEqual)) return false
  if (from !== undefined && order(value, from) < 0) return false
  if (below !== undefined && order(value, below) >= 0) return false
  if (!after) return true
  const distance = order(value, after.value ?? '') || order(id, after.id)
  return isDescending ? distance < 0 : distance > 0
}

const inOrder =
  ({ by = '', isDescending }: Query) =>
  (a: Kept, b: Kept): number => {
    const distance = order(a.fields[by] ?? '', b.fields[by] ?? '') || order(a.id, b.id)
    return isDescending ? -distance : distance
  }

const isSame = (a: Value | undefined, b: Value) =>
  a === b || (a instanceof Date && b instanceof Date && a.getTime() === b.getTime())

/** Orders texts by their bytes, as databases do. */
function order(a: Value, b: Value): number {
  if (a === b) return 0
  if (typeof a !== 'string' || typeof b !== 'string') return Number(a) - Number(b)
  return Buffer.compare(Buffer.from(keptText(a)), Buffer.from(keptText(b)))
}

/** Users in memory, for a first try and for tests. */
export function memoryUsers(initial: User[] = []): UserStore & { add(user: User): void } {
  const users = new Map<string, User>()
  // In JavaScript, a user object may lack these flags.
  const flags = { disabled: false, emailVerified: false }
  const add = (user: User) =>
    void users.set(user.id, { ...flags, ...user, passwordHash: hashOf(user) })
  initial.forEach(add)
  const withEmail = (email: string) =>
    [...users.values()].filter((user) => user.email && equalsInAsciiCase(user.email, email))

  async function isChanged(id: string, expected: Partial<User>, changes: Partial<User>) {
    const user = users.get(id)
    const isExpected = Object.entries(expected).every(
      ([field, value]) => user && Reflect.get(user, field) === value,
    )
    if (user && isExpected) Object.assign(user, changes)
    return isExpected
  }

  return {
    /** Adds a user, or replaces the one with this id. */
    add,

    findById: async (id) => structuredClone(users.get(id)),

    findByUsername: async (username) =>
      structuredClone([...users.values()].find((user) => user.username === username)),

    findByUsernameInAnyCase: async (name) =>
      structuredClone([...users.values()].filter((user) => equalsInAsciiCase(user.username, name))),

    findByVerifiedEmail: async (email) =>
      structuredClone(withEmail(email).filter(({ emailVerified }) => emailVerified)),

    findByEmail: async (email) => structuredClone(withEmail(email)),

    replacePasswordHash: (id, passwordHash, next) =>
      isChanged(id, { passwordHash }, { passwordHash: next }),

    setFirstPassword(id, email, passwordHash) {
      const expected = { email, disabled: false, passwordHash: undefined }
      return isChanged(id, expected, { passwordHash, emailVerified: true })
    },

    markEmailVerified: (id, email) =>
      isChanged(id, { email, disabled: false, emailVerified: false }, { emailVerified: true }),

    markEmailUnverified: (id, email) =>
      isChanged(id, { email, emailVerified: true }, { emailVerified: false }),

    replaceEmail(id, email, next) {
      const expected = { email, disabled: false, emailVerified: false }
      return isChanged(id, expected, { email: next, emailVerified: true })
    },
  }
}
