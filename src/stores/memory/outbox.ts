import { randomUUID } from 'node:crypto'
import type { Clock } from '../../clock.ts'
import type { MailJob, MailOutbox, MailStage } from '../../ports/index.ts'
import type { Forgetful } from '../state/forget-account.ts'
import { memoryOutboxAdministration } from './outbox-administration.ts'
import { type JobEntry, NEVER } from './outbox-entry.ts'
import { purge } from './purge.ts'
import { purgeTime } from '../state/purge-time.ts'

/** `mail_outbox` in memory. */
export function memoryOutbox(clock: Clock): MailOutbox & Forgetful {
  const entries = new Map<string, JobEntry>()

  async function changed(job: MailJob, change: (entry: JobEntry) => void) {
    const entry = entries.get(job.id)
    if (entry?.leaseId !== job.leaseId) return false
    change(entry)
    return true
  }

  return {
    async add(job) {
      if (entries.has(job.id)) return
      entries.set(job.id, {
        job: { ...structuredClone(job), requestedAt: clock.now(), attempts: 0 },
        state: 'requested',
        isResolved: false,
        leaseId: undefined,
        availableAt: job.notBefore,
        reason: undefined,
        purgeAt: NEVER,
      })
    },

    async claim(stage, most, at, heldUntil) {
      const leaseId = randomUUID()
      const due = [...entries.values()]
        .filter((each) => isFor(each, stage, at) && each.availableAt <= at)
        .toSorted((one, other) => one.availableAt.getTime() - other.availableAt.getTime())
      return due.slice(0, most).map((entry): MailJob => {
        entry.leaseId = leaseId
        entry.availableAt = heldUntil
        if (stage === 'send') entry.job.attempts += 1
        const isSuperseded = entry.state === 'superseded'
        const { isResolved } = entry
        return Object.assign(structuredClone(entry.job), {
          isSuperseded,
          isResolved,
          leaseId,
          heldUntil,
        })
      })
    },

    resolve: (job, accountId, _at, heldUntil) =>
      changed(job, (entry) => {
        entry.job.accountId = accountId
        entry.job.identifier = undefined
        entry.job.attempts += 1
        entry.state = 'resolved'
        entry.isResolved = true
        entry.availableAt = heldUntil
      }),

    async requestsOf(accountId, kind) {
      return [...entries.values()]
        .filter(({ job }) => job.accountId === accountId && job.kind === kind)
        .map(({ job, state, isResolved }) => ({
          id: job.id,
          requestedAt: job.requestedAt,
          expiresAt: job.expiresAt,
          isResolved,
          isWaiting: state === 'requested' || state === 'resolved',
          isOfLogin: job.pendingLoginId !== undefined,
        }))
    },

    async supersede(ids, at) {
      for (const id of ids) {
        const entry = entries.get(id)
        if (entry?.state !== 'requested' && entry?.state !== 'resolved') continue
        entry.state = 'superseded'
        entry.leaseId = undefined
        entry.availableAt = at
      }
    },

    isHeld: async (job) => entries.get(job.id)?.leaseId === job.leaseId,

    async release(job, at, reason) {
      await changed(job, (entry) => {
        entry.leaseId = undefined
        entry.availableAt = at
        if (reason === undefined) entry.job.attempts -= 1
        else entry.reason = reason
      })
    },

    async remove(job) {
      const entry = entries.get(job.id)
      if (entry?.leaseId === job.leaseId || entry?.state === 'superseded') entries.delete(job.id)
    },

    async giveUp(job, at, reason) {
      purge(entries, at)
      return changed(job, (entry) => {
        entry.state = 'dead'
        entry.reason = reason
        entry.leaseId = undefined
        entry.job.identifier = undefined
        entry.availableAt = NEVER
        entry.purgeAt = purgeTime(at)
      })
    },

    async giveUpUnreadable() {
      return []
    },

    ...memoryOutboxAdministration(entries, clock),
  }
}

function isFor({ state, job }: JobEntry, stage: MailStage, at: Date): boolean {
  if (stage === 'resolve') return state === 'requested' || state === 'superseded'
  return state === 'resolved' && (stage === 'send') === job.expiresAt > at
}
