import { isMailKind } from '../contract/mail-kinds.ts'
import type { Changed } from './changes.ts'
import { defined } from './kind.ts'
import { isHeldAt, type JobRecord, type MailJobStatus, statusOf } from './outbox-record.ts'
import { firstWanted, pagesOf, type QueryOf, type Table } from './table.ts'

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
export function outboxAdministration(jobs: Table<JobRecord>, now: () => Promise<Date>) {
  /** Removes those of these that are to go still. Answers how many. */
  const discardIf = (ids: string[], isToGo: (job: JobRecord) => boolean) =>
    jobs.updateAll(ids, (job) => (isToGo(job) ? undefined : job))

  return {
    /** Newest request first. A damaged record is not told: it becomes a dead letter. */
    async list(query: MailJobQuery, at: Date): Promise<MailJobStatus[]> {
      const { id, state, accountId, requestedBefore: below, requestedFrom: from, limit } = query
      const isAsked = (job: JobRecord) =>
        job.state !== 'over' &&
        (state === undefined || (state === 'dead') === (job.state === 'dead')) &&
        (accountId === undefined || job.accountId === accountId) &&
        (!below || job.requestedAt < below) &&
        (!from || job.requestedAt >= from)
      let equal: QueryOf<JobRecord>['equal'] = state === 'dead' ? { state } : {}
      if (accountId !== undefined) equal = { accountId }
      const newest = { id, equal, by: 'requestedAt', isDescending: true, limit } as const
      const found = await firstWanted(jobs, { ...newest, ...defined({ below, from }) }, isAsked)
      return found.map((job) => statusOf(job, at))
    },

    /**
     * A dead letter becomes a request that its account made now, on database time. A waiting job becomes due `at` once. Atomic:
     * of concurrent callers one gets `revived` for a dead letter. `no_account`: a dead letter whose account is unknown. `held`: a
     * worker has it, or takes it next because it is due already. `not_found`: also for a record that no worker could read. Except
     * for `revived`, nothing changed.
     */
    async revive(id: string, at: Date, expiresAt: Date) {
      const request = { requestedAt: await now(), expiresAt }
      return jobs.change(id, (job) => revived(job, at, request))
    },

    /** Removes a dead letter or a job that waits, unless a worker holds it; or all dead letters. Answers how many. */
    async discard(which: { id: string } | 'dead', at: Date): Promise<number> {
      if (which !== 'dead')
        return discardIf([which.id], (job) => job.state !== 'over' && !isHeldAt(job, at))
      const letters = { equal: { state: 'dead' }, by: 'requestedAt', limit: MOST } as const
      let count = 0
      for await (const page of pagesOf(jobs, letters)) {
        const ids = page.map(({ id }) => id)
        count += await discardIf(ids, ({ state }) => state === 'dead')
      }
      return count
    },
  }
}

function revived(
  job: JobRecord | undefined,
  at: Date,
  request: Pick<JobRecord, 'requestedAt' | 'expiresAt'>,
): Changed<JobRecord, 'revived' | 'no_account' | 'held' | 'not_found'> {
  if (!job || job.state === 'over' || !isMailKind(job.kind))
    return { next: job, answer: 'not_found' }
  const { state, accountId, leaseId, availableAt } = job
  const due = { ...job, availableAt: at }
  if (state !== 'dead') {
    const isHeld = leaseId !== undefined || !availableAt || availableAt <= at
    return isHeld ? { next: job, answer: 'held' } : { next: due, answer: 'revived' }
  }
  if (accountId === undefined) return { next: job, answer: 'no_account' }
  const anew = { isResolved: false, reason: undefined, purgeAt: undefined } as const
  return { next: { ...due, ...request, ...anew, state: 'requested' }, answer: 'revived' }
}
