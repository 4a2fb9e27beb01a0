import {
  storedOf,
  type Change,
  type Kind,
  type Query,
  type Stored,
  type Value,
} from '../record-store.ts'
import { keptText, storedJson, textOf } from '../text.ts'
import { nameOf, typeOf } from './tables.ts'

export type Row = { id: string } & Record<string, unknown>

export const isRow = (row: unknown): row is Row => typeof row === 'object' && row !== null

/** The columns of the rows that `rowsOf` gives: `read` is the revision that was read; none for any revision. */
export function givenOf({ fields }: Kind): string {
  const columns = Object.entries(fields).map(([name, type]) => `${nameOf(name)} ${typeOf(type)}`)
  return ['id text', 'read text', '_rev text', '_was text', ...columns].join(', ')
}

export function rowsOf({ fields }: Kind, changes: readonly Change[]): string {
  return JSON.stringify(
    changes.map(({ id, revision, next = {}, becomes }) => {
      const read = typeof revision === 'string' ? revision : undefined
      const row: Row = { id: keptText(id), read, _rev: becomes, _was: read }
      for (const [name, type] of Object.entries(fields)) {
        const value = next[name]
        if (value !== undefined) row[name] = type === 'json' ? JSON.stringify(value) : kept(value)
      }
      return row
    }),
  )
}

const kept = (value: Value) => {
  if (typeof value === 'string') return keptText(value)
  return value instanceof Date ? value.toISOString() : value
}

export function toldOf(kind: Kind, { id, _rev: revision, _was: was, ...row }: Row): Stored {
  const fields: Record<string, unknown> = {}
  for (const [name, type] of Object.entries(kind.fields)) {
    const value = row[name]
    const isText = typeof value === 'string'
    if (type === 'json') fields[name] = isText ? storedJson(value) : value
    else fields[name] = isText && type === 'text' ? textOf(value) : value
  }
  return storedOf(kind, textOf(id), { revision, was, fields })
}

/** Each value of a list is looked up by itself: an index then has what is found in its order. */
export function selectionOf(kind: Kind, table: string, query: Query) {
  const { equal = {}, by, from, below, after, isDescending, limit } = query
  const values: unknown[] = []
  const given = (value: unknown, type: string) => `$${values.push(value)}::${type}`
  const typeOfField = (name: string) => typeOf(kind.fields[name] ?? 'text')
  const lists: string[] = []
  const conditions = Object.entries(equal).map(([name, value]) => {
    const list = [...new Set([value].flat().map(kept))]
    if (list.length === 1) return `${nameOf(name)} = ${given(list[0], typeOfField(name))}`
    // No field has a name with a blank.
    const any = nameOf(`any ${name}`)
    lists.push(`unnest(${given(list, `${typeOfField(name)}[]`)}) AS ${any}`)
    return `${nameOf(name)} = ${any}`
  })
  let order = conditions.length > 0 && !after ? '' : 'ORDER BY id'
  if (by === undefined && after) conditions.push(`id > ${given(keptText(after.id), 'text')}`)
  if (by !== undefined) {
    const [name, type] = [nameOf(by), typeOfField(by)]
    conditions.push(`${name} IS NOT NULL`)
    if (from !== undefined) conditions.push(`${name} >= ${given(kept(from), type)}`)
    if (below !== undefined) conditions.push(`${name} < ${given(kept(below), type)}`)
    if (after) {
      const place = `(${given(kept(after.value ?? ''), type)}, ${given(keptText(after.id), 'text')})`
      conditions.push(`(${name}, id) ${isDescending ? '<' : '>'} ${place}`)
    }
    const direction = isDescending ? 'DESC' : 'ASC'
    order = `ORDER BY ${name} ${direction}, id ${direction}`
  }
  const where = conditions.length > 0 ? `WHERE ${conditions.join(' AND ')}` : ''
  const most = `${order} LIMIT ${given(limit, 'bigint')}`
  const ofOne = `SELECT * FROM ${table} ${where} ${most}`
  const ofAll = `SELECT found.* FROM ${[...lists, `LATERAL (${ofOne}) found`].join(', ')} ${most}`
  return { text: lists.length > 0 ? ofAll : ofOne, values }
}
