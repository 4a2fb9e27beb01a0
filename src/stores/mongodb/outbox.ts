import type { Db, Filter } from 'mongodb'
import type { MailJob, MailOutbox, MailStage } from '../../ports/index.ts'
import { orderOf } from '../../ports/request-order.ts'
import type { Forgetful } from '../state/forget-account.ts'
import { openCollection } from './collection.ts'
import { text, time } from './conditions.ts'
import { isDuplicateKey } from './errors.ts'
import { type NamedIndex, purgeIndex, storedPart, type StoredPart } from './indexes.ts'
import {
  fromJobDocument,
  isBroken,
  isReadable,
  type JobDocument,
  toJobFields,
} from './job-document.ts'
import { toJobId } from './job-status.ts'
import { mongoOutboxAdministration } from './outbox-administration.ts'
import { jobsAfter, jobsBefore } from './request-order.ts'
import { purgeTime } from '../state/purge-time.ts'

const UNREADABLE = 'unreadable'

const indexes: NamedIndex[] = [
  { name: 'longest_due', key: { state: 1, available_at: 1, requested_at: 1 } },
  { name: 'newest', key: { requested_at: 1 } },
  { name: 'past_its_life', key: { state: 1, expires_at: 1 } },
  { name: 'of_account', key: { account_id: 1, kind: 1, requested_at: 1 }, sparse: true },
  purgeIndex,
]

/** `mail_outbox` on MongoDB. */
export function mongoOutbox(db: Db): MailOutbox & StoredPart & Forgetful {
  const collection = openCollection<JobDocument>(db, 'mail_outbox')

  async function isUpdated(job: MailJob, update: object) {
    const { matchedCount } = await collection.updateOne(held(job), update)
    return matchedCount === 1
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

    async claim(stage, leaseId, at, leaseUntil) {
      const document = await collection.findOneAndUpdate(
        { ...isFor(stage, time(at)), available_at: { $lte: at }, ...isReadable },
        {
          $set: { lease_id: text(leaseId), available_at: time(leaseUntil) },
          $inc: { attempts: stage === 'send' ? 1 : 0 },
        },
        { sort: { available_at: 1, requested_at: 1 }, returnDocument: 'after' },
      )
      return document ? fromJobDocument(document, leaseId) : undefined
    },

    resolve: (job, accountId, at) =>
      isUpdated(job, {
        $set: { account_id: text(accountId), resolved_at: time(at) },
        $unset: { identifier: true },
      }),

    async supersedeEarlier(job, at) {
      await collection.updateMany(
        {
          ...ofSameKind(job),
          state: { $in: ['requested', 'resolved'] },
          ...jobsBefore(orderOf(job)),
        },
        { $set: { state: 'superseded', available_at: time(at) }, $unset: { lease_id: true } },
      )
    },

    async isOvertaken(job) {
      const later = await collection.findOne(
        {
          ...ofSameKind(job),
          resolved_at: { $type: 'date' },
          reason: { $ne: UNREADABLE },
          ...jobsAfter(orderOf(job)),
        },
        { projection: { _id: 1 } },
      )
      return later !== null
    },

    async isUnderWay(job, at) {
      const other = await collection.findOne(
        {
          ...ofSameKind(job),
          _id: { $ne: text(job.id) },
          ...(job.pendingLoginId !== undefined && { pending_login_id: { $exists: true } }),
          state: { $in: ['requested', 'resolved'] },
          resolved_at: { $type: 'date' },
          expires_at: { $gt: time(at) },
          ...isReadable,
        },
        { projection: { _id: 1 } },
      )
      return other !== null
    },

    ready: (job, at) =>
      isUpdated(job, {
        $set: { state: 'resolved', available_at: time(at) },
        $unset: { lease_id: true },
      }),

    renew: (job, leaseUntil) => isUpdated(job, { $set: { available_at: time(leaseUntil) } }),

    async remove(job) {
      const { deletedCount } = await collection.deleteOne({
        _id: text(job.id),
        $or: [{ lease_id: text(job.leaseId) }, { state: 'superseded' }],
      })
      return deletedCount === 1
    },

    retry: (job, at, reason) =>
      isUpdated(job, { $set: { available_at: time(at), reason }, $unset: { lease_id: true } }),

    postpone: (job, at) =>
      isUpdated(job, {
        $set: { available_at: time(at) },
        $inc: { attempts: -1 },
        $unset: { lease_id: true },
      }),

    giveUp: (job, at, reason) => isUpdated(job, deadLetter(at, reason)),

    async giveUpUnreadable(at) {
      const document = await collection.findOneAndUpdate(isBroken, deadLetter(at, UNREADABLE), {
        projection: { _id: 1 },
      })
      return document ? toJobId(document._id) : undefined
    },
  }
}

function isFor(stage: MailStage, at: Date): Filter<JobDocument> {
  if (stage === 'resolve') return { state: { $in: ['requested', 'superseded'] } }
  return { state: 'resolved', expires_at: stage === 'send' ? { $gt: at } : { $lte: at } }
}

function held({ id, leaseId }: MailJob) {
  return { _id: text(id), lease_id: text(leaseId) }
}

function deadLetter(at: Date, reason: string) {
  return {
    $set: { state: 'dead' as const, reason, purge_at: purgeTime(time(at)) },
    $unset: { identifier: true, lease_id: true, available_at: true },
  } as const
}

function ofSameKind({ accountId, kind }: Pick<MailJob, 'accountId' | 'kind'>) {
  return { account_id: text(accountId ?? ''), kind }
}
