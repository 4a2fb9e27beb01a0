import type { Collection, Filter } from 'mongodb'
import type { MailJob, MailKind } from '../../ports/index.ts'
import { WEEK_MS } from '../../ports/week.ts'
import { text } from './conditions.ts'
import { duplicatesIn } from './errors.ts'
import type { JobDocument, NewJobDocument } from './job-document.ts'
import { together, writtenTogether } from './together.ts'

interface Resolved {
  job: MailJob
  accountId: string
  at: Date
  heldUntil: Date
}

/** What workers and requests do at the same time is one command for all of them. */
export function outboxCommands(collection: Collection<JobDocument>) {
  async function areHeld(jobs: MailJob[]) {
    const still = await collection
      .find({ _id: { $in: idsOf(jobs) } }, { projection: { lease_id: 1 } })
      .toArray()
    const leases = new Map(still.map(({ _id, lease_id }) => [_id, lease_id]))
    return jobs.map(({ id, leaseId }) => leases.get(id) === leaseId)
  }

  const added = together(async (jobs: NewJobDocument[]) => {
    const command = collection.bulkWrite(
      jobs.map(({ _id, ...fields }) => ({
        updateOne: {
          filter: { _id, state: { $exists: false } },
          update: { $setOnInsert: fields, $currentDate: { requested_at: true } },
          upsert: true,
        },
      })),
      { ordered: false },
    )
    // Those that are there already stay as they are.
    await duplicatesIn(command)
    return jobs
  })

  const resolved = together(async (found: Resolved[]) => {
    const jobs = found.map(({ job }) => job)
    const { matchedCount } = await collection.updateMany(heldAmong(jobs), toResolved(found))
    return matchedCount === jobs.length ? jobs.map(() => true) : areHeld(jobs)
  })

  const released = writtenTogether(collection)

  const removed = together(async (jobs: MailJob[]) => {
    const superseded = { _id: { $in: idsOf(jobs) }, state: 'superseded' as const }
    const theirs = { $or: [heldAmong(jobs), superseded] }
    if (jobs.some(({ isOfForm }) => isOfForm))
      await collection.updateMany({ ...theirs, of_form: true }, OVER)
    if (jobs.some(({ isOfForm }) => !isOfForm))
      await collection.deleteMany({ ...theirs, of_form: { $ne: true } })
    return jobs
  })

  const requested = together(async (asked: { accountId: string; kind: MailKind }[]) => {
    const accounts = new Set(asked.map(({ accountId }) => accountId))
    const found = await collection.find({ account_id: { $in: [...accounts] } }).toArray()
    return asked.map(({ accountId, kind }) =>
      found.filter((job) => job.account_id === accountId && job.kind === kind),
    )
  })

  return { added, resolved, released, removed, requested, isHeld: together(areHeld) }
}

export function held({ id, leaseId }: MailJob) {
  return { _id: text(id), lease_id: text(leaseId) }
}

/** The form, sent again, finds the id taken. */
const OVER = [
  { $replaceWith: { _id: '$_id', state: 'over', purge_at: { $add: ['$$NOW', WEEK_MS] } } },
]

/** Those that are held by whoever took them: not one that was taken again since, be it with others of these. */
function heldAmong(jobs: MailJob[]): Filter<JobDocument> {
  const leases = new Map<string, string[]>()
  for (const { id, leaseId } of jobs)
    leases.set(text(leaseId), [...(leases.get(leaseId) ?? []), text(id)])
  return { $or: [...leases].map(([lease_id, ids]) => ({ _id: { $in: ids }, lease_id })) }
}

const idsOf = (jobs: MailJob[]) => jobs.map(({ id }) => text(id))

/** One update for all: each finds its own values by its lease and id. */
function toResolved(found: Resolved[]) {
  const names = found.map(({ job: { id, leaseId } }) => `${leaseId} ${id}`)
  const name = { $concat: ['$lease_id', ' ', '$_id'] }
  const place = { $indexOfArray: [{ $literal: names }, name] }
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
