import { randomUUID } from 'node:crypto'
import type { AnyBulkWriteOperation, Db, Filter } from 'mongodb'
import type { MailJob, MailKind, MailOutbox, MailStage } from '../../ports/index.ts'
import { mailKinds } from '../../ports/mail-kinds.ts'
import type { Forgetful } from '../state/forget-account.ts'
import { openCollection } from './collection.ts'
import { atMost, isNumber, reached, text, time } from './conditions.ts'
import { isDuplicateKey } from './errors.ts'
import { type NamedIndex, purgeIndex, storedPart, type StoredPart } from './indexes.ts'
import {
  fromJobDocument,
  isDamaged,
  isReadable,
  type JobDocument,
  toJobFields,
  toRequestOfAccount,
  UNREADABLE,
} from './job-document.ts'
import { toJobId } from './job-status.ts'
import { mongoOutboxAdministration } from './outbox-administration.ts'
import { purgeTime } from '../state/purge-time.ts'
import { together } from './together.ts'

const indexes: NamedIndex[] = [
  { name: 'longest_due', key: { state: 1, available_at: 1, requested_at: 1 } },
  { name: 'newest', key: { requested_at: 1 } },
  { name: 'past_its_life', key: { state: 1, expires_at: 1 } },
  { name: 'of_account', key: { account_id: 1, kind: 1, requested_at: 1 }, sparse: true },
  purgeIndex,
]

interface HeldWrite {
  job: MailJob
  update: object
}

/** `mail_outbox` on MongoDB: what a worker does for many jobs at once is one command for all of them. */
export function mongoOutbox(db: Db): MailOutbox & StoredPart & Forgetful {
  const collection = openCollection<JobDocument>(db, 'mail_outbox')

  const write = (operations: AnyBulkWriteOperation<JobDocument>[]) =>
    collection.bulkWrite(operations, { ordered: false })

  const updateAll = (writes: HeldWrite[]) =>
    write(writes.map(({ job, update }) => ({ updateOne: { filter: held(job), update } })))

  async function areHeld(jobs: MailJob[]) {
    const still = await collection
      .find({ $or: jobs.map(held) }, { projection: { lease_id: 1 } })
      .toArray()
    const leases = new Map(still.map(({ _id, lease_id }) => [_id, lease_id]))
    return jobs.map(({ id, leaseId }) => leases.get(id) === leaseId)
  }

  const resolved = together(async (writes: HeldWrite[]) => {
    const { matchedCount } = await updateAll(writes)
    if (matchedCount === writes.length) return writes.map(() => true)
    return areHeld(writes.map(({ job }) => job))
  })

  const released = together(async (writes: HeldWrite[]) => {
    await updateAll(writes)
    return writes
  })

  const removed = together(async (jobs: MailJob[]) => {
    await write(jobs.map((job) => ({ deleteOne: { filter: removable(job) } })))
    return jobs
  })

  const requested = together(async (asked: { accountId: string; kind: MailKind }[]) => {
    const accounts = new Set(asked.map(({ accountId }) => accountId))
    const found = await collection.find({ account_id: { $in: [...accounts] } }).toArray()
    return asked.map(({ accountId, kind }) =>
      found.filter((job) => job.account_id === accountId && job.kind === kind),
    )
  })

  // It is due no more, and so found by `isDamaged`.
  async function markUnreadable(jobs: JobDocument[]) {
    if (jobs.length === 0) return
    const which = { _id: { $in: jobs.map(({ _id }) => _id) } }
    await collection.updateMany(which, { $unset: { available_at: true, lease_id: true } })
  }

  return {
    ...storedPart(collection, indexes),
    ...mongoOutboxAdministration(collection),

    async add(job) {
      try {
        await collection.updateOne(
          { _id: text(job.id), state: { $exists: false } },
          { $setOnInsert: toJobFields(job), $currentDate: { requested_at: true } },
          { upsert: true },
        )
      } catch (error) {
        // It is there already.
        if (!isDuplicateKey(error)) throw error
      }
    },

    async claim(stage, most, at, heldUntil) {
      const due = isFor(stage, at)
      const found = await collection
        .find(due, { projection: { _id: 1 } })
        .sort({ available_at: 1, requested_at: 1 })
        .limit(atMost(most))
        .toArray()
      if (found.length === 0) return []
      const leaseId = randomUUID()
      const ids = { _id: { $in: found.map(({ _id }) => _id) } }
      await collection.updateMany(
        { ...ids, ...due },
        {
          $set: { lease_id: leaseId, available_at: time(heldUntil) },
          $inc: { attempts: stage === 'send' ? 1 : 0 },
        },
      )
      const claimed = await collection
        .find({ ...ids, lease_id: leaseId })
        .sort({ requested_at: 1 })
        .toArray()
      await markUnreadable(claimed.filter((job) => !isReadable(job)))
      return claimed.filter(isReadable).map(fromJobDocument)
    },

    resolve: (job, accountId, at, heldUntil) =>
      resolved({
        job,
        update: {
          $set: {
            state: 'resolved',
            account_id: text(accountId),
            resolved_at: time(at),
            available_at: time(heldUntil),
          },
          $inc: { attempts: 1 },
          $unset: { identifier: true },
        },
      }),

    async requestsOf(accountId, kind) {
      const jobs = await requested({ accountId: text(accountId), kind })
      return jobs.map(toRequestOfAccount).filter((request) => request !== undefined)
    },

    async supersede(ids, at) {
      if (ids.length === 0) return
      await collection.updateMany(
        { _id: { $in: ids.map(text) }, state: { $in: ['requested', 'resolved'] } },
        { $set: { state: 'superseded', available_at: time(at) }, $unset: { lease_id: true } },
      )
    },

    isHeld: together(areHeld),

    async release(job, at, reason) {
      const outcome =
        reason === undefined
          ? { $inc: { attempts: -1 } }
          : { $set: { available_at: time(at), reason } }
      const update = { $set: { available_at: time(at) }, $unset: { lease_id: true }, ...outcome }
      await released({ job, update })
    },

    async remove(job) {
      await removed(job)
    },

    async giveUp(job, at, reason) {
      const { matchedCount } = await collection.updateOne(held(job), deadLetter(at, reason))
      return matchedCount === 1
    },

    async giveUpUnreadable(at) {
      const damaged = await collection.find(isDamaged, { projection: { _id: 1 } }).toArray()
      const which = { _id: { $in: damaged.map(({ _id }) => _id) } }
      if (damaged.length > 0) await collection.updateMany(which, deadLetter(at, UNREADABLE))
      return damaged.map(({ _id }) => toJobId(_id))
    },
  }
}

function isFor(stage: MailStage, at: Date): Filter<JobDocument> {
  const due = { kind: { $in: mailKinds }, available_at: reached(at), attempts: isNumber }
  if (stage === 'resolve') return { ...due, state: { $in: ['requested', 'superseded'] } }
  return { ...due, state: 'resolved', expires_at: stage === 'send' ? { $gt: at } : { $lte: at } }
}

function held({ id, leaseId }: MailJob) {
  return { _id: text(id), lease_id: text(leaseId) }
}

function removable({ id, leaseId }: MailJob): Filter<JobDocument> {
  return { _id: text(id), $or: [{ lease_id: text(leaseId) }, { state: 'superseded' }] }
}

function deadLetter(at: Date, reason: string) {
  return {
    $set: { state: 'dead' as const, reason, purge_at: purgeTime(time(at)) },
    $unset: { identifier: true, lease_id: true, available_at: true },
  } as const
}
