import type { Query, Stored, Value } from '../ports/record-store.ts'
import type { Changed } from './changes.ts'
import type { KindOf } from './kind.ts'
import type { Records } from './records.ts'

type Name<T> = Exclude<keyof T & string, 'id'>

/** A query by the names of the code. */
export interface QueryOf<T> extends Omit<Query, 'equal' | 'by'> {
  equal?: { readonly [N in Name<T>]?: Value | readonly Value[] }
  by?: Name<T>
}

/** The records of one kind. */
export interface Table<T extends { id: string }> {
  /** Throws `ERR_STORE_DAMAGED` where the record is damaged. */
  get(id: string): Promise<T | undefined>
  /** `undefined`: there is none that can be read. */
  getReadable(id: string): Promise<T | undefined>
  /** Those that can be read. */
  find(query: QueryOf<T>): Promise<T[]>
  /** Those that cannot be read as well, as `undefined`. */
  findAll(query: QueryOf<T>): Promise<{ id: string; record: T | undefined }[]>
  insert(record: T): Promise<boolean>
  overwrite(record: T): Promise<void>
  remove(id: string): Promise<void>
  /**
   * Changes one record by a pure function of it, which may be called again.
   *
   * @param which - its id; or the record as it was found, which is then not read again.
   */
  change<A>(which: string | T, change: (before: T | undefined) => Changed<T, A>): Promise<A>
}

export function tableOf<T extends { id: string }>(records: Records, kind: KindOf<T>): Table<T> {
  const origins = new WeakMap<T, Stored>()
  function read(stored: Stored): T | undefined {
    const record = kind.read(stored)
    if (record) origins.set(record, stored)
    return record
  }

  async function findAll({ equal = {}, by, ...query }: QueryOf<T>) {
    const named = Object.entries(equal).map(([name, values]) => [kind.nameOf(name), values])
    const found = await records.find(kind, {
      ...query,
      equal: Object.fromEntries(named),
      ...(by !== undefined && { by: kind.nameOf(by) }),
    })
    return found.map((stored) => ({ id: stored.id, record: read(stored) }))
  }

  return {
    async get(id) {
      const stored = await records.get(kind, id)
      return stored && kind.toRecord(stored)
    },

    async getReadable(id) {
      const stored = await records.get(kind, id)
      return stored && read(stored)
    },

    find: async (query) => (await findAll(query)).flatMap(({ record }) => record ?? []),
    findAll,

    insert: (record) => records.insert(kind, record.id, kind.toFields(record)),
    overwrite: (record) => records.overwrite(kind, record.id, kind.toFields(record)),
    remove: (id) => records.remove(kind, id),

    async change(which, change) {
      const [id, known] = typeof which === 'string' ? [which] : [which.id, origins.get(which)]
      const mayRead = kind.damagedIsNone ? kind.read : kind.toRecord
      const changeStored = (stored: Stored | undefined) => {
        const before = stored && mayRead(stored)
        const { next, answer } = change(before)
        return { next: next === before ? stored?.fields : next && kind.toFields(next), answer }
      }
      return records.change(kind, id, changeStored, known)
    },
  }
}
