/** The requests for mails (3.1, 3.2); no job holds a token or a link. A worker that lost its lease changes nothing, and gets `false`. */
import type { Clock } from '../clock.ts'
import { isLinkKind, isMailKind, type MailKind } from '../contract/mail-kinds.ts'
import { dead, emptied, isHeldAt, isWaiting, statusOf } from './outbox-record.ts'
import type { JobRecord, MailJob, MailJobStatus, NewMailJob } from './outbox-record.ts'
import { queueOf } from './leases.ts'
import { firstWanted, pagesOf, type Table } from './table.ts'
import { defined } from './kind.ts'

/**
 * Why a worker takes a job. `resolve`: to look up its account, or to end it if it is superseded. `send`: to send it, once it is resolved
 * and within its life. `due`: for either. `expire`: to end it, if no worker sent it within its life.
 */
export type MailStage = 'resolve' | 'send' | 'due' | 'expire'

const STATES: Record<MailStage, readonly JobRecord['state'][]> = {
  resolve: ['requested', 'superseded'],
  send: ['resolved'],
  due: ['requested', 'superseded', 'resolved'],
  expire: ['resolved'],
}

/** How many are read at a time. Other limits keep an account below it. */
const MAX = 1_000

/** @param now - the time of the database. */
export function mailOutbox(jobs: Table<JobRecord>, clock: Clock, now: () => Promise<Date>) {
  return {
    ...outboxAdministration(jobs, now),
    ...workOn(jobs, clock),

    /** Adds a job with one write, which is the same for every account. If the id exists, even of a job that is over, nothing changes. */
    async add(job: NewMailJob): Promise<void> {
      const due = { availableAt: job.notBefore, requestedAt: job.notBefore }
      await jobs.insert({ ...job, ...due, state: 'requested', isResolved: false, attempts: 0 })
    },

    /** The account's requests of one kind that still have a record, dead letters included: the newest first. */
    async requestsOf(accountId: string, kind: MailKind): Promise<JobRecord[]> {
      const newest = { equal: { accountId }, by: 'requestedAt', isDescending: true } as const
      return (await jobs.find({ ...newest, limit: MAX })).filter((job) => job.kind === kind)
    },

    /** Marks the waiting jobs among these as superseded, held or not. A worker takes each once more, and removes it. */
    async supersede(ids: readonly string[], at: Date): Promise<void> {
      await jobs.updateAll(ids, (job) =>
        isWaiting(job) ? { ...job, state: 'superseded', leaseId: undefined, availableAt: at } : job,
      )
    },
  }
}

function workOn(jobs: Table<JobRecord>, { now }: Pick<Clock, 'now'>) {
  const { claim, settle } = queueOf(jobs)
  let seen = ''

  return {
    /** Takes at most this many jobs that no worker holds, the longest due first. `sentUntil`: the lease of jobs that are to be sent. */
    async claim(stage: MailStage, most: number, at: Date, until: Date, sentUntil = until) {
      return claim(await dueFor(jobs, stage, most, at), (job) => {
        if (!isFor(job, stage, at)) return undefined
        const isToSend = isFor(job, 'send', at)
        const attempts = job.attempts + (isToSend ? 1 : 0)
        return { ...job, attempts, availableAt: isToSend ? sentUntil : until }
      })
    },

    /** Stores the account, and erases the typed identifier. The job counts as taken to be sent. */
    resolve: (held: MailJob, accountId: string, leaseUntil: Date): Promise<boolean> =>
      settle(held, (job) => ({
        ...job,
        attempts: job.attempts + 1,
        accountId,
        identifier: undefined,
        isResolved: true,
        state: 'resolved',
        availableAt: leaseUntil,
      })),

    isHeld: async ({ id, leaseId }: MailJob): Promise<boolean> =>
      (await jobs.getReadable(id))?.leaseId === leaseId,

    /** Gives the job back: it is due again at this time. Without a `reason`, no worker tried to send it, and the attempt is not counted. */
    async release(held: MailJob, at: Date, reason?: string): Promise<void> {
      const uncounted = reason === undefined ? 1 : 0
      await settle(held, (job) => ({
        ...job,
        leaseId: undefined,
        availableAt: at,
        reason: reason ?? job.reason,
        attempts: job.attempts - uncounted,
      }))
    },

    /** Removes a job, and keeps the id of a form. A worker whose job was superseded while it sent the mail has no lease, but may do it. */
    async remove({ id, leaseId }: MailJob): Promise<void> {
      await jobs.update(id, (job) => {
        if (job.leaseId !== leaseId && job.state !== 'superseded') return job
        return job.keepsId ? emptied(id, now()) : undefined
      })
    },

    /** Makes a dead letter, which no worker tries again. It stays for a week. */
    giveUp: (held: MailJob, at: Date, reason: string): Promise<boolean> =>
      settle(held, (job) => dead(job, at, reason)),

    /** Makes a dead letter of each unreadable record, and returns their ids. */
    async giveUpUnreadable(at: Date): Promise<string[]> {
      // Each call reads the next page, and starts again after the last one.
      const found = await jobs.findAll({ after: { id: seen }, limit: MAX })
      seen = found[MAX - 1]?.id ?? ''
      const damaged = found.filter(({ record }) => !record)
      const ended = damaged.map(({ id }) => {
        const letter = dead(emptied(id, at), at, 'unreadable')
        return jobs.change(id, (job) => ({ next: job ?? letter, answer: job ? [] : [id] }))
      })
      return (await Promise.all(ended)).flat()
    },
  }
}

