import type { Collection, Filter } from 'mongodb'
import type { MailJob, MailOutbox, MailStage } from '../../ports/index.ts'
import { mailKinds } from '../../ports/mail-kinds.ts'
import type { OpenCollection } from './collection.ts'
import { type AccountPart, accountPart } from './forget.ts'
import { atMost, isNumber, reached, text, time } from './conditions.ts'
import { type NamedIndex, purgeIndex } from './indexes.ts'
import {
  fromJobDocument,
  isDamaged,
  isReadable,
  type JobDocument,
  toJobDocument,
  toRequestOfAccount,
  UNREADABLE,
} from './job-document.ts'
import { toJobId } from './job-status.ts'
import { leased } from './leases.ts'
import { heldAt, mongoOutboxAdministration } from './outbox-administration.ts'
import { held, outboxCommands } from './outbox-commands.ts'
import { weekAfter } from '../../ports/week.ts'

const indexes: NamedIndex[] = [
  { name: 'longest_due', key: { state: 1, available_at: 1, requested_at: 1 } },
  { name: 'newest', key: { requested_at: 1 } },
  { name: 'past_its_life', key: { state: 1, expires_at: 1 } },
  { name: 'of_account', key: { account_id: 1, kind: 1, requested_at: 1 }, sparse: true },
  purgeIndex,
]

export function mongoOutbox(open: OpenCollection): MailOutbox & AccountPart {
  const collection = open<JobDocument>('mail_outbox')
  const commands = outboxCommands(collection)

  return {
    ...accountPart(collection, indexes, 'account_id', heldAt),
    ...mongoOutboxAdministration(collection),

    async add(job) {
      await commands.added(toJobDocument(job))
    },

    claim: (...call) => claimJobs(collection, ...call),

    resolve: (job, accountId, at, heldUntil) =>
      commands.resolved({
        job,
        accountId: text(accountId),
        at: time(at),
        heldUntil: time(heldUntil),
      }),

    async requestsOf(accountId, kind) {
      const jobs = await commands.requested({ accountId: text(accountId), kind })
      return jobs.map(toRequestOfAccount).filter((request) => request !== undefined)
    },

    async supersede(ids, at) {
      if (ids.length === 0) return
      await collection.updateMany(
        { _id: { $in: ids.map(text) }, state: { $in: ['requested', 'resolved'] } },
        { $set: { state: 'superseded', available_at: time(at) }, $unset: { lease_id: true } },
      )
    },

    isHeld: commands.isHeld,

    async release(job, at, reason) {
      const due = { available_at: time(at) }
      const outcome: object =
        reason === undefined ? { $set: due, $inc: { attempts: -1 } } : { $set: { ...due, reason } }
      const update = { $unset: { lease_id: true as const }, ...outcome }
      await commands.released({ updateOne: { filter: held(job), update } })
    },

    async remove(job) {
      await commands.removed(job)
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

async function claimJobs(
  collection: Collection<JobDocument>,
  ...[stage, most, at, heldUntil]: Parameters<MailOutbox['claim']>
): Promise<MailJob[]> {
  const due = isFor(stage, at)
  const found = await collection
    .find(due, { projection: { _id: 1 } })
    .sort({ available_at: 1, requested_at: 1 })
    .limit(atMost(most))
    .toArray()
  const attempts = stage === 'send' ? 1 : 0
  const claimed = await leased<JobDocument>(collection, found, { due, heldUntil, attempts })
  const unreadable = claimed.filter((job) => !isReadable(job)).map(({ _id }) => _id)
  // They are due no more, and so found by `isDamaged`.
  if (unreadable.length > 0)
    await collection.updateMany(
      { _id: { $in: unreadable } },
      { $unset: { available_at: true, lease_id: true } },
    )
  return claimed
    .filter(isReadable)
    .map(fromJobDocument)
    .toSorted((one, other) => one.requestedAt.getTime() - other.requestedAt.getTime())
}

function isFor(stage: MailStage, at: Date): Filter<JobDocument> {
  const due = { kind: { $in: mailKinds }, available_at: reached(at), attempts: isNumber }
  if (stage === 'resolve') return { ...due, state: { $in: ['requested', 'superseded'] } }
  return { ...due, state: 'resolved', expires_at: stage === 'send' ? { $gt: at } : { $lte: at } }
}

function deadLetter(at: Date, reason: string) {
  return {
    $set: { state: 'dead' as const, reason, purge_at: weekAfter(time(at)) },
    $unset: { identifier: true, lease_id: true, available_at: true },
  } as const
}
