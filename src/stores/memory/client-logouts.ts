import { newId } from '../../crypto/token.ts'
import type { ClientLogout, ClientLogoutStore } from '../../ports/index.ts'

interface Entry {
  logout: ClientLogout
  dueAt: Date
  leaseId?: string
}

/** `client_logouts` in memory. */
export function memoryClientLogouts(): ClientLogoutStore {
  const entries = new Map<string, Entry>()
  return {
    async add(logouts) {
      for (const logout of logouts) {
        if (entries.has(logout.id)) continue
        const state = logout.canBeTold ? 'waiting' : 'untold'
        entries.set(logout.id, {
          logout: { ...structuredClone(logout), state, attempts: 0, reason: undefined },
          dueAt: logout.requestedAt,
        })
      }
    },

    async claim(most, at, heldUntil, except) {
      const due = [...entries.values()]
        .filter(({ logout, dueAt }) => logout.state === 'waiting' && dueAt <= at)
        .filter(({ logout }) => !except.includes(logout.clientId))
        .slice(0, most)
      return due.map((entry) => {
        const leaseId = newId()
        entry.leaseId = leaseId
        entry.dueAt = heldUntil
        entry.logout.attempts += 1
        return Object.assign(structuredClone(entry.logout), { leaseId })
      })
    },

    async settle({ id, leaseId }, outcome) {
      const entry = entries.get(id)
      if (entry?.leaseId !== leaseId) return
      entry.logout.reason = outcome.reason
      if ('retryAt' in outcome) entry.dueAt = outcome.retryAt
      else entry.logout.state = outcome.state
    },

    async find({ accountId, endId }) {
      return [...entries.values()]
        .map(({ logout }) => structuredClone(logout))
        .filter((logout) => logout.accountId === accountId)
        .filter((logout) => endId === undefined || logout.endId === endId)
        .toReversed()
        .slice(0, 100)
    },
  }
}
