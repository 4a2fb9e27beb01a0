import type { Collection } from 'mongodb'
import type { ClientLogoutJob, ClientLogoutStore } from '../../ports/index.ts'
import { weekAfter } from '../../ports/week.ts'
import { MOST_FOUND } from '../state/client-logouts.ts'
import {
  type ClientLogoutDocument,
  fromLogoutDocument,
  isReadable,
  toLogoutDocument,
} from './client-logout-document.ts'
import { firstReadable, type OpenCollection } from './collection.ts'
import { atMost, isNumber, reached, text, time } from './conditions.ts'
import { duplicatesIn } from './errors.ts'
import { type AccountPart, accountPart } from './forget.ts'
import { type NamedIndex, purgeIndex } from './indexes.ts'
import { leased } from './leases.ts'
import { writtenTogether } from './together.ts'

const indexes: NamedIndex[] = [
  // With the client, so that those to be left out are not read.
  { name: 'longest_due', key: { state: 1, available_at: 1, client_id: 1 } },
  { name: 'newest_of_account', key: { account_id: 1, requested_at: -1 } },
  purgeIndex,
]

/** So many due ones are looked at, for one of each client. Who has more of them is left out by the next look. */
const WINDOW = 200

export function mongoClientLogouts(open: OpenCollection): ClientLogoutStore & AccountPart {
  const collection = open<ClientLogoutDocument>('client_logouts')
  const settled = writtenTogether(collection)
  const part = accountPart(collection, indexes, 'account_id', () => ({ state: 'waiting' }))

  return {
    ...part,

    async add(logouts) {
      if (logouts.length === 0) return
      // Those that are there already stay as they are.
      await duplicatesIn(collection.insertMany(logouts.map(toLogoutDocument), { ordered: false }))
    },

    claim: (...call) => claim(collection, ...call),

    async settle({ id, leaseId }, outcome) {
      const { reason } = outcome
      const $set = {
        ...(reason !== undefined && { reason }),
        ...('retryAt' in outcome
          ? { available_at: time(outcome.retryAt) }
          : { state: outcome.state, purge_at: weekAfter(time(outcome.at)) }),
      }
      const filter = { _id: text(id), lease_id: text(leaseId) }
      const update = { $set, $unset: { lease_id: true as const } }
      if ('retryAt' in outcome) await settled({ updateOne: { filter, update } })
      else {
        await Promise.all([
          settled({ deleteOne: { filter: { ...filter, forgotten: true } } }),
          settled({ updateOne: { filter: { ...filter, forgotten: { $ne: true } }, update } }),
        ])
      }
    },

    async find({ accountId, endId }) {
      const found = collection
        .find({ account_id: text(accountId), ...(endId !== undefined && { end_id: text(endId) }) })
        .sort({ requested_at: -1 })
      return (await firstReadable(found, isReadable, MOST_FOUND)).map(fromLogoutDocument)
    },

    async forget(accountId, ...rest) {
      const waiting = { account_id: text(accountId), state: 'waiting' } as const
      await collection.updateMany(waiting, { $set: { forgotten: true } })
      return part.forget(accountId, ...rest)
    },
  }
}

async function claim(
  collection: Collection<ClientLogoutDocument>,
  ...[most, at, heldUntil, except]: Parameters<ClientLogoutStore['claim']>
): Promise<ClientLogoutJob[]> {
  const among = { $nin: except.map(text) }
  const due = { state: 'waiting', available_at: reached(at), attempts: isNumber } as const
  const found = await collection
    .find({ ...due, client_id: among }, { projection: { client_id: 1 } })
    .sort({ available_at: 1 })
    .limit(WINDOW)
    .toArray()
  const seen = new Set<unknown>()
  const chosen = found
    .filter(({ client_id: client }) => !seen.has(client) && seen.add(client))
    .slice(0, atMost(most))
  const claimed = await leased<ClientLogoutDocument>(collection, chosen, {
    due,
    heldUntil,
    attempts: 1,
  })
  return claimed
    .filter(isReadable)
    .map((job) => Object.assign(fromLogoutDocument(job), { leaseId: job.lease_id ?? '' }))
}
