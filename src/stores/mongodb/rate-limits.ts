import { randomUUID } from 'node:crypto'
import type { Collection } from 'mongodb'
import type { Clock } from '../../clock.ts'
import type { Hit, RateLimits } from '../../ports/index.ts'
import type { OpenCollection } from './collection.ts'
import { text } from './conditions.ts'
import { duplicatesIn, isDuplicateKey } from './errors.ts'
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

type Windows = Collection<WindowDocument>

/** Hits under one key, by their places among all that came together. */
interface Count {
  windowMs: number
  places: number[]
}

/** `rate_limits` on MongoDB: hits are one command for a key alone, four for all that come together. The field names are those of the first release. */
export function mongoRateLimits(
  open: OpenCollection,
  { now }: Pick<Clock, 'now'>,
): RateLimits & StoredPart {
  const collection = open<WindowDocument>('rate_limits')

  const hit = together(async (asked: { key: string; windowMs: number }[]): Promise<Hit[]> => {
    const counts = new Map<string, Count>()
    for (const [place, { key, windowMs }] of asked.entries())
      counts.set(key, { windowMs, places: [...(counts.get(key)?.places ?? []), place] })
    const counted = counts.size > 1 ? await countAll(collection, counts, now()) : undefined
    const hits: Hit[] = []
    for (const [key, count] of counts) {
      const ticket = counted?.get(key) ?? (await countAlone(collection, key, count))
      const msToEnd = Math.min(ticket.ms_to_end, count.windowMs)
      const before = ticket.count - count.places.length
      for (const [index, place] of count.places.entries())
        hits[place] = { count: before + index + 1, msToEnd }
    }
    return hits
  })

  const peek = together(async (keys: string[]) => {
    const windows = await collection
      .find({ key: { $in: keys }, expire: { $type: 'date' }, points: { $gte: 1 } })
      .project<{ key: string; points: number; left: number }>({ key: 1, points: 1, left: LEFT })
      .toArray()
    return keys.map((key): Hit => {
      const { points, left } = windows.find((window) => window.key === key) ?? NO_WINDOW
      return left > 0 ? { count: points, msToEnd: left } : { count: 0, msToEnd: 0 }
    })
  })

  return {
    ...storedPart(collection, indexes),

    hit: (key, windowMs) => hit({ key: text(key), windowMs }),

    peek: (key) => peek(text(key)),

    async giveBack(key, hits = 1) {
      const rest = { $max: [0, { $subtract: ['$points', hits] }] }
      const isOpen = { $expr: { $gt: ['$expire', '$$NOW'] } }
      const filter = { key: text(key), points: { $gte: 1 }, ...isOpen }
      const before = await collection.findOneAndUpdate(filter, [{ $set: { points: rest } }])
      return Math.min(hits, before?.points ?? 0)
    },
  }
}

async function countAlone(windows: Windows, key: string, count: Count): Promise<Ticket> {
  const options = { upsert: true, returnDocument: 'after' } as const
  const command = windows.findOneAndUpdate({ key }, counting(randomUUID(), count), options)
  const window = await command.catch((error: unknown) => {
    if (!isDuplicateKey(error)) throw error
  })
  // Without one, somebody else began the window.
  return window?.tickets?.[0] ?? countAlone(windows, key, count)
}

async function countAll(
  windows: Windows,
  counts: Map<string, Count>,
  now: Date,
): Promise<Map<string, Ticket | undefined>> {
  const by = randomUUID()
  const keys = [...counts.keys()]
  const ofKeys = { key: { $in: keys } }
  const there = await windows.distinct('key', ofKeys)
  const missing = keys.filter((key) => !there.includes(key))
  await begin(windows, missing, now)
  for (const [count, some] of alike(counts))
    await windows.updateMany({ key: { $in: some } }, counting(by, count))
  const counted = await windows.find(ofKeys).toArray()
  return new Map(
    counted.map(({ key, tickets }) => [key, tickets?.find((ticket) => ticket.by === by)]),
  )
}

/** Windows in which nothing is counted yet; should nobody do it, they are gone soon. */
async function begin(windows: Windows, keys: string[], now: Date) {
  if (keys.length === 0) return
  const expire = new Date(now.getTime() + MAX_SKEW_MS)
  const begun = keys.map((key) => ({ key, points: 0, expire }))
  await duplicatesIn(windows.insertMany(begun, { ordered: false }))
}

/** Those that one update counts. */
function alike(counts: Map<string, Count>): Map<Count, string[]> {
  const groups = new Map<string, [Count, string[]]>()
  for (const [key, count] of counts) {
    const name = `${count.windowMs}:${count.places.length}`
    const [, keys] = groups.get(name) ?? [count, []]
    groups.set(name, [count, [...keys, key]])
  }
  return new Map(groups.values())
}

const NO_WINDOW = { points: 0, left: 0 }
const LEFT = { $subtract: ['$expire', '$$NOW'] }

/** Counts so many in the window of a key, or begins one that lasts so long. */
function counting(by: string, { windowMs, places: { length: hits } }: Count) {
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
