/**
 * The requests for mails (3.1, 3.2). A job never holds a token or a link. A write for a job changes nothing if its lease was lost or it
 * is superseded; a boolean answer is then `false`.
 */
import type { Clock } from '../clock.ts'
import { newId } from '../crypto/token.ts'
import type { MailKind } from '../ports/mail-kinds.ts'
import { outboxAdministration } from './outbox-administration.ts'
import {
  dead,
  isFor,
  isHeldBy,
  leased,
  type MailStage,
  over,
  released,
  resolved,
  superseded,
  unreadable,
} from './outbox-changes.ts'
import {
  type JobRecord,
  jobOf,
  MAIL_OUTBOX,
  type MailJob,
  newRecord,
  type NewMailJob,
  type RequestOfAccount,
  requestOf,
} from './outbox-record.ts'
import type { Records } from './records.ts'
import { firstWanted, type Table, tableOf } from './table.ts'

type Jobs = Table<JobRecord>

/** So many are read; other limits keep an account below it. */
const MOST = 1_000

export type MailOutbox = ReturnType<typeof mailOutbox>

/** @param now - of the database. */
export function mailOutbox(
  records: Records,
  { clock, now }: { clock: Clock; now(): Promise<Date> },
) {
  const jobs = tableOf(records, MAIL_OUTBOX)

  let seen: string | undefined

  /** Answers whether the job was held by that caller. */
  const changeHeld = (job: MailJob, change: (record: JobRecord) => JobRecord): Promise<boolean> =>
    jobs.update(job.id, (record) => (isHeldBy(record, job) ? change(record) : record))

  return {
    ...outboxAdministration(jobs, now),

    /** One write, the same for everybody. It changes nothing if the id exists or is still taken. */
    add: async (job: NewMailJob): Promise<void> => void (await jobs.insert(newRecord(job))),

    /** Takes at most this many jobs that nobody holds, the longest due first. Each is given to one caller. */
    claim: (stage: MailStage, most: number, at: Date, heldUntil: Date): Promise<MailJob[]> =>
      claim(jobs, { stage, most, at, heldUntil }),

    /**
     * Keeps the account, and erases the typed identifier. The job counts as resolved from here on, also as a dead letter; and as taken
     * to be sent, by the same caller.
     */
    resolve: (job: MailJob, accountId: string, heldUntil: Date) =>
      changeHeld(job, (record) => resolved(record, accountId, heldUntil)),

    /** What an account asked for, of one kind, as far as it was not removed. */
    async requestsOf(accountId: string, kind: MailKind): Promise<RequestOfAccount[]> {
      const newest = { equal: { accountId }, by: 'requestedAt', isDescending: true } as const
      const found = (await jobs.find({ ...newest, limit: MOST })).toReversed()
      return found.filter((job) => job.kind === kind && job.state !== 'over').map(requestOf)
    },

    /** Ends what waits of these, whoever holds it: a worker takes it once more, and removes it. */
    supersede: async (ids: readonly string[], at: Date) =>
      void (await jobs.updateAll(ids, (record) => superseded(record, at))),

    async isHeld(job: MailJob): Promise<boolean> {
      const record = await jobs.getReadable(job.id)
      return record !== undefined && isHeldBy(record, job)
    },

    /** Gives the job back, to be claimed again from `at` on. Without a reason nobody tried to send it, and that counts as no attempt. */
    release: async (job: MailJob, at: Date, reason?: string): Promise<void> =>
      void (await changeHeld(job, (record) => released(record, at, reason))),

    /** The job is over; nothing of it stays but the id of one of a form. Also whoever held it before may remove a superseded one: it was just sent. */
    async remove(job: MailJob): Promise<void> {
      await jobs.update(job.id, (record) => {
        const isTheirs = isHeldBy(record, job) || record.state === 'superseded'
        return isTheirs ? over(record, clock.now()) : record
      })
    },

    /** Nobody will try again; the record stays for a week as a dead letter, with its reason and without the typed identifier. */
    giveUp: (job: MailJob, at: Date, reason: string) =>
      changeHeld(job, (record) => dead(record, at, reason)),

    /** Makes a dead letter of each record that is no readable job, and answers their ids. */
    async giveUpUnreadable(at: Date): Promise<string[]> {
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
  }
}

interface Claim {
  stage: MailStage
  most: number
  at: Date
  heldUntil: Date
}

async function claim(jobs: Jobs, { stage, most, at, heldUntil }: Claim): Promise<MailJob[]> {
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
  const dueSince = ({ availableAt }: JobRecord) => Number(availableAt)
  return due
    .toSorted(
      (one, other) =>
        dueSince(one) - dueSince(other) || one.requestedAt.getTime() - other.requestedAt.getTime(),
    )
    .slice(0, most)
}
