import type { Clock } from '../../clock.ts'
import type { MailJobStatus, OutboxAdministration } from '../../ports/index.ts'
import { forgetIn, type Forgetful } from '../state/forget-account.ts'
import { type JobEntry, NEVER } from './outbox-entry.ts'

/** What an admin asks of `mail_outbox` in memory. */
export function memoryOutboxAdministration(
  entries: Map<string, JobEntry>,
  { now }: Clock,
): OutboxAdministration & Forgetful {
  return {
    async list({ id, state, accountId, requestedBefore, requestedFrom, limit }, at) {
      return [...entries.values()]
        .toReversed()
        .toSorted((one, other) => other.job.requestedAt.getTime() - one.job.requestedAt.getTime())
        .map((entry) => toStatus(entry, at))
        .filter((status) => id === undefined || status.id === id)
        .filter((status) => state === undefined || status.state === state)
        .filter((status) => accountId === undefined || status.accountId === accountId)
        .filter(({ requestedAt }) => !requestedBefore || (requestedAt ?? NEVER) < requestedBefore)
        .filter(({ requestedAt }) => !requestedFrom || (requestedAt ?? 0) >= requestedFrom)
        .slice(0, limit)
    },

    async revive(id, at, expiresAt) {
      const entry = entries.get(id)
      if (!entry) return 'not_found'
      if (entry.state === 'dead') {
        if (entry.job.accountId === undefined) return 'no_account'
        const job = { ...entry.job, requestedAt: now(), expiresAt, isResolved: false }
        const open = { state: 'requested', availableAt: at, reason: undefined, purgeAt: NEVER }
        Object.assign(entry, { job, ...open })
        return 'revived'
      }
      if (entry.leaseId !== undefined || entry.availableAt <= at) return 'held'
      entry.availableAt = at
      return 'revived'
    },

    async discard(which, at) {
      const found = [...entries].filter(([id, entry]) =>
        which === 'dead' ? entry.state === 'dead' : id === which.id && !isHeld(entry, at),
      )
      for (const [id] of found) entries.delete(id)
      return found.length
    },

    forget: async (accountId, at) =>
      forgetIn(
        entries,
        ({ job }) => job.accountId === accountId,
        (entry) => isHeld(entry, at),
      ),
  }
}

function isHeld({ leaseId, availableAt }: JobEntry, at: Date): boolean {
  return leaseId !== undefined && availableAt > at
}

function toStatus(entry: JobEntry, at: Date): MailJobStatus {
  const { id, kind, accountId, requestedAt, expiresAt, attempts } = entry.job
  const isDead = entry.state === 'dead'
  return structuredClone({
    id,
    kind,
    state: isDead ? 'dead' : 'waiting',
    accountId,
    requestedAt,
    nextAttemptAt: isDead ? undefined : entry.availableAt,
    expiresAt,
    attempts,
    reason: entry.reason,
    isHeld: isHeld(entry, at),
  })
}
