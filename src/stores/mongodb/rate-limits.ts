import { randomUUID } from 'node:crypto'
import type { AnyBulkWriteOperation, Db } from 'mongodb'
import type { Hit, RateLimits } from '../../ports/index.ts'
import { openCollection } from './collection.ts'
import { text } from './conditions.ts'
import { DUPLICATE_KEY, isDuplicateKey, writeErrors } from './errors.ts'
import { type NamedIndex, storedPart, type StoredPart } from './indexes.ts'
import { together } from './together.ts'

/** What one command counted under a key. */
interface Ticket {
  by: string
  count: number
  ms_to_end: number
  at: Date
}

interface WindowDocument {
  key: string
  points: number
  /** By the clock of the database; by that of a process where an older version wrote it. */
  expire: Date
  tickets?: Ticket[]
}

/** Two versions side by side differ by this much at most; a window that is longer is none of ours. */
const MAX_SKEW_MS = 10_000

/** Of the latest commands, and so many at most: whoever comes later than all of them reads at least its own count. */
const TICKET_MS = 5_000
const TICKETS = 200

const indexes: NamedIndex[] = [
  { name: 'key_unique', key: { key: 1 }, unique: true },
  { name: 'expire_ttl', key: { expire: 1 }, expireAfterSeconds: 0 },
]

interface Count {
  filter: { key: string }
  update: object[]
}

/** `rate_limits` on MongoDB: one command for a hit alone, two for all hits that come together. The field names are those of the first release. */
export function mongoRateLimits(db: Db): RateLimits & StoredPart {
  const collection = openCollection<WindowDocument>(db, 'rate_limits')

  /** Of several that begin a window at once, one does; the others count in it. */
  async function write(operations: AnyBulkWriteOperation<WindowDocument>[]): Promise<void> {
    try {
      await collection.bulkWrite(operations, { ordered: false })
    } catch (error) {
      const failures = writeErrors(error)
      if (!failures.every(({ code }) => code === DUPLICATE_KEY)) throw error
      await write(failures.flatMap(({ index }) => operations[index] ?? []))
    }
  }

  async function countedAll(counts: Count[]): Promise<WindowDocument[]> {
    await write(counts.map((count) => ({ updateOne: { ...count, upsert: true } })))
    return collection.find({ key: { $in: counts.map(({ filter }) => filter.key) } }).toArray()
  }

  async function countedOne(count: Count): Promise<WindowDocument[]> {
    const { filter, update } = count
    try {
      const options = { upsert: true, returnDocument: 'after' } as const
      const window = await collection.findOneAndUpdate(filter, update, options)
      return window ? [window] : []
    } catch (error) {
      if (!isDuplicateKey(error)) throw error
      return countedOne(count)
    }
  }

  const hit = together(async (asked: { key: string; windowMs: number }[]): Promise<Hit[]> => {
    const by = randomUUID()
    const keys = new Map<string, { windowMs: number; hits: number }>()
    const numbered = asked.map(({ key, windowMs }) => {
      const number = (keys.get(key)?.hits ?? 0) + 1
      keys.set(key, { windowMs, hits: number })
      return { key, windowMs, number }
    })
    const counts = [...keys].map(([key, { windowMs, hits }]) => ({
      filter: { key },
      update: counting(by, windowMs, hits),
    }))
    const [first, ...others] = counts
    const windows =
      first && others.length === 0 ? await countedOne(first) : await countedAll(counts)
    const found = new Map(windows.map((window) => [window.key, window]))
    return numbered.map(({ key, windowMs, number }) => {
      const { tickets = [], points = number } = found.get(key) ?? {}
      const ticket = tickets.find((each) => each.by === by)
      const later = (keys.get(key)?.hits ?? number) - number
      return ticket
        ? { count: ticket.count - later, msToEnd: Math.min(ticket.ms_to_end, windowMs) }
        : { count: points, msToEnd: windowMs }
    })
  })

  return {
    ...storedPart(collection, indexes),

    hit: (key, windowMs) => hit({ key: text(key), windowMs }),

    async msToEnd(key) {
      const [window] = await collection
        .find({ key: text(key), expire: { $type: 'date' } })
        .project<{ left: number }>({ left: LEFT })
        .toArray()
      return Math.max(0, window?.left ?? 0)
    },
  }
}

const LEFT = { $subtract: ['$expire', '$$NOW'] }

/** Counts so many in the window of a key, or begins one that lasts so long. */
function counting(by: string, windowMs: number, hits: number) {
  const ends = { $add: ['$$NOW', windowMs] }
  const isOpen = {
    $and: [
      { $eq: [{ $type: '$expire' }, 'date'] },
      { $gt: ['$expire', '$$NOW'] },
      { $lte: ['$expire', { $add: ['$$NOW', windowMs + MAX_SKEW_MS] }] },
      { $isNumber: '$points' },
      { $gte: ['$points', 1] },
    ],
  }
  const ticket = { by: { $literal: by }, count: '$points', ms_to_end: LEFT, at: '$$NOW' }
  const before = {
    $filter: {
      input: { $cond: [{ $isArray: '$tickets' }, '$tickets', []] },
      cond: { $gt: ['$$this.at', { $subtract: ['$$NOW', TICKET_MS] }] },
    },
  }
  return [
    {
      $set: {
        points: { $cond: [isOpen, { $add: ['$points', hits] }, hits] },
        expire: { $cond: [isOpen, '$expire', ends] },
      },
    },
    { $set: { tickets: { $slice: [{ $concatArrays: [[ticket], before] }, TICKETS] } } },
  ]
}
