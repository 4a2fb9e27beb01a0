import { randomUUID } from 'node:crypto'
import type { Collection } from 'mongodb'
import type { ClientLogoutJob, ClientLogoutStore } from '../../ports/index.ts'
import { weekAfter } from '../../ports/week.ts'
import { MOST_FOUND } from '../state/client-logouts.ts'
import type { Forgetful } from '../state/forget-account.ts'
import {
  type ClientLogoutDocument,
  fromLogoutDocument,
  isReadable,
  toLogoutDocument,
} from './client-logout-document.ts'
import { firstReadable, type OpenCollection } from './collection.ts'
import { atMost, isNumber, reached, text, time } from './conditions.ts'
import { duplicatesIn } from './errors.ts'
import { forgetDocuments } from './forget.ts'
import { type NamedIndex, purgeIndex, storedPart, type StoredPart } from './indexes.ts'
import { writtenTogether } from './together.ts'

const indexes: NamedIndex[] = [
  // With the client, so that those to be left out are not read.
  { name: 'longest_due', key: { state: 1, available_at: 1, client_id: 1 } },
  { name: 'newest_of_account', key: { account_id: 1, requested_at: -1 } },
  purgeIndex,
]

/** So many due ones are looked at, for one of each client. Who has more of them is left out by the next look. */
const WINDOW = 200

/** `client_logouts` on MongoDB. */
export function mongoClientLogouts(
  open: OpenCollection,
): ClientLogoutStore & StoredPart & Forgetful {
  const collection = open<ClientLogoutDocument>('client_logouts')
  const settled = writtenTogether(collection)

  return {
    ...storedPart(collection, indexes),

    async add(logouts) {
      if (logouts.length === 0) return
      // Those that are there already stay as they are.
      await duplicatesIn(collection.insertMany(logouts.map(toLogoutDocument), { ordered: false }))
    },

    claim: (most, at, heldUntil, except) => claim(collection, { most, at, heldUntil, except }),

    async settle({ id, leaseId }, outcome) {
      const { reason } = outcome
      const $set = {
        ...(reason !== undefined && { reason }),
        ...('retryAt' in outcome
          ? { available_at: time(outcome.retryAt) }
          : { state: outcome.state, purge_at: weekAfter(time(outcome.at)) }),
      }
      const filter = { _id: text(id), lease_id: text(leaseId) }
      await settled({ updateOne: { filter, update: { $set, $unset: { lease_id: true } } } })
    },

    async find({ accountId, endId }) {
      const found = collection
        .find({ account_id: text(accountId), ...(endId !== undefined && { end_id: text(endId) }) })
        .sort({ requested_at: -1 })
      return (await firstReadable(found, isReadable, MOST_FOUND)).map(fromLogoutDocument)
    },

    forget: (accountId, at) =>
      forgetDocuments(
        collection,
        { account_id: text(accountId) },
        { lease_id: { $exists: true }, available_at: { $gt: time(at) } },
      ),
  }
}

interface Claim {
  most: number
  at: Date
  heldUntil: Date
  except: readonly string[]
}

async function claim(
  collection: Collection<ClientLogoutDocument>,
  { most, at, heldUntil, except }: Claim,
): Promise<ClientLogoutJob[]> {
  const due = { state: 'waiting', available_at: reached(at), attempts: isNumber } as const
  const found = await collection
    .find({ ...due, client_id: { $nin: except.map(text) } }, { projection: { client_id: 1 } })
    .sort({ available_at: 1 })
    .limit(WINDOW)
    .toArray()
  const clients = new Set<unknown>()
  const chosen = found
    .filter(({ client_id: client }) => !clients.has(client) && clients.add(client))
    .slice(0, atMost(most))
  if (chosen.length === 0) return []
  const leaseId = randomUUID()
  const ids = { _id: { $in: chosen.map(({ _id }) => _id) } }
  await collection.updateMany(
    { ...ids, ...due },
    { $set: { lease_id: leaseId, available_at: time(heldUntil) }, $inc: { attempts: 1 } },
  )
  const claimed = await collection.find({ ...ids, lease_id: leaseId }).toArray()
  return claimed
    .filter(isReadable)
    .map((job) => Object.assign(fromLogoutDocument(job), { leaseId }))
}
