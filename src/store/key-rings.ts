/** The signing keys of the processes that share the store. Only ids that reveal nothing about the keys are kept. */
import { holds, kindOf, type RecordOf } from './kind.ts'
import type { Table } from './table.ts'

/** The id of a record is the id of its process. */
export const KEY_RINGS = kindOf({
  name: 'key_rings',
  fields: { keyIds: holds<string[]>('json'), notedAt: 'time', purgeAt: 'time' },
  indexes: [['notedAt']],
  purgedAt: 'purgeAt',
  isWhole: ({ keyIds }) => Array.isArray(keyIds) && keyIds.every((id) => typeof id === 'string'),
})

type KeyRingRecord = RecordOf<typeof KEY_RINGS>

/** The keys of one process. The first one signs; all of them verify. */
export type NotedKeyRing = Pick<KeyRingRecord, 'id' | 'keyIds'>

const HOUR_MS = 3_600_000
const MAX_PROCESSES = 1_000

export type KeyRings = ReturnType<typeof keyRings>

/** @param now - the time of the database, because several processes write notes. */
export function keyRings(rings: Table<KeyRingRecord>, now: () => Promise<Date>) {
  return {
    /** Replaces the note of a process. An empty list: the process has ended, and its note is removed. */
    async note(id: string, keyIds: readonly string[]): Promise<void> {
      if (keyIds.length === 0) return rings.remove(id)
      const notedAt = await now()
      const purgeAt = new Date(notedAt.getTime() + HOUR_MS)
      await rings.overwrite({ id, keyIds: [...keyIds], notedAt, purgeAt })
    },

    /** The notes of the last `withinMs` milliseconds. */
    async noted(withinMs: number): Promise<NotedKeyRing[]> {
      const from = new Date((await now()).getTime() - withinMs + 1)
      return rings.find({ by: 'notedAt', from, limit: MAX_PROCESSES })
    },
  }
}
