/** Clients that are told of an ended account (OpenID Connect Back-Channel Logout 1.0): who is to be told, and who was. */
import { holds, kindOf, weekAfter, type RecordOf } from './kind.ts'
import { firstWanted, queueOf, tableOf } from './table.ts'
import type { Records } from './records.ts'

const STATES = ['waiting', 'sent', 'dead', 'not_notified'] as const

/** How far it is. `dead`: nobody will try again. `not_notified`: it cannot be told. */
export type ClientLogoutState = (typeof STATES)[number]

export const CLIENT_LOGOUTS = kindOf({
  name: 'client_logouts',
  fields: {
    /** The `SessionEnd` that it is of. */
    endId: 'text',
    accountId: 'text',
    clientId: 'text',
    /** The session at the client. `undefined`: all sessions of the account there. */
    sid: 'text?',
    /** `false`: the client has no `backchannel_logout_uri`. Nobody tries; it is kept for the person to be told. */
    canBeTold: 'boolean',
    requestedAt: 'time',
    /** After this time nobody tries any more. */
    expiresAt: 'time',
    state: holds<ClientLogoutState>('text'),
    /** How often it was taken to be sent. */
    attempts: 'number',
    /** Why the last attempt failed. */
    reason: 'text?',
    /** Its account was forgotten since: it goes once it is over, and no event tells of it. */
    isForgotten: 'boolean',
    /** Names the claim; a write with the id of an earlier claim changes nothing. `undefined`: nobody holds it. */
    leaseId: 'text?',
    /** Nobody may claim it before: the end of the lease, or of the pause before another attempt. */
    availableAt: 'time',
    purgeAt: 'time',
  },
  indexes: [
    ['state', 'availableAt'],
    ['accountId', 'requestedAt'],
  ],
  purgedAt: 'purgeAt',
  isWhole: ({ state }) => STATES.includes(state),
})

/** One that was asked for, and how far it is. */
export type ClientLogout = RecordOf<typeof CLIENT_LOGOUTS>

/** A client that an ended session or grant was of. Its id is made of the end, the client and its session: asked for again, it is the same one. */
export type NewClientLogout = Pick<
  ClientLogout,
  'id' | 'endId' | 'accountId' | 'clientId' | 'sid' | 'canBeTold' | 'requestedAt' | 'expiresAt'
>

/** One that a worker has claimed. */
export type ClientLogoutJob = ClientLogout & { leaseId: string }

/** What became of an attempt. Without a `reason`, the one before stays. */
type ClientLogoutOutcome =
  { state: 'sent' | 'dead'; at: Date; reason?: string } | { retryAt: Date; reason?: string }

/**
 * Tells a client, and answers `undefined` once it has ended its sessions. Otherwise why it did not, such as `http_500`, `timeout`
 * or `client_gone`. Once the signal aborts, it answers soon.
 */
export type TellClient = (
  logout: ClientLogout,
  signal: AbortSignal,
) => Promise<LogoutFailure | undefined>

/** Why a client was not told. */
export interface LogoutFailure {
  reason: string
  /** It will not help to try again. */
  isFinal: boolean
}

/** At most so many are answered for an account. */
const MAX_FOUND = 100

export type ClientLogoutStore = ReturnType<typeof clientLogouts>

/** Each stays for a week after it is over. */
export function clientLogouts(records: Records) {
  const logouts = tableOf(records, CLIENT_LOGOUTS)
  const queue = queueOf(logouts)
  return {
    /** One write. What is there already stays as it is. */
    async add(added: readonly NewClientLogout[]): Promise<void> {
      await Promise.all(added.map((logout) => logouts.insert(newRecord(logout))))
    },

    /**
     * Claims at most this many due logouts, the longest due first, and one of each client: a client with many leaves room for the
     * others. Clients in `except` are left out. Logouts past `expiresAt` are included.
     */
    async claim(most: number, at: Date, heldUntil: Date, except: readonly string[]) {
      const seen = new Set(except)
      const below = new Date(at.getTime() + 1)
      const equal = { state: 'waiting' }
      const waiting = { equal, by: 'availableAt', below, limit: most } as const
      const due = await firstWanted(logouts, waiting, ({ clientId }) => {
        if (seen.has(clientId)) return false
        seen.add(clientId)
        return true
      })
      const isDue = ({ state, availableAt }: ClientLogout) =>
        state === 'waiting' && availableAt <= at
      return queue.claim(due, isDue, (logout) => ({
        ...logout,
        attempts: logout.attempts + 1,
        availableAt: heldUntil,
      }))
    },

    /** Ends a claimed logout, or gives it back until `retryAt`. Nothing changes once the lease is lost. */
    async settle(job: ClientLogoutJob, outcome: ClientLogoutOutcome): Promise<void> {
      await queue.settle(job, (logout) => {
        const { reason = logout.reason } = outcome
        const free = { ...logout, reason, leaseId: undefined }
        if ('retryAt' in outcome) return { ...free, availableAt: outcome.retryAt }
        const { state, at } = outcome
        return logout.isForgotten ? undefined : { ...free, state, purgeAt: weekAfter(at) }
      })
    },

    /** Of one account, or of one of its ends; newest first, at most 100. */
    find({ accountId, endId }: { accountId: string; endId?: string }): Promise<ClientLogout[]> {
      const newest = { by: 'requestedAt', isDescending: true, limit: MAX_FOUND } as const
      const isOfEnd = (logout: ClientLogout) => endId === undefined || logout.endId === endId
      return firstWanted(logouts, { ...newest, equal: { accountId } }, isOfEnd)
    },
  }
}

function newRecord(logout: NewClientLogout): ClientLogout {
  const { canBeTold, requestedAt, expiresAt } = logout
  return {
    ...logout,
    state: canBeTold ? 'waiting' : 'not_notified',
    attempts: 0,
    isForgotten: false,
    availableAt: requestedAt,
    // Also of one that nobody takes up.
    purgeAt: weekAfter(canBeTold ? expiresAt : requestedAt),
  }
}
