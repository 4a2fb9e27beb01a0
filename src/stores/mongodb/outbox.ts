import { randomUUID } from 'node:crypto'
import type { AnyBulkWriteOperation, Db, Filter } from 'mongodb'
import type { MailJob, MailKind, MailOutbox, MailStage } from '../../ports/index.ts'
import { mailKinds } from '../../ports/mail-kinds.ts'
import type { Forgetful } from '../state/forget-account.ts'
import { openCollection } from './collection.ts'
import { atMost, isNumber, reached, text, time } from './conditions.ts'
import { DUPLICATE_KEY, writeErrors } from './errors.ts'
import { type NamedIndex, purgeIndex, storedPart, type StoredPart } from './indexes.ts'
import {
  fromJobDocument,
  isDamaged,
  isReadable,
  type JobDocument,
  type JobFields,
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

interface Resolved {
  job: MailJob
  accountId: string
  at: Date
  heldUntil: Date
}

/** `mail_outbox` on MongoDB: what a worker does for many jobs at once is one command for all of them. */
export function mongoOutbox(db: Db): MailOutbox & StoredPart & Forgetful {
  const collection = openCollection<JobDocument>(db, 'mail_outbox')

  const write = (operations: AnyBulkWriteOperation<JobDocument>[]) =>
    collection.bulkWrite(operations, { ordered: false })

  async function areHeld(jobs: MailJob[]) {
    const still = await collection
      .find({ _id: { $in: idsOf(jobs) } }, { projection: { lease_id: 1 } })
      .toArray()
    const leases = new Map(still.map(({ _id, lease_id }) => [_id, lease_id]))
    return jobs.map(({ id, leaseId }) => leases.get(id) === leaseId)
  }

  const added = together(async (jobs: { id: string; fields: JobFields }[]) => {
    try {
      await write(
        jobs.map(({ id, fields }) => ({
          updateOne: {
            filter: { _id: id, state: { $exists: false } },
            update: { $setOnInsert: fields, $currentDate: { requested_at: true } },
            upsert: true,
          },
        })),
      )
    } catch (error) {
      // It is there already.
      if (!writeErrors(error).every(({ code }) => code === DUPLICATE_KEY)) throw error
    }
    return jobs
  })

  const resolved = together(async (found: Resolved[]) => {
    const jobs = found.map(({ job }) => job)
    const { matchedCount } = await collection.updateMany(heldAmong(jobs), toResolved(found))
    return matchedCount === jobs.length ? jobs.map(() => true) : areHeld(jobs)
  })

  const released = together(async (writes: { job: MailJob; update: object }[]) => {
    await write(writes.map(({ job, update }) => ({ updateOne: { filter: held(job), update } })))
    return writes
  })

  const removed = together(async (jobs: MailJob[]) => {
    const superseded = { _id: { $in: idsOf(jobs) }, state: 'superseded' as const }
    await collection.deleteMany({ $or: [heldAmong(jobs), superseded] })
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
      await added({ id: text(job.id), fields: toJobFields(job) })
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
      resolved({ job, accountId: text(accountId), at: time(at), heldUntil: time(heldUntil) }),

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

/** Those that are held by whoever took them: not one that was taken again since, be it with others of these. */
function heldAmong(jobs: MailJob[]): Filter<JobDocument> {
  const leases = new Map<string, string[]>()
  for (const { id, leaseId } of jobs)
    leases.set(text(leaseId), [...(leases.get(leaseId) ?? []), text(id)])
  return { $or: [...leases].map(([lease_id, ids]) => ({ _id: { $in: ids }, lease_id })) }
}

const idsOf = (jobs: MailJob[]) => jobs.map(({ id }) => text(id))

/** One update for all: each finds its own values by its id. */
function toResolved(found: Resolved[]) {
  const place = { $indexOfArray: [{ $literal: found.map(({ job }) => job.id) }, '$_id'] }
  const own = (values: unknown[]) => ({ $arrayElemAt: [{ $literal: values }, place] })
  return [
    {
      $set: {
        state: 'resolved',
        account_id: own(found.map(({ accountId }) => accountId)),
        resolved_at: own(found.map(({ at }) => at)),
        available_at: own(found.map(({ heldUntil }) => heldUntil)),
        attempts: { $add: ['$attempts', 1] },
      },
    },
    { $unset: 'identifier' },
  ]
}

function deadLetter(at: Date, reason: string) {
  return {
    $set: { state: 'dead' as const, reason, purge_at: purgeTime(time(at)) },
    $unset: { identifier: true, lease_id: true, available_at: true },
  } as const
}
