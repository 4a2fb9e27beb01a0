import type { Clock } from '../clock.ts'
import { newId } from '../crypto/token.ts'
import type { MailJob, MailJobQuery, MailOutbox, MailStage } from '../ports/index.ts'
import {
  dead,
  isFor,
  isHeldAt,
  isHeldBy,
  type JobRecord,
  jobOf,
  leased,
  MAIL_OUTBOX,
  newRecord,
  over,
  released,
  requestOf,
  resolved,
  revived,
  statusOf,
  superseded,
  unreadable,
} from './outbox.ts'
import type { Records } from './records.ts'
import { firstWanted } from './scan.ts'
import { type QueryOf, type Table, tableOf } from './table.ts'

type Jobs = Table<JobRecord>

/** An account has no more requests at a time; so many dead letters are discarded at once. */
const MOST = 1_000

/** @param now - of the database. */
export function mailOutbox(
  records: Records,
  { clock, now }: { clock: Clock; now(): Promise<Date> },
): MailOutbox {
  const jobs = tableOf(records, MAIL_OUTBOX)

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
      const found = await jobs.find({ equal: { accountId }, by: 'requestedAt', limit: MOST })
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
      const ids = await jobs.findDamaged({ by: 'requestedAt', isDescending: true, limit: MOST })
      await Promise.all(ids.map((id) => jobs.overwrite(unreadable(id, at))))
      return ids
    },

    list: async (query, at) => (await asked(jobs, query)).map((record) => statusOf(record, at)),

    async revive(id, at, expiresAt) {
      const requestedAt = await now()
      return jobs.change(id, (record) => {
        const next = record ? revived(record, requestedAt, at, expiresAt) : 'not_found'
        return typeof next === 'string'
          ? { next: record, answer: next }
          : { next, answer: 'revived' as const }
      })
    },

    async discard(which, at) {
      const discardOne = (id: string) =>
        jobs.change(id, (record) => {
          const isDead = record?.state === 'dead'
          const isFree = record && record.state !== 'over' && !isHeldAt(record, at)
          const isGone = which === 'dead' ? isDead : isFree
          return { next: isGone ? undefined : record, answer: isGone ? 1 : 0 }
        })
      if (which !== 'dead') return discardOne(which.id)
      const letters = await jobs.find({ equal: { state: 'dead' }, limit: MOST })
      const gone = await Promise.all(letters.map(({ id }) => discardOne(id)))
      const count = gone.reduce((sum, one) => sum + one, 0)
      return letters.length < MOST ? count : count + (await this.discard(which, at))
    },
  }
}

async function claim(
  jobs: Jobs,
  ...[stage, most, at, heldUntil]: Parameters<MailOutbox['claim']>
): Promise<MailJob[]> {
  const due = await dueFor(jobs, stage, most, at)
  const leaseId = newId()
  const claims = due.map(({ id }) =>
    jobs.change(id, (record) => {
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

async function asked(jobs: Jobs, query: MailJobQuery): Promise<JobRecord[]> {
  const { id, state, accountId, requestedBefore, requestedFrom, limit } = query
  const isAsked = (job: JobRecord) =>
    job.state !== 'over' &&
    (state === undefined || (state === 'dead') === (job.state === 'dead')) &&
    (accountId === undefined || job.accountId === accountId) &&
    (!requestedBefore || job.requestedAt < requestedBefore) &&
    (!requestedFrom || job.requestedAt >= requestedFrom)
  if (id !== undefined) {
    const job = await jobs.getReadable(id)
    return job && isAsked(job) ? [job] : []
  }
  const equal: NonNullable<QueryOf<JobRecord>['equal']> =
    accountId !== undefined ? { accountId } : state === 'dead' ? { state } : {}
  const newest = {
    equal,
    by: 'requestedAt',
    isDescending: true,
    ...(requestedBefore && { below: requestedBefore }),
    ...(requestedFrom && { from: requestedFrom }),
  } as const
  return firstWanted(jobs, newest, limit, isAsked)
}
