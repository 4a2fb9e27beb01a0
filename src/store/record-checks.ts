/** What all stores of records share: checks of queries, changes and what was read, and the escapes of texts that databases cannot keep. */
import { jsonOf, must } from '../errors.ts'
import { ANY } from './record-store.ts'
import type { Change, FieldType, Kind, Query, Stored, Value } from './record-store.ts'

/**
 * Throws a `TypeError` unless a declared index answers the query, each value has the type of its field, and the limit is a positive
 * integer. The index must begin with the equal fields, and continue with the one in `by`. A descending order, and a value in `after`, need a
 * field in `by`.
 */
export function checkQuery(
  kind: Kind,
  { equal = {}, by, isDescending, from, below, after, limit }: Query,
): void {
  checkLimit(limit)
  for (const [name, values] of Object.entries(equal)) check(kind, name, [values].flat())
  const bounds = [from, below, after?.value].filter((value) => value !== undefined)
  if (by !== undefined) check(kind, by, bounds)
  must(by !== undefined || !isDescending, 'isDescending is of the field in by')
  must(by === undefined || !after || after.value !== undefined, `after needs a value of ${by}`)
  const equals = Object.keys(equal)
  const asked = by === undefined ? equals : [...equals, by]
  if (asked.length === 0) return
  const isAnsweredBy = (index: readonly string[]) =>
    equals.every((field) => index.slice(0, equals.length).includes(field)) &&
    (by === undefined || index[equals.length] === by)
  const single = kind.purgedAt === undefined ? kind.unique : [...kind.unique, kind.purgedAt]
  const indexes = [...kind.indexes, ...single.map((field) => [field])]
  must(indexes.some(isAnsweredBy), `${kind.name} has no index by ${asked.join(', ')}`)
}

function check(kind: Kind, name: string, values: readonly Value[]): void {
  const type = kind.fields[name] ?? 'text'
  const areOfType = values.every((value) => isOfType(value, type))
  must(areOfType, `${name} of ${kind.name} is to be a ${type}`)
}

/** Throws a `TypeError` unless the limit is a positive integer. */
export function checkLimit(limit: number): void {
  must(Number.isSafeInteger(limit) && limit > 0, 'limit must be above 0')
}

/**
 * Throws a `TypeError` unless the id is a text, and the next state is a whole record of its kind. An overwrite of any revision is refused
 * for kinds with unique fields: another record may hold the value.
 */
export function checkChange(kind: Kind, change: Change): void {
  const { id, next } = change
  checkId(kind, id)
  if (!next) return
  const mayTake = !isOfAny(change) || kind.unique.length === 0
  must(mayTake, `a record of ${kind.name} is swapped by the revision that was read`)
  const { damaged } = storedOf(kind, id, { revision: '', was: '', fields: { ...next } })
  must(damaged === undefined, `${kind.name} takes no such record: ${damaged}`)
}

/** Throws a `TypeError` unless the id is a text. */
export function checkId({ name }: Kind, id: string): void {
  must(typeof id === 'string', `the id of a record of ${name} is to be a text`)
}

/** Checks a record that was read: its revision must be a text, and each field must have its type. */
export function storedOf(
  kind: Kind,
  id: string,
  read: { revision: unknown; was: unknown; fields: Record<string, unknown> },
): Stored {
  const fields: Record<string, Value> = {}
  const wrong = typeof read.revision === 'string' ? [] : ['revision']
  for (const [name, type] of Object.entries(kind.fields)) {
    const value = read.fields[name] ?? undefined
    if (isOfType(value, type)) fields[name] = value
    else if (value !== undefined || kind.required.includes(name)) wrong.push(name)
  }
  const textOf = (value: unknown) => (typeof value === 'string' ? value : undefined)
  const named = { id, revision: textOf(read.revision) ?? '', was: textOf(read.was) }
  if (wrong.length === 0) return { ...named, fields }
  return { ...named, damaged: `${wrong.join(', ')} of the record is missing or of another type` }
}

function isOfType(value: unknown, type: FieldType): value is Value {
  if (type === 'time') return value instanceof Date && !Number.isNaN(value.getTime())
  if (type === 'json') return value !== undefined && value !== null && typeof value !== 'symbol'
  return typeof value === (type === 'text' ? 'string' : type)
}

/** Whether a change is made whatever the record is by then. */
export const isOfAny = ({ revision }: Change) => revision === ANY

/** A damaged record may have lost its revision. */
export const revisionOf = (found: Stored | undefined): Change['revision'] =>
  found?.revision === '' ? ANY : found?.revision

/** Whether a change was done, judged by the record after it. `false`: another change of that state was. `undefined`: this is unknown. */
export function isDone({ revision, next, becomes }: Change, found: Stored | undefined) {
  if (!next && !found) return true
  if (next && (found?.revision === becomes || found?.was === becomes)) return true
  return found && found.was === revision ? false : undefined
}

/** NUL and halves of surrogate pairs, which databases refuse or replace; and text that looks like an escaped one. */
const UNKEPT = /[\0\p{Surrogate}]|^\\"/u

/** Escapes a text so that every database keeps it. Nearly always it is the text itself. */
export const keptText = (text: string): string =>
  UNKEPT.test(text) ? `\\${JSON.stringify(text)}` : text

/** Restores a text from `keptText`. */
export function textOf(kept: string): string {
  const text = kept.startsWith('\\"') ? jsonOf(kept.slice(1)) : kept
  // A text that only looks escaped stays as it is.
  return typeof text === 'string' && keptText(text) === kept ? text : kept
}

const NO_JSON = Symbol('no JSON')

/** Parses stored JSON. If the text is not JSON, it returns a symbol, and `storedOf` then reports the record as damaged. */
export const storedJson = (text: string): unknown => jsonOf(text) ?? NO_JSON
