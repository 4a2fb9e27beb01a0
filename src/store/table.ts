/** The records of one kind, with the field names of the code: how to find and change them. */
import { checkLimit } from './record-checks.ts'
import { ANY, type Query, type Stored, type Value } from './record-store.ts'
import { defined, snakeCase, type KindOf } from './kind.ts'
import type { Changed, Records } from './records.ts'

type Name<T> = Exclude<keyof T & string, 'id'>

export interface QueryOf<T> extends Omit<Query, 'equal' | 'by'> {
  equal?: { readonly [N in Name<T>]?: Value | readonly Value[] }
  by?: Name<T>
}

type Which = string | { id: string }

/** The stored form of each object that was read, so that changing it needs no second read. */
const origins = new WeakMap<object, Stored>()

/** Links an object that was made from a record to that record, so that it can change it. Returns the object. */
export function madeFrom<Made extends object>(record: object, made: Made): Made {
  const origin = origins.get(record)
  if (origin) origins.set(made, origin)
  return made
}

export type Table<T extends { id: string }> = ReturnType<typeof tableOf<T>>

export function tableOf<T extends { id: string }>(records: Records, kind: KindOf<T>) {
  function read(stored: Stored): T | undefined {
    const record = kind.read(stored)
    if (record) origins.set(record, stored)
    return record
  }

  /** Finds damaged records too; their `record` is `undefined`. */
  async function findAll({ equal = {}, by, ...query }: QueryOf<T>) {
    const named = Object.entries(equal).map(([name, values]) => [snakeCase(name), values])
    const stored = { equal: Object.fromEntries(named), ...defined({ by: by && snakeCase(by) }) }
    const found = await records.find(kind, { ...query, ...stored })
    return found.map((stored) => ({ id: stored.id, record: read(stored) }))
  }

  /** Changes one record by a pure function of it, which may run again. `which`: its id; or what was found of it, which saves a read. */
  async function change<A>(which: Which, change: (before: T | undefined) => Changed<T, A>) {
    const [id, known] = typeof which === 'string' ? [which] : [which.id, origins.get(which)]
    const mayRead = kind.damagedIsNone ? kind.read : kind.toRecord
    const changeStored = (stored: Stored | undefined) => {
      const before = stored && mayRead(stored)
      const { next, answer } = change(before)
      return { next: next === before ? stored?.fields : next && kind.toFields(next), answer }
    }
    return records.change(kind, id, changeStored, known)
  }

  /** Changes a record if it exists. `undefined` removes it. Returns whether anything changed. */
  const update = (which: Which, next: (record: T) => T | undefined): Promise<boolean> =>
    change(which, (before) => {
      const after = before && next(before)
      return { next: after, answer: after !== before }
    })

  const insert = (record: T) => records.write(kind, record.id, undefined, kind.toFields(record))

  return {
    /** Throws `ERR_STORE_DAMAGED` if the record is damaged. */
    async get(id: string): Promise<T | undefined> {
      const stored = await records.get(kind, id)
      return stored && kind.toRecord(stored)
    },

    /** `undefined`: there is no record, or it is damaged. */
    async getReadable(id: string): Promise<T | undefined> {
      const stored = await records.get(kind, id)
      return stored && read(stored)
    },

    /** Leaves out damaged records. */
    find: async (query: QueryOf<T>) => (await findAll(query)).flatMap(({ record }) => record ?? []),
    findAll,

    insert,
    /** Inserts a record. If its id is taken, `replace` returns the next state; `undefined`: nothing changes. Returns whether it was saved. */
    save: async (record: T, replace: (before: T) => T | undefined): Promise<boolean> =>
      (await insert(record)) ||
      change(record.id, (before) => {
        const next = before ? replace(before) : record
        return { next: next ?? before, answer: next !== undefined }
      }),
    /** Writes the record, whatever exists. */
    overwrite: async (record: T): Promise<void> =>
      void (await records.write(kind, record.id, ANY, kind.toFields(record))),
    remove: async (id: string): Promise<void> => void (await records.write(kind, id, ANY)),
    change,
    update,

    /** Changes a record, and returns it as it is then. `undefined`: it is gone, or `next` refuses. */
    take: <N extends T>(which: Which, next: (record: T) => N | undefined): Promise<N | undefined> =>
      change(which, (record) => {
        const answer = record && next(record)
        return { next: answer ?? record, answer }
      }),

    /** Changes each record separately. Returns how many changed. */
    updateAll: async (all: readonly Which[], next: (record: T) => T | undefined) =>
      (await Promise.all(all.map((which) => update(which, next)))).filter(Boolean).length,
  }
}

/** Yields pages of at most `limit` records. Leaves out damaged records. */
export async function* pagesOf<T extends { id: string }>(
  table: Table<T>,
  { limit, after, ...query }: QueryOf<T>,
): AsyncGenerator<T[], void> {
  for (let [most, place] = [limit, after]; ;) {
    const page = await table.findAll({ ...query, ...(place && { after: place }), limit: most })
    const readable = page.flatMap(({ record }) => record ?? [])
    yield readable
    if (page.length < most) return
    const last = readable.at(-1)
    const value = query.by && last?.[query.by]
    // If no record of this page can be read, the next page is larger.
    if (last) place = { id: last.id, ...(value instanceof Date && { value }) }
    else most *= 2
  }
}

const PAGE = 200

/**
 * Returns the first wanted records, at most `limit`; with an `id`, that record only. Each record of the kind has the field `by`. An index
 * answers the first field of `equal`; the others are compared here.
 */
export async function firstWanted<T extends { id: string }>(
  table: Table<T>,
  { id, limit, equal = {}, ...query }: QueryOf<T> & { by: Name<T>; id?: string | undefined },
  isWanted: (record: T) => boolean = () => true,
): Promise<T[]> {
  const fields = Object.entries(equal)
  const isFound = (record: T) =>
    fields.every(([name, values]) => [values].flat().includes(Reflect.get(record, name))) &&
    isWanted(record)
  if (id !== undefined) {
    const record = await table.getReadable(id)
    return record && isFound(record) ? [record] : []
  }
  checkLimit(limit)
  const indexed = { ...equal }
  for (const [name] of fields.slice(1)) Reflect.deleteProperty(indexed, name)
  const wanted: T[] = []
  for await (const page of pagesOf(table, { ...query, equal: indexed, limit: PAGE })) {
    wanted.push(...page.filter(isFound))
    if (wanted.length >= limit) break
  }
  return wanted.slice(0, limit)
}
