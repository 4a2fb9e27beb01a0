import type { Collection, Filter } from 'mongodb'
import type { MailJobQuery, OutboxAdministration } from '../../ports/index.ts'
import { atMost, text, time } from './conditions.ts'
import { isReadable, isRevivable, type JobDocument } from './job-document.ts'
import { statusFields, toJobStatus } from './job-status.ts'

/** What an admin asks of `mail_outbox` on MongoDB. */
export function mongoOutboxAdministration(
  collection: Collection<JobDocument>,
): OutboxAdministration {
  async function isUpdated(which: Filter<JobDocument>, update: object) {
    const { matchedCount } = await collection.updateOne(which, update)
    return matchedCount === 1
  }

  return {
    async list(query, at) {
      const documents = await collection
        .find(isAskedFor(query), { projection: statusFields })
        .sort({ requested_at: -1 })
        .limit(atMost(query.limit))
        .toArray()
      return documents.map((document) => toJobStatus(document, time(at)))
    },

    async revive(id, at, expiresAt) {
      const job = await collection.findOne({ _id: text(id) })
      if (!job) return 'not_found'
      if (isRevivable(job)) {
        const isRevived = await isUpdated({ _id: id, state: 'dead' }, asNewRequest(at, expiresAt))
        return isRevived ? 'revived' : 'held'
      }
      if (job.state === 'dead' && job.account_id === undefined) return 'no_account'
      if (!isReadable(job)) return 'not_found'
      const waits = { available_at: { $gt: time(at) }, lease_id: { $exists: false } }
      const isDue = await isUpdated({ _id: id, ...waits }, { $set: { available_at: at } })
      return isDue ? 'revived' : 'held'
    },

    async discard(which, at) {
      const { deletedCount } = await collection.deleteMany(
        which === 'dead'
          ? { state: 'dead' }
          : { _id: text(which.id), state: { $ne: 'over' }, $nor: [heldAt(at)] },
      )
      return deletedCount
    },
  }
}

export function heldAt(at: Date): Filter<JobDocument> {
  return {
    state: { $ne: 'dead' },
    lease_id: { $exists: true },
    available_at: { $gt: time(at) },
  }
}

function isAskedFor(query: MailJobQuery): Filter<JobDocument> {
  const { id, state, accountId, requestedBefore, requestedFrom } = query
  const requestedAt = {
    ...(requestedBefore && { $lt: time(requestedBefore) }),
    ...(requestedFrom && { $gte: time(requestedFrom) }),
  }
  return {
    ...(id !== undefined && { _id: text(id) }),
    state: state === 'dead' ? state : { $nin: state ? ['dead', 'over'] : ['over'] },
    ...(accountId !== undefined && { account_id: text(accountId) }),
    ...((requestedBefore ?? requestedFrom) && { requested_at: requestedAt }),
  }
}

function asNewRequest(at: Date, expiresAt: Date) {
  return {
    $set: { state: 'requested', available_at: time(at), expires_at: time(expiresAt) },
    $unset: { purge_at: true, reason: true, resolved_at: true },
    $currentDate: { requested_at: true },
  }
}