function isFor(job: JobRecord, stage: MailStage, at: Date): boolean {
  const { state, expiresAt, availableAt, kind } = job
  if (!availableAt || availableAt > at || !isMailKind(kind)) return false
  if (!STATES[stage].includes(state)) return false
  return state !== 'resolved' || (stage === 'expire') === expiresAt <= at
}

/** The longest due jobs first; of jobs due at the same time, the one that was requested first. */
async function dueFor(jobs: Table<JobRecord>, stage: MailStage, most: number, at: Date) {
  const query = {
    equal: { state: STATES[stage] },
    by: stage === 'expire' ? 'expiresAt' : 'availableAt',
    below: new Date(at.getTime() + 1),
    limit: Math.max(most, 200),
  } as const
  const due = await firstWanted(jobs, query, (job) => isFor(job, stage, at))
  const sorted = due.toSorted(
    (one, other) =>
      Number(one.availableAt) - Number(other.availableAt) ||
      Number(one.requestedAt) - Number(other.requestedAt),
  )
  return sorted.slice(0, most)
}

export interface MailJobQuery {
  /** Selects the one job with this id, requested at any time. */
  id?: string | undefined
  state?: MailJobStatus['state'] | undefined
  accountId?: string | undefined
  requestedBefore?: Date | undefined
  requestedFrom?: Date | undefined
  limit: number
}

/** `held`: a worker holds the job, or takes it next because it is due already. Only `revived` changes anything. */
type Revival = 'revived' | 'no_account' | 'held' | 'not_found'

function outboxAdministration(jobs: Table<JobRecord>, now: () => Promise<Date>) {
  return {
    /** Lists the newest request first. It leaves out damaged records, which become dead letters. */
    async list(query: MailJobQuery, at: Date): Promise<MailJobStatus[]> {
      const { id, state, accountId, requestedBefore: below, requestedFrom: from, limit } = query
      const isAsked = (job: JobRecord) =>
        job.state !== 'over' && (state !== 'waiting' || job.state !== 'dead')
      const equal = defined({ accountId, state: state === 'dead' ? state : undefined })
      const newest = { id, equal, by: 'requestedAt', isDescending: true, limit } as const
      const found = await firstWanted(jobs, { ...newest, ...defined({ below, from }) }, isAsked)
      return found.map((job) => statusOf(job, at))
    },

    /** A dead letter becomes a request that its account made now, on database time; a notice keeps its time. A waiting job becomes due `at` once. */
    async revive(id: string, at: Date, expiresAt: Date) {
      const requestedAt = await now()
      return jobs.change<Revival>(id, (job) => {
        if (!job || job.state === 'over' || !isMailKind(job.kind))
          return { next: job, answer: 'not_found' }
        const { state, accountId, leaseId, availableAt } = job
        const due = { ...job, availableAt: at }
        if (state !== 'dead') {
          const isHeld = leaseId !== undefined || !availableAt || availableAt <= at
          return isHeld ? { next: job, answer: 'held' } : { next: due, answer: 'revived' }
        }
        if (accountId === undefined) return { next: job, answer: 'no_account' }
        const request = { expiresAt, isResolved: false, state: 'requested' } as const
        const asked = isLinkKind(job.kind) && { requestedAt }
        const next = { ...due, ...request, ...asked, reason: undefined, purgeAt: undefined }
        return { next, answer: 'revived' }
      })
    },

    /** Removes a dead letter or a waiting job, unless a worker holds it; or removes all dead letters. Returns how many. */
    async discard(which: { id: string } | 'dead', at: Date): Promise<number> {
      if (which !== 'dead')
        return jobs.updateAll([which.id], (job) =>
          job.state === 'over' || isHeldAt(job, at) ? job : undefined,
        )
      const letters = { equal: { state: 'dead' }, by: 'requestedAt', limit: MAX } as const
      let count = 0
      for await (const page of pagesOf(jobs, letters))
        count += await jobs.updateAll(page, (job) => (job.state === 'dead' ? undefined : job))
      return count
    },
  }
}
