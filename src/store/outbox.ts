/**
 * The requests for mails (3.1, 3.2). A job never holds a token or a link. A worker that lost its lease, or whose job is superseded,
 * changes nothing; a boolean answer is then `false`. Only `remove` still removes a superseded job.
 */
import type { Clock } from '../clock.ts'
import { isMailKind, type MailKind } from '../contract/mail-kinds.ts'
import { outboxAdministration } from './outbox-administration.ts'
import {
  dead,
  emptied,
  isWaiting,
  type JobRecord,
  MAIL_OUTBOX,
  type MailJob,
  type NewMailJob,
} from './outbox-record.ts'
import { queueOf } from './queue.ts'
import type { Records } from './records.ts'
import { firstWanted, type Table, tableOf } from './table.ts'

/**
 * Why a job is taken. `resolve`: to look its account up, or to end it if it is superseded. `send`: to send it, once it is
 * resolved and within its life. `due`: for either. `expire`: to end it, if nobody sent it within its life.
 */
export type MailStage = 'resolve' | 'send' | 'due' | 'expire'

const STATES = {
  resolve: ['requested', 'superseded'],
  send: ['resolved'],
  due: ['requested', 'superseded', 'resolved'],
  expire: ['resolved'],
} as const satisfies Record<MailStage, readonly JobRecord['state'][]>

/** So many are read; other limits keep an account below it. */
const MOST = 1_000

export type MailOutbox = ReturnType<typeof mailOutbox>

/** @param now - of the database. */
export function mailOutbox(records: Records, clock: Clock, now: () => Promise<Date>) {
  const jobs = tableOf(records, MAIL_OUTBOX)

  return {
    ...outboxAdministration(jobs, now),
    ...workOn(jobs, clock),

    /** Writes once, the same for everybody. If the id exists, even of a job that is over, nothing changes. */
    async add(job: NewMailJob): Promise<void> {
      const due = { availableAt: job.notBefore, requestedAt: job.notBefore }
      await jobs.insert({ ...job, ...due, state: 'requested', isResolved: false, attempts: 0 })
    },

    /** What an account asked for, of one kind, as far as it was not removed; also what ended as a dead letter. */
    async requestsOf(accountId: string, kind: MailKind): Promise<JobRecord[]> {
      const newest = { equal: { accountId }, by: 'requestedAt', isDescending: true } as const
      const found = (await jobs.find({ ...newest, limit: MOST })).toReversed()
      return found.filter((job) => job.kind === kind && job.state !== 'over')
    },

    /** Marks those of the jobs that wait as superseded, held or not. A worker takes each once more, and removes it. */
    async supersede(ids: readonly string[], at: Date): Promise<void> {
      await jobs.updateAll(ids, (job) =>
        isWaiting(job) ? { ...job, state: 'superseded', leaseId: undefined, availableAt: at } : job,
      )
    },
  }
}

/** What a worker does with a job that it has claimed. */
function workOn(jobs: Table<JobRecord>, { now }: Pick<Clock, 'now'>) {
  const { claim, settle } = queueOf(jobs)
  let seen: string | undefined

  return {
    /**
     * Takes at most this many jobs that nobody holds, the longest due first. Each is given to one caller.
     *
     * @param sentUntil - of those that are taken to be sent.
     */
    async claim(stage: MailStage, most: number, at: Date, until: Date, sentUntil = until) {
      const isDue = (job: JobRecord) => isFor(job, stage, at)
      const claimed = await claim(await dueFor(jobs, stage, most, at), isDue, (job) => {
        const isToSend = isFor(job, 'send', at)
        const attempts = job.attempts + (isToSend ? 1 : 0)
        return { ...job, attempts, availableAt: isToSend ? sentUntil : until }
      })
      return claimed.filter(isMailJob)
    },

    /**
     * Stores the account, and erases the typed identifier. From now on the job is resolved, even as a dead letter. It also counts as
     * taken to be sent.
     */
    resolve: (held: MailJob, accountId: string, heldUntil: Date): Promise<boolean> =>
      settle(held, (job) => ({
        ...job,
        attempts: job.attempts + 1,
        accountId,
        identifier: undefined,
        isResolved: true,
        state: 'resolved',
        availableAt: heldUntil,
      })),

    isHeld: async ({ id, leaseId }: MailJob): Promise<boolean> =>
      (await jobs.getReadable(id))?.leaseId === leaseId,

    /** Gives the job back until `at`. Without a reason nobody tried to send it, and no attempt is counted. */
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

    /** Removes the job. Of a job of a form, the id stays. A former holder may remove a superseded job too: it has just sent it. */
    async remove({ id, leaseId }: MailJob): Promise<void> {
      await jobs.update(id, (job) => {
        if (job.leaseId !== leaseId && job.state !== 'superseded') return job
        return job.isOfForm ? emptied(id, now()) : undefined
      })
    },

    /** Nobody will try again; the record stays for a week as a dead letter, with its reason and without the typed identifier. */
    giveUp: (held: MailJob, at: Date, reason: string): Promise<boolean> =>
      settle(held, (job) => dead(job, at, reason)),

    /** Makes a dead letter of each record that is no readable job, and answers their ids. */
    async giveUpUnreadable(at: Date): Promise<string[]> {
      // Each call looks at the next page, and after the last one at the first.
      const page = { ...(seen !== undefined && { after: { id: seen } }), limit: MOST }
      const found = await jobs.findAll(page)
      seen = found.length < MOST ? undefined : found.at(-1)?.id
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
  if (!STATES[stage].some((each) => each === state)) return false
  return state !== 'resolved' || (stage === 'expire') === expiresAt <= at
}

/** The longest due first; of those that are due since the same moment, the one that was asked for first. */
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

const isMailJob = (job: JobRecord & { leaseId: string }): job is MailJob =>
  job.availableAt !== undefined && isMailKind(job.kind)
