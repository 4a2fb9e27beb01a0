import type { Fields, Query, Value } from '../ports/record-store.ts'
import type { ChangeRecord } from './changes.ts'
import type { KindOf } from './kind.ts'
import type { Records } from './records.ts'

type Name<T> = Exclude<keyof T & string, 'id'>

/** A query by the names of the code. */
export interface QueryOf<T> extends Omit<Query, 'equal' | 'by'> {
  equal?: { readonly [N in Name<T>]?: Value | readonly Value[] }
  by?: Name<T>
}

/** What a record becomes, and what the caller is answered. `next` as it was: nothing is written. */
export interface Becomes<T, A> {
  next: T | undefined
  answer: A
}

/** The records of one kind. */
export interface Table<T extends { id: string }> {
  /** Throws `ERR_STORE_DAMAGED` where the record is damaged. */
  get(id: string): Promise<T | undefined>
  /** `undefined`: there is none that can be read. */
  getReadable(id: string): Promise<T | undefined>
  /** Those that can be read. */
  find(query: QueryOf<T>): Promise<T[]>
  /** The ids of those that cannot be read. */
  findDamaged(query: QueryOf<T>): Promise<string[]>
  insert(record: T): Promise<boolean>
  overwrite(record: T): Promise<void>
  remove(id: string): Promise<void>
  /** Changes one record by a pure function of it, which may be called again. */
  change<A>(id: string, change: (before: T | undefined) => Becomes<T, A>): Promise<A>
}

export function tableOf<T extends { id: string }>(records: Records, kind: KindOf<T>): Table<T> {
  const find = ({ equal = {}, by, ...query }: QueryOf<T>) => {
    const named = Object.entries<Value | readonly Value[] | undefined>(equal)
    const values: Record<string, Value | readonly Value[]> = {}
    for (const [name, value] of named) if (value !== undefined) values[kind.nameOf(name)] = value
    return records.find(kind, {
      ...query,
      equal: values,
      ...(by !== undefined && { by: kind.nameOf(by) }),
    })
  }

  return {
    async get(id) {
      const stored = await records.get(kind, id)
      return stored && kind.toRecord(stored)
    },

    async getReadable(id) {
      const stored = await records.get(kind, id)
      return stored?.fields && kind.toRecord(stored)
    },

    find: async (query) =>
      (await find(query)).flatMap((stored) => (stored.fields ? kind.toRecord(stored) : [])),

    findDamaged: async (query) =>
      (await find(query)).flatMap(({ id, fields }) => (fields ? [] : id)),

    insert: (record) => records.insert(kind, record.id, kind.toFields(record)),
    overwrite: (record) => records.overwrite(kind, record.id, kind.toFields(record)),
    remove: (id) => records.remove(kind, id),

    change: (id, change) => changed(records.change, kind, id, change),
  }
}

function changed<T extends { id: string }, A>(
  changeRecord: ChangeRecord,
  kind: KindOf<T>,
  id: string,
  change: (before: T | undefined) => Becomes<T, A>,
): Promise<A> {
  return changeRecord(kind, id, (fields: Fields | undefined) => {
    const before = fields && kind.toRecord({ id, revision: '', was: undefined, fields })
    const { next, answer } = change(before)
    return { next: next === before ? fields : next && kind.toFields(next), answer }
  })
}
