import type { Clock } from '../clock.ts'
import { newId } from '../crypto/token.ts'
import type { MailJob, MailOutbox, MailStage } from '../ports/index.ts'
import { outboxAdministration } from './outbox-administration.ts'
import {
  dead,
  isFor,
  isHeldBy,
  leased,
  over,
  released,
  resolved,
  superseded,
  unreadable,
} from './outbox-changes.ts'
import { type JobRecord, jobOf, MAIL_OUTBOX, newRecord, requestOf } from './outbox-record.ts'
import type { Records } from './records.ts'
import { firstWanted } from './scan.ts'
import { type Table, tableOf } from './table.ts'

type Jobs = Table<JobRecord>

/** So many are read; other limits keep an account below it. */
const MOST = 1_000

/** @param now - of the database. */
export function mailOutbox(
  records: Records,
  { clock, now }: { clock: Clock; now(): Promise<Date> },
): MailOutbox {
  const jobs = tableOf(records, MAIL_OUTBOX)

  let seen: string | undefined

  /** Answers whether the job was held by that caller. */
  const changeHeld = (job: MailJob, change: (record: JobRecord) => JobRecord) =>
    jobs.change(job.id, (record) => {
      const isTheirs = record !== undefined && isHeldBy(record, job)
      return { next: isTheirs ? change(record) : record, answer: isTheirs }
    })

  return {
    add: async (job) => void (await jobs.insert(newRecord(job))),
    claim: (...call) => claim(jobs, ...call),

    resolve: (job, accountId, _at, heldUntil) =>
      changeHeld(job, (record) => resolved(record, accountId, heldUntil)),

    async requestsOf(accountId, kind) {
      const newest = { equal: { accountId }, by: 'requestedAt', isDescending: true } as const
      const found = (await jobs.find({ ...newest, limit: MOST })).toReversed()
      return found.filter((job) => job.kind === kind && job.state !== 'over').map(requestOf)
    },

    async supersede(ids, at) {
      const change = (record: JobRecord | undefined) => record && superseded(record, at)
      await Promise.all(
        ids.map((id) => jobs.change(id, (record) => ({ next: change(record), answer: undefined }))),
      )
    },

    async isHeld(job) {
      const record = await jobs.getReadable(job.id)
      return record !== undefined && isHeldBy(record, job)
    },

    release: async (job, at, reason) =>
      void (await changeHeld(job, (record) => released(record, at, reason))),

    async remove(job) {
      await jobs.change(job.id, (record) => {
        const isTheirs = record && (isHeldBy(record, job) || record.state === 'superseded')
        return { next: isTheirs ? over(record, clock.now()) : record, answer: undefined }
      })
    },

    giveUp: (job, at, reason) => changeHeld(job, (record) => dead(record, at, reason)),

    async giveUpUnreadable(at) {
      // A page a turn, and round again.
      const page = { ...(seen !== undefined && { after: { id: seen } }), limit: MOST }
      const found = await jobs.findAll(page)
      seen = found.length < MOST ? undefined : found.at(-1)?.id
      const damaged = found.filter(({ record }) => !record)
      const ended = damaged.map(({ id }) =>
        jobs.change(id, (job) => ({ next: job ?? unreadable(id, at), answer: job ? [] : [id] })),
      )
      return (await Promise.all(ended)).flat()
    },

    ...outboxAdministration(jobs, now),
  }
}

async function claim(
  jobs: Jobs,
  ...[stage, most, at, heldUntil]: Parameters<MailOutbox['claim']>
): Promise<MailJob[]> {
  const due = await dueFor(jobs, stage, most, at)
  const leaseId = newId()
  const claims = due.map((job) =>
    jobs.change(job, (record) => {
      if (!record || !isFor(record, stage, at)) return { next: record, answer: undefined }
      const next = leased(record, stage, leaseId, heldUntil)
      return { next, answer: jobOf(next) }
    }),
  )
  const claimed = (await Promise.all(claims)).filter((job) => job !== undefined)
  return claimed.toSorted((one, other) => one.requestedAt.getTime() - other.requestedAt.getTime())
}

/** The longest due first; of those that are due since the same moment, the one that was asked for first. */
async function dueFor(jobs: Jobs, stage: MailStage, most: number, at: Date) {
  const below = new Date(at.getTime() + 1)
  const state = stage === 'resolve' ? ['requested', 'superseded'] : 'resolved'
  const by = stage === 'expire' ? 'expiresAt' : 'availableAt'
  const query = { equal: { state }, by, below } as const
  const due = await firstWanted(jobs, query, Math.max(most, 200), (job) => isFor(job, stage, at))
  const since = ({ availableAt, requestedAt }: JobRecord) => [
    Number(availableAt),
    requestedAt.getTime(),
  ]
  return due
    .toSorted((one, other) => {
      const [[a = 0, b = 0], [c = 0, d = 0]] = [since(one), since(other)]
      return a - c || b - d
    })
    .slice(0, most)
}
