/** The keys of the processes that share the store. */
import type { KeyRings } from '../ports/index.ts'
import { kindOf } from './kind.ts'
import type { Records } from './records.ts'
import { tableOf } from './table.ts'

interface RingRecord {
  /** The process. */
  id: string
  keyIds: string[]
  notedAt: Date
  purgeAt: Date
}

export const KEY_RINGS = kindOf<RingRecord>({
  name: 'key_rings',
  fields: { keyIds: 'json', notedAt: 'time', purgeAt: 'time' },
  indexes: [['notedAt']],
  purgedAt: 'purgeAt',
  isWhole: ({ keyIds }) => Array.isArray(keyIds) && keyIds.every((id) => typeof id === 'string'),
})

const HOUR_MS = 3_600_000
const MOST_PROCESSES = 1_000

/** @param now - of the database: the notes are of several processes. */
export function keyRings(records: Records, now: () => Promise<Date>): KeyRings {
  const rings = tableOf(records, KEY_RINGS)
  return {
    async note(id, keyIds) {
      if (keyIds.length === 0) return rings.remove(id)
      const notedAt = await now()
      const purgeAt = new Date(notedAt.getTime() + HOUR_MS)
      await rings.overwrite({ id, keyIds: [...keyIds], notedAt, purgeAt })
    },

    async noted(withinMs) {
      const from = new Date((await now()).getTime() - withinMs + 1)
      const found = await rings.find({ by: 'notedAt', from, limit: MOST_PROCESSES })
      return found.map(({ id, keyIds }) => ({ processId: id, keyIds }))
    },
  }
}
