import type { Document, Filter } from 'mongodb'
import {
  keptText,
  storedOf,
  textOf,
  type Change,
  type Kind,
  type Query,
  type Stored,
  type Value,
} from '../record-store.ts'
import type { NamedIndex } from './driver.ts'

export type Kept = Document & { _id: string }

/** Stands for a field that was removed outside the store. It matches no field type. */
const MISSING = Symbol('missing')

/** `undefined`: the change removes the record. */
export function documentOf(
  { fields, unique }: Kind,
  { id, revision, next, becomes }: Change,
): Kept | undefined {
  if (!next) return undefined
  const was = typeof revision === 'string' ? revision : null
  const document: Kept = { _id: keptText(id), _rev: becomes, _was: was }
  for (const [name, type] of Object.entries(fields)) {
    const value = next[name]
    if (value !== undefined) document[name] = type === 'json' ? keptJson(value) : kept(value)
    else if (!unique.includes(name)) document[name] = null
  }
  return document
}

/** Keeps fields that the host has added. */
export function updateOf({ unique }: Kind, { _id, ...fields }: Kept): Document {
  const left = unique.filter((name) => !(name in fields)).map((name) => [name, true])
  return { $set: fields, ...(left.length > 0 && { $unset: Object.fromEntries(left) }) }
}

const kept = (value: Value) => (typeof value === 'string' ? keptText(value) : value)

/** Stores JSON as objects and lists, which an admin can read and edit. What `JSON.stringify` leaves out is not kept. */
const keptJson = (value: Value): unknown => withTexts(JSON.parse(JSON.stringify(value)), keptText)
const toldJson = (value: unknown): unknown =>
  withTexts(JSON.parse(JSON.stringify(value) ?? 'null'), textOf)

/** Converts all texts and names in some JSON. */
function withTexts(json: unknown, other: (text: string) => string): unknown {
  if (typeof json === 'string') return other(json)
  if (Array.isArray(json)) return json.map((one) => withTexts(one, other))
  if (typeof json !== 'object' || json === null) return json
  const named = Object.entries(json).map(([name, one]) => [other(name), withTexts(one, other)])
  return Object.fromEntries(named)
}

export function toldOf(kind: Kind, { _id, _rev: revision, _was: was, ...document }: Kept): Stored {
  const fields: Record<string, unknown> = {}
  for (const [name, type] of Object.entries(kind.fields)) {
    const value: unknown = document[name]
    if (value === undefined) fields[name] = kind.unique.includes(name) ? undefined : MISSING
    else if (type === 'json') fields[name] = toldJson(value)
    else fields[name] = type === 'text' && typeof value === 'string' ? textOf(value) : value
  }
  return storedOf(kind, textOf(_id), { revision, was, fields })
}

export function sortOf({ equal = {}, by, after, isDescending }: Query): Record<string, 1 | -1> {
  const direction = isDescending ? -1 : 1
  if (by !== undefined) return { [by]: direction, _id: direction }
  return Object.keys(equal).length > 0 && !after ? {} : { _id: 1 }
}

export function filterOf(query: Query): Filter<Kept> {
  const { equal = {}, by, from, below, after, isDescending } = query
  const filter: Document = {}
  for (const [name, value] of Object.entries(equal))
    filter[name] = Array.isArray(value) ? { $in: value.map(kept) } : { $eq: kept(value) }
  if (by === undefined) return after ? { ...filter, _id: { $gt: keptText(after.id) } } : filter
  const bounds: Document = { $ne: null }
  if (from !== undefined) bounds['$gte'] = kept(from)
  if (below !== undefined) bounds['$lt'] = kept(below)
  filter[by] = bounds
  if (!after) return filter
  const beyond = isDescending ? '$lt' : '$gt'
  const [value, id] = [kept(after.value ?? ''), keptText(after.id)]
  filter['$or'] = [{ [by]: { [beyond]: value } }, { [by]: value, _id: { [beyond]: id } }]
  return filter
}

export function indexesOf({ indexes, unique, purgedAt }: Kind): NamedIndex[] {
  const keyOf = (fields: readonly string[]) =>
    Object.fromEntries(fields.map((field) => [field, 1 as const]))
  const ordered = indexes.map((fields) => {
    return { name: fields.join('_'), key: keyOf([...fields, '_id']) }
  })
  const single = unique.map((field) => {
    return { name: `${field}_unique`, key: keyOf([field]), unique: true, sparse: true }
  })
  if (purgedAt === undefined) return [...ordered, ...single]
  const purge = { name: `${purgedAt}_ttl`, key: keyOf([purgedAt]), expireAfterSeconds: 0 }
  return [...ordered, ...single, purge]
}
