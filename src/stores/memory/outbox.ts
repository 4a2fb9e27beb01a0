import type { Clock } from '../../clock.ts'
import type { MailJob, MailOutbox, MailStage } from '../../ports/index.ts'
import { isLater, orderOf } from '../../ports/request-order.ts'
import type { Forgetful } from '../state/forget-account.ts'
import { memoryOutboxAdministration } from './outbox-administration.ts'
import { type JobEntry, NEVER } from './outbox-entry.ts'
import { purge } from './purge.ts'
import { purgeTime } from '../state/purge-time.ts'

/** `mail_outbox` in memory. */
export function memoryOutbox(clock: Clock): MailOutbox & Forgetful {
  const entries = new Map<string, JobEntry>()

  function ofSameKind({ accountId, kind }: Pick<MailJob, 'accountId' | 'kind'>) {
    return [...entries.values()].filter(
      ({ job }) => job.accountId === accountId && job.kind === kind,
    )
  }

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

    async claim(stage, leaseId, at, leaseUntil) {
      const [entry] = [...entries.values()]
        .filter((each) => isFor(each, stage, at) && each.availableAt <= at)
        .toSorted((one, other) => one.availableAt.getTime() - other.availableAt.getTime())
      if (!entry) return undefined
      entry.leaseId = leaseId
      entry.availableAt = leaseUntil
      if (stage === 'send') entry.job.attempts += 1
      return {
        ...structuredClone(entry.job),
        isSuperseded: entry.state === 'superseded',
        isResolved: entry.isResolved,
        leaseId,
      }
    },

    resolve: (job, accountId) =>
      changed(job, (entry) => {
        entry.job.accountId = accountId
        entry.job.identifier = undefined
        entry.isResolved = true
      }),

    async supersedeEarlier(job, at) {
      for (const entry of ofSameKind(job)) {
        if (entry.state !== 'requested' && entry.state !== 'resolved') continue
        if (!isLater(orderOf(job), orderOf(entry.job))) continue
        entry.state = 'superseded'
        entry.leaseId = undefined
        entry.availableAt = at
      }
    },

    async isOvertaken(job) {
      return ofSameKind(job).some(
        (entry) => entry.isResolved && isLater(orderOf(entry.job), orderOf(job)),
      )
    },

    async isUnderWay(job, at) {
      return ofSameKind(job).some(
        ({ job: other, state, isResolved }) =>
          other.id !== job.id &&
          isResolved &&
          (job.pendingLoginId === undefined || other.pendingLoginId !== undefined) &&
          (state === 'requested' || state === 'resolved') &&
          other.expiresAt > at,
      )
    },

    ready: (job, at) =>
      changed(job, (entry) => {
        entry.state = 'resolved'
        entry.leaseId = undefined
        entry.availableAt = at
      }),

    renew: (job, leaseUntil) =>
      changed(job, (entry) => {
        entry.availableAt = leaseUntil
      }),

    async remove(job) {
      const entry = entries.get(job.id)
      const mayRemove = entry?.leaseId === job.leaseId || entry?.state === 'superseded'
      return mayRemove && entries.delete(job.id)
    },

    retry: (job, at, reason) =>
      changed(job, (entry) => {
        entry.leaseId = undefined
        entry.availableAt = at
        entry.reason = reason
      }),

    postpone: (job, at) =>
      changed(job, (entry) => {
        entry.leaseId = undefined
        entry.availableAt = at
        entry.job.attempts -= 1
      }),

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
      return undefined
    },

    ...memoryOutboxAdministration(entries, clock),
  }
}

function isFor({ state, job }: JobEntry, stage: MailStage, at: Date): boolean {
  if (stage === 'resolve') return state === 'requested' || state === 'superseded'
  return state === 'resolved' && (stage === 'send') === job.expiresAt > at
}
