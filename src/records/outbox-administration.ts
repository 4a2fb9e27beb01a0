import type { MailJobQuery, OutboxAdministration } from '../ports/index.ts'
import { revived } from './outbox-changes.ts'
import { isHeldAt, type JobRecord, statusOf } from './outbox-record.ts'
import { firstWanted } from './scan.ts'
import type { QueryOf, Table } from './table.ts'

type Jobs = Table<JobRecord>

/** So many dead letters are discarded at once. */
const MOST = 1_000

/** What an admin asks of the outbox. @param now - of the database. */
export function outboxAdministration(jobs: Jobs, now: () => Promise<Date>): OutboxAdministration {
  return {
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
      const letters = await jobs.find({ equal: { state: 'dead' }, by: 'requestedAt', limit: MOST })
      const gone = await Promise.all(letters.map(({ id }) => discardOne(id)))
      const count = gone.reduce((sum, one) => sum + one, 0)
      return letters.length < MOST ? count : count + (await this.discard(which, at))
    },
  }
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
