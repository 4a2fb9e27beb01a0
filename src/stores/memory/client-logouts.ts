import { randomUUID } from 'node:crypto'
import type { ClientLogout, ClientLogoutJob, ClientLogoutStore } from '../../ports/index.ts'
import { weekAfter } from '../../ports/week.ts'
import { MOST_FOUND, newLogout } from '../state/client-logouts.ts'
import { forgetIn, type Forgetful } from '../state/forget-account.ts'
import { keepNewest, purge } from './purge.ts'

interface Entry {
  logout: ClientLogout
  /** `undefined`: nobody holds it. */
  leaseId: string | undefined
  /** Nobody may claim it before: the end of the lease, or of the pause before another attempt. */
  availableAt: Date
  purgeAt: Date
}

export function memoryClientLogouts(): ClientLogoutStore & Forgetful {
  const entries = new Map<string, Entry>()

  return {
    async add(logouts) {
      for (const each of logouts) {
        purge(entries, each.requestedAt)
        const { purgeAt, ...logout } = newLogout(structuredClone(each))
        const entry = { logout, leaseId: undefined, availableAt: each.requestedAt, purgeAt }
        if (!entries.has(each.id)) keepNewest(entries, each.id, entry)
      }
    },

    async claim(most, at, heldUntil, except) {
      const leaseId = randomUUID()
      const seen = new Set(except)
      const due = [...entries.values()]
        .filter(({ logout, availableAt }) => logout.state === 'waiting' && availableAt <= at)
        .toSorted((one, other) => one.availableAt.getTime() - other.availableAt.getTime())
        .filter(({ logout: { clientId } }) => !seen.has(clientId) && seen.add(clientId))
      return due.slice(0, most).map((entry): ClientLogoutJob => {
        entry.logout.attempts += 1
        Object.assign(entry, { leaseId, availableAt: heldUntil })
        return Object.assign(structuredClone(entry.logout), { leaseId })
      })
    },

    async settle({ id, leaseId }, outcome) {
      const entry = entries.get(id)
      if (entry?.leaseId !== leaseId) return
      entry.leaseId = undefined
      if (outcome.reason !== undefined) entry.logout.reason = outcome.reason
      if ('retryAt' in outcome) entry.availableAt = outcome.retryAt
      else if (entry.logout.isForgotten) entries.delete(id)
      else {
        entry.logout.state = outcome.state
        entry.purgeAt = weekAfter(outcome.at)
      }
    },

    async find({ accountId, endId }) {
      return [...entries.values()]
        .map(({ logout }) => logout)
        .filter((each) => each.accountId === accountId && (endId ?? each.endId) === each.endId)
        .toReversed()
        .sort((one, other) => other.requestedAt.getTime() - one.requestedAt.getTime())
        .slice(0, MOST_FOUND)
        .map((each) => structuredClone(each))
    },

    async forget(accountId) {
      const isIts = ({ logout }: Entry) => logout.accountId === accountId
      for (const { logout } of [...entries.values()].filter(isIts)) logout.isForgotten = true
      return forgetIn(entries, isIts, ({ logout }) => logout.state === 'waiting')
    },
  }
}
