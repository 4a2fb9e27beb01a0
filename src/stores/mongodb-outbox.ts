import type { Db } from 'mongodb'
import type { MailJob, MailOutbox } from '../ports.ts'
import { openCollection } from './mongodb-collection.ts'
import { hasTypes, text, time } from './mongodb-conditions.ts'
import { createIndexes, purgeIndex } from './mongodb-indexes.ts'
import {
  fromJobDocument,
  jobTypes,
  type JobDocument,
  optionalJobTypes,
  toJobFields,
} from './mongodb-job-document.ts'
import { purgeTime } from './purge-time.ts'

const isWhole = hasTypes(jobTypes, optionalJobTypes)

/** `mail_outbox` on MongoDB (D20). */
export function mongoOutbox(db: Db): MailOutbox & { start(): Promise<void> } {
  const collection = openCollection<JobDocument>(db, 'mail_outbox')
  return {
    async start() {
      await createIndexes(collection, [
        { name: 'oldest_first', key: { state: 1, requested_at: 1, available_at: 1 } },
        purgeIndex,
      ])
    },

    async add(job) {
      await collection.updateOne(
        { _id: text(job.id) },
        { $setOnInsert: toJobFields(job), $currentDate: { requested_at: true } },
        { upsert: true },
      )
    },

    async claim(leaseId, at, leaseUntil) {
      const document = await collection.findOneAndUpdate(
        { state: 'waiting', available_at: { $lte: time(at) }, ...isWhole },
        {
          $set: { lease_id: text(leaseId), available_at: time(leaseUntil) },
          $inc: { attempts: 1 },
        },
        { sort: { requested_at: 1 }, returnDocument: 'after' },
      )
      return document ? fromJobDocument(document, leaseId) : undefined
    },

    async resolve(job, accountId) {
      const { matchedCount } = await collection.updateOne(held(job), {
        $set: { account_id: text(accountId) },
        $unset: { identifier: true },
      })
      return matchedCount === 1
    },

    async remove(job) {
      await collection.deleteOne(held(job))
    },

    async retry(job, at, reason) {
      await collection.updateOne(held(job), {
        $set: { available_at: time(at), reason },
        $unset: { lease_id: true },
      })
    },

    async giveUp(job, at, reason) {
      await collection.updateOne(held(job), {
        $set: { state: 'dead', reason, purge_at: purgeTime(time(at)) },
        $unset: { identifier: true, lease_id: true, available_at: true },
      })
    },
  }
}

function held({ id, leaseId }: MailJob) {
  return { _id: text(id), lease_id: text(leaseId) }
}
