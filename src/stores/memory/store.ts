import { systemClock, type Clock } from '../../clock.ts'
import {
  ANY,
  checkQuery,
  storedOf,
  type Change,
  type Fields,
  type Kind,
  type Query,
  type RecordStore,
  type Stored,
  type Value,
} from '../../ports/record-store.ts'
import { keptText } from '../text.ts'

type Kept = Stored & { fields: Fields }

/** Of records that would be purged, so many of a kind are kept at most: a new one takes the place of the oldest. */
const MOST = 10_000

/** What is over is purged as late as a database may do it. */
const SWEEP_MS = 5 * 60_000

/** A store in memory, which tests can read whole. */
export interface MemoryStore extends RecordStore {
  /** All records of a kind, oldest first. */
  all(kind: Kind): Stored[]
}

/**
 * Keeps records in this process: for a first try and for tests. Nothing survives a restart, and a second process knows nothing of it.
 */
export function memoryStore({ now }: Pick<Clock, 'now'> = systemClock): MemoryStore {
  const tables = new Map<string, Map<string, Kept>>()
  const sweptAt = new Map<string, number>()

  function tableOf({ name, purgedAt }: Kind): Map<string, Kept> {
    const table = tables.get(name) ?? new Map<string, Kept>()
    tables.set(name, table)
    const at = Number(now())
    if (purgedAt === undefined || at - (sweptAt.get(name) ?? 0) < SWEEP_MS) return table
    sweptAt.set(name, at)
    for (const [id, { fields }] of table) if (Number(fields[purgedAt]) <= at) table.delete(id)
    return table
  }

  function applied(kind: Kind, table: Map<string, Kept>, change: Change): boolean {
    const { id, revision, next, becomes } = change
    const before = table.get(id)
    if (next === undefined && !before) return true
    if (revision !== ANY && before?.revision !== revision) return false
    if (next === undefined) return table.delete(id)
    if (isTaken(kind, table, change)) return false
    const isFirst = revision === undefined && kind.insertedAt !== undefined
    const fields = copyOf(kind, isFirst ? { ...next, [`${kind.insertedAt}`]: now() } : next)
    const was = typeof revision === 'string' ? revision : undefined
    table.set(id, { id, fields, revision: becomes, was })
    const oldest = table.size > MOST ? oldestOf(kind, table) : undefined
    if (oldest !== undefined) table.delete(oldest)
    return true
  }

  return {
    purges: true,
    isVolatile: true,
    start: async () => {},
    now: async () => now(),

    async get(kind, ids) {
      const table = tableOf(kind)
      return ids.map((id) => toldOf(kind, table.get(id)))
    },

    async find(kind, query) {
      checkQuery(kind, query)
      const found = [...tableOf(kind).values()].filter((kept) => isFound(query, kept))
      const sorted = found.toSorted(inOrder(query))
      return sorted.slice(0, query.limit).flatMap((kept) => toldOf(kind, kept) ?? [])
    },

    async swap(kind, changes) {
      const table = tableOf(kind)
      return changes.map((change) => applied(kind, table, change))
    },

    all: (kind) => [...tableOf(kind).values()].flatMap((kept) => toldOf(kind, kept) ?? []),
  }
}

/** `undefined`: each is kept for good. */
function oldestOf({ purgedAt }: Kind, table: Map<string, Kept>): string | undefined {
  if (purgedAt === undefined) return undefined
  for (const [id, { fields }] of table) if (fields[purgedAt] !== undefined) return id
  return undefined
}

function toldOf(kind: Kind, kept: Kept | undefined): Stored | undefined {
  return kept && copied(kind, storedOf(kind, kept.id, kept))
}

const copied = (kind: Kind, stored: Stored): Stored =>
  stored.fields ? { ...stored, fields: copyOf(kind, stored.fields) } : stored

/** What is in it can be changed in objects alone. */
function copyOf({ fields: types }: Kind, fields: Fields): Fields {
  const copy: Record<string, Value> = { ...fields }
  for (const [name, value] of Object.entries(fields))
    if (types[name] === 'json') copy[name] = structuredClone(value)
  return copy
}

function isTaken({ unique }: Kind, table: Map<string, Kept>, { id, next }: Change): boolean {
  const held = unique.filter((field) => next?.[field] !== undefined)
  if (held.length === 0) return false
  return [...table.values()].some(
    (other) => other.id !== id && held.some((field) => other.fields[field] === next?.[field]),
  )
}

function isFound({ equal = {}, by, from, below, ...query }: Query, { id, fields }: Kept): boolean {
  for (const [name, wanted] of Object.entries(equal)) {
    const value = fields[name]
    if (value === undefined || ![wanted].flat().some((one) => isSame(value, one))) return false
  }
  const { after, isDescending } = query
  if (by === undefined) return !after || order(id, after.id) > 0
  const value = fields[by]
  if (value === undefined || (from !== undefined && order(value, from) < 0)) return false
  if (below !== undefined && order(value, below) >= 0) return false
  if (!after) return true
  const distance = order(value, after.value ?? NaN) || order(id, after.id)
  return isDescending ? distance < 0 : distance > 0
}

function inOrder({ by, isDescending }: Query) {
  return (a: Kept, b: Kept): number => {
    const [first = '', second = ''] = by === undefined ? [] : [a.fields[by], b.fields[by]]
    const distance = order(first, second) || order(a.id, b.id)
    return isDescending ? -distance : distance
  }
}

const isSame = (a: Value, b: Value) =>
  a === b || (a instanceof Date && b instanceof Date && a.getTime() === b.getTime())

/** Texts in the order of their bytes, as databases keep them. */
function order(a: Value, b: Value): number {
  if (a === b) return 0
  if (typeof a !== 'string' || typeof b !== 'string') return Number(a) - Number(b)
  return Buffer.compare(Buffer.from(keptText(a)), Buffer.from(keptText(b)))
}
