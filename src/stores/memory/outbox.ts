import { randomUUID } from 'node:crypto'
import type { Clock } from '../../clock.ts'
import type { MailJob, MailOutbox, MailStage } from '../../ports/index.ts'
import type { Forgetful } from '../state/forget-account.ts'
import { memoryOutboxAdministration } from './outbox-administration.ts'
import {
  isWaiting,
  type JobEntry,
  leased,
  newEntry,
  toDeadLetter,
  toReleased,
  toRequest,
  toResolved,
} from './outbox-entry.ts'
import { weekAfter } from '../../ports/week.ts'
import { keepNewest, purge } from './purge.ts'

export function memoryOutbox(clock: Clock): MailOutbox & Forgetful {
  const entries = new Map<string, JobEntry>()
  const taken = new Map<string, { purgeAt: Date }>()

  async function changed(job: MailJob, change: (entry: JobEntry) => void) {
    const entry = entries.get(job.id)
    if (entry?.leaseId !== job.leaseId) return false
    change(entry)
    return true
  }

  return {
    async add(job) {
      const now = clock.now()
      purge(taken, now)
      if (!entries.has(job.id) && !taken.has(job.id)) entries.set(job.id, newEntry(job, now))
    },

    async claim(stage, most, at, heldUntil) {
      const leaseId = randomUUID()
      const due = [...entries.values()]
        .filter((each) => isFor(each, stage, at) && each.availableAt <= at)
        .toSorted((one, other) => one.availableAt.getTime() - other.availableAt.getTime())
      return due.slice(0, most).map((entry) => {
        if (stage === 'send') entry.job.attempts += 1
        return leased(entry, leaseId, heldUntil)
      })
    },

    resolve: (job, accountId, _at, heldUntil) =>
      changed(job, (entry) => toResolved(entry, accountId, heldUntil)),

    async requestsOf(accountId, kind) {
      return [...entries.values()]
        .filter(({ job }) => job.accountId === accountId && job.kind === kind)
        .map(toRequest)
    },

    async supersede(ids, at) {
      for (const id of ids) {
        const entry = entries.get(id)
        if (!entry || !isWaiting(entry)) continue
        entry.state = 'superseded'
        entry.leaseId = undefined
        entry.availableAt = at
      }
    },

    isHeld: async (job) => entries.get(job.id)?.leaseId === job.leaseId,

    release: async (job, at, reason) =>
      void (await changed(job, (entry) => toReleased(entry, at, reason))),

    async remove(job) {
      const entry = entries.get(job.id)
      const isTheirs = entry?.leaseId === job.leaseId || entry?.state === 'superseded'
      if (isTheirs) entries.delete(job.id)
      if (isTheirs && job.isOfForm) keepNewest(taken, job.id, { purgeAt: weekAfter(clock.now()) })
    },

    async giveUp(job, at, reason) {
      purge(entries, at)
      return changed(job, (entry) => toDeadLetter(entry, at, reason))
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
