/** Clients that are told of an ended account. */
import type {
  ClientLogout,
  ClientLogoutJob,
  ClientLogoutStore,
  NewClientLogout,
} from '../ports/index.ts'
import { newId } from '../crypto/token.ts'
import { weekAfter } from '../ports/week.ts'
import { kindOf } from './kind.ts'
import type { Records } from './records.ts'
import { firstWanted } from './scan.ts'
import { tableOf } from './table.ts'

interface LogoutRecord extends Omit<ClientLogout, 'state'> {
  state: string
  /** `undefined`: nobody holds it. */
  leaseId: string | undefined
  /** Nobody may claim it before: the end of the lease, or of the pause before another attempt. */
  availableAt: Date
  purgeAt: Date
}

export const CLIENT_LOGOUTS = kindOf<LogoutRecord>({
  name: 'client_logouts',
  fields: {
    endId: 'text',
    accountId: 'text',
    clientId: 'text',
    sid: 'text?',
    canBeTold: 'boolean',
    requestedAt: 'time',
    expiresAt: 'time',
    state: 'text',
    attempts: 'number',
    reason: 'text?',
    isForgotten: 'boolean',
    leaseId: 'text?',
    availableAt: 'time',
    purgeAt: 'time',
  },
  indexes: [
    ['state', 'availableAt'],
    ['accountId', 'requestedAt'],
  ],
  purgedAt: 'purgeAt',
})

/** So many are told of one account at most. */
const MOST_FOUND = 100

export function clientLogouts(records: Records): ClientLogoutStore {
  const logouts = tableOf(records, CLIENT_LOGOUTS)
  return {
    async add(added) {
      await Promise.all(added.map((logout) => logouts.insert(newRecord(logout))))
    },

    async claim(most, at, heldUntil, except) {
      const seen = new Set(except)
      const below = new Date(at.getTime() + 1)
      const waiting = { equal: { state: 'waiting' }, by: 'availableAt', below } as const
      const due = await firstWanted(logouts, waiting, most, ({ clientId }) => {
        if (seen.has(clientId)) return false
        seen.add(clientId)
        return true
      })
      const claims = due.map((logout) =>
        logouts.change(logout, (record): { next: typeof record; answer: ClientLogoutJob[] } => {
          if (record?.state !== 'waiting' || record.availableAt > at)
            return { next: record, answer: [] }
          const leaseId = newId()
          const attempts = record.attempts + 1
          const next = { ...record, attempts, leaseId, availableAt: heldUntil }
          return { next, answer: [{ ...logoutOf(next), leaseId }] }
        }),
      )
      return (await Promise.all(claims)).flat()
    },

    async settle({ id, leaseId }, outcome) {
      await logouts.change(id, (record) => {
        if (record?.leaseId !== leaseId) return { next: record, answer: undefined }
        const { reason = record.reason } = outcome
        const free = { ...record, reason, leaseId: undefined }
        if ('retryAt' in outcome)
          return { next: { ...free, availableAt: outcome.retryAt }, answer: undefined }
        const { state, at } = outcome
        const over = { ...free, state, purgeAt: weekAfter(at) }
        return { next: record.isForgotten ? undefined : over, answer: undefined }
      })
    },

    async find({ accountId, endId }) {
      const newest = { equal: { accountId }, by: 'requestedAt', isDescending: true } as const
      const isOfEnd = (record: LogoutRecord) => endId === undefined || record.endId === endId
      return (await firstWanted(logouts, newest, MOST_FOUND, isOfEnd)).map(logoutOf)
    },
  }
}

function newRecord(logout: NewClientLogout): LogoutRecord {
  const { canBeTold, requestedAt, expiresAt } = logout
  return {
    ...logout,
    state: canBeTold ? 'waiting' : 'untold',
    attempts: 0,
    reason: undefined,
    isForgotten: false,
    leaseId: undefined,
    availableAt: requestedAt,
    // Also of one that nobody takes up.
    purgeAt: weekAfter(canBeTold ? expiresAt : requestedAt),
  }
}

function logoutOf(record: LogoutRecord): ClientLogout {
  const { leaseId: _lease, availableAt: _available, purgeAt: _purge, state, ...logout } = record
  const known = (['sent', 'dead', 'untold'] as const).find((one) => one === state)
  return { ...logout, state: known ?? 'waiting' }
}
