import { defined } from './kind.ts'
import { revived } from './outbox-changes.ts'
import { isHeldAt, type JobRecord, type MailJobStatus, statusOf } from './outbox-record.ts'
import { firstWanted, type QueryOf, type Table } from './table.ts'

type Jobs = Table<JobRecord>

/** So many dead letters are discarded at once. */
const MOST = 1_000

/** Which records of the outbox an admin asks for. */
export interface MailJobQuery {
  /** That one alone. */
  id?: string | undefined
  state?: MailJobStatus['state'] | undefined
  accountId?: string | undefined
  /** Only what was requested before this time. */
  requestedBefore?: Date | undefined
  /** Only what was requested at this time or later. */
  requestedFrom?: Date | undefined
  limit: number
}

/** What the outbox tells an admin, and lets an admin do. @param now - of the database. */
export function outboxAdministration(jobs: Jobs, now: () => Promise<Date>) {
  const discardIf = (id: string, isToGo: (job: JobRecord) => boolean): Promise<boolean> =>
    jobs.update(id, (job) => (isToGo(job) ? undefined : job))

  return {
    /** Newest request first. A damaged record is not told: it becomes a dead letter. */
    list: async (query: MailJobQuery, at: Date): Promise<MailJobStatus[]> =>
      (await asked(jobs, query)).map((record) => statusOf(record, at)),

    /**
     * A dead letter becomes a request that its account made now, on database time. A waiting job becomes due `at` once. Atomic:
     * of concurrent callers one gets `revived` for a dead letter. `no_account`: a dead letter whose account is unknown. `held`: a
     * worker has it, or takes it next because it is due already. `not_found`: also for a record that no worker could read. Except
     * for `revived`, nothing changed.
     */
    async revive(id: string, at: Date, expiresAt: Date) {
      const requestedAt = await now()
      return jobs.change(id, (record) => {
        const next = record ? revived(record, requestedAt, at, expiresAt) : 'not_found'
        return typeof next === 'string'
          ? { next: record, answer: next }
          : { next, answer: 'revived' as const }
      })
    },

    /** Removes a dead letter or a job that waits, unless a worker holds it; or all dead letters. Answers how many. */
    async discard(which: { id: string } | 'dead', at: Date): Promise<number> {
      if (which !== 'dead') {
        const isFree = (job: JobRecord) => job.state !== 'over' && !isHeldAt(job, at)
        return (await discardIf(which.id, isFree)) ? 1 : 0
      }
      for (let count = 0; ;) {
        const letters = await jobs.find({
          equal: { state: 'dead' },
          by: 'requestedAt',
          limit: MOST,
        })
        const discards = letters.map(({ id }) => discardIf(id, ({ state }) => state === 'dead'))
        count += (await Promise.all(discards)).filter(Boolean).length
        if (letters.length < MOST) return count
      }
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
    ...defined({ below: requestedBefore, from: requestedFrom }),
  } as const
  return firstWanted(jobs, newest, limit, isAsked)
}
