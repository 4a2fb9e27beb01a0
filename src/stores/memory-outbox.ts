import type { MailJob, MailOutbox, NewMailJob } from '../ports.ts'
import { purge } from './memory-purge.ts'
import { purgeTime } from './purge-time.ts'

interface Entry {
  job: NewMailJob & { requestedAt: Date; attempts: number }
  /** `undefined`: nobody holds it. */
  leaseId: string | undefined
  /** Nobody may claim it before: `notBefore`, then the end of the lease or of the pause before another attempt. */
  availableAt: Date
  reason: string | undefined
}

interface DeadEntry {
  job: Omit<Entry['job'], 'identifier'>
  reason: string
  purgeAt: Date
}

/** `mail_outbox` in memory. */
export function memoryOutbox(): MailOutbox {
  const waiting = new Map<string, Entry>()
  const dead = new Map<string, DeadEntry>()

  function held(job: MailJob) {
    const entry = waiting.get(job.id)
    return entry?.leaseId === job.leaseId ? entry : undefined
  }

  return {
    async add(job) {
      if (waiting.has(job.id)) return
      waiting.set(job.id, {
        job: { ...structuredClone(job), requestedAt: new Date(), attempts: 0 },
        leaseId: undefined,
        availableAt: job.notBefore,
        reason: undefined,
      })
    },

    async claim(leaseId, at, leaseUntil) {
      // A map keeps the order of insertion: the first one is the oldest.
      const entry = [...waiting.values()].find(({ availableAt }) => availableAt <= at)
      if (!entry) return undefined
      entry.leaseId = leaseId
      entry.availableAt = leaseUntil
      entry.job.attempts += 1
      return { ...structuredClone(entry.job), leaseId }
    },

    async resolve(job, accountId) {
      const entry = held(job)
      if (!entry) return false
      entry.job.accountId = accountId
      entry.job.identifier = undefined
      return true
    },

    async remove(job) {
      if (held(job)) waiting.delete(job.id)
    },

    async retry(job, at, reason) {
      const entry = held(job)
      if (!entry) return
      entry.leaseId = undefined
      entry.availableAt = at
      entry.reason = reason
    },

    async giveUp(job, at, reason) {
      const entry = held(job)
      if (!entry) return
      waiting.delete(job.id)
      purge(dead, at)
      const { identifier: _, ...rest } = entry.job
      dead.set(job.id, { job: rest, reason, purgeAt: purgeTime(at) })
    },
  }
}
