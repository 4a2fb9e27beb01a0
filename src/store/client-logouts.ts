/** Back-channel logouts: which clients are to be notified of an ended account, and which have been. */
import { defined, holds, kindOf, weekAfter, type RecordOf } from './kind.ts'
import { queueOf } from './leases.ts'
import { firstWanted, type Table } from './table.ts'

const STATES = ['waiting', 'sent', 'dead', 'not_notified'] as const

/** `dead`: no worker tries again. `not_notified`: the client has no `backchannel_logout_uri`; pages and mails name it all the same. */
export type ClientLogoutState = (typeof STATES)[number]

export const CLIENT_LOGOUTS = kindOf({
  name: 'client_logouts',
  fields: {
    /** The id of the `SessionEnd` that caused this logout. */
    endId: 'text',
    accountId: 'text',
    clientId: 'text',
    /** The session at the client. `undefined`: all sessions of the account there. */
    sid: 'text?',
    requestedAt: 'time',
    /** No worker tries after this time. */
    expiresAt: 'time',
    state: holds<ClientLogoutState>('text'),
    attempts: 'number',
    /** Why the last attempt failed. */
    reason: 'text?',
    /** The record of a forgotten account goes once the logout is over, and no audit event mentions it. */
    isForgotten: 'boolean',
    leaseId: 'text?',
    /** The end of the lease, or of the pause before another attempt. */
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

export type ClientLogout = RecordOf<typeof CLIENT_LOGOUTS>

/** `false`: the user has to sign out of the client. */
export const isNotified = ({ state }: ClientLogout) => state === 'waiting' || state === 'sent'

/** A client of an ended session or grant. Its id is made of the end, the client and its session, so a repeated request gets the same id. */
export type NewClientLogout = Pick<
  ClientLogout,
  'id' | 'endId' | 'accountId' | 'clientId' | 'sid' | 'requestedAt' | 'expiresAt'
> & { state: 'waiting' | 'not_notified' }

export type ClientLogoutJob = ClientLogout & { leaseId: string }

/** The result of an attempt. Without a `reason`, the previous one stays. */
type Outcome = ({ state: 'sent' | 'dead'; at: Date } | { retryAt: Date }) & { reason?: string }

/** Notifies a client. Returns `undefined` once the client has answered 200 or 204. Once the signal aborts, it returns soon. */
export type NotifyClient = (
  logout: ClientLogout,
  signal: AbortSignal,
) => Promise<LogoutFailure | undefined>

/** Why a client was not notified. */
export interface LogoutFailure {
  /** Such as `http_500`, `timeout` or `client_gone`. */
  reason: string
  /** Another attempt cannot succeed. */
  isFinal: boolean
}

/** Each record stays for a week after its logout is over. */
export function clientLogouts(logouts: Table<ClientLogout>) {
  const queue = queueOf(logouts)
  return {
    /** Adds all in one write. Existing records stay as they are. */
    async add(added: readonly NewClientLogout[]): Promise<void> {
      const adding = added.map((logout) =>
        logouts.insert({
          ...logout,
          attempts: 0,
          isForgotten: false,
          availableAt: logout.requestedAt,
          // This covers a logout that no worker ever claims, too.
          purgeAt: weekAfter(logout.state === 'waiting' ? logout.expiresAt : logout.requestedAt),
        }),
      )
      await Promise.all(adding)
    },

    /** Claims the longest due logouts, also past `expiresAt`: one of each client, so that others have room; of `except` none. */
    async claim(most: number, at: Date, leaseUntil: Date, except: readonly string[]) {
      const seen = new Set(except)
      const below = new Date(at.getTime() + 1)
      const waiting = {
        equal: { state: 'waiting' },
        by: 'availableAt',
        below,
        limit: most,
      } as const
      const due = await firstWanted(logouts, waiting, ({ clientId }) => {
        if (seen.has(clientId)) return false
        seen.add(clientId)
        return true
      })
      return queue.claim(due, (logout) => {
        const isDue = logout.state === 'waiting' && logout.availableAt <= at
        const attempts = logout.attempts + 1
        return isDue ? { ...logout, attempts, availableAt: leaseUntil } : undefined
      })
    },

    /** Ends a claimed logout, or gives it back until `retryAt`. If the lease is lost, nothing changes. */
    async settle(job: ClientLogoutJob, outcome: Outcome): Promise<void> {
      await queue.settle(job, (logout) => {
        const { reason = logout.reason } = outcome
        const free = { ...logout, reason, leaseId: undefined }
        if ('retryAt' in outcome) return { ...free, availableAt: outcome.retryAt }
        const { state, at } = outcome
        return logout.isForgotten ? undefined : { ...free, state, purgeAt: weekAfter(at) }
      })
    },

    /** Finds the logouts of one account, or of one of its ends: newest first, at most 100. */
    find({ accountId, endId }: { accountId: string; endId?: string | undefined }) {
      const newest = { by: 'requestedAt', isDescending: true, limit: 100 } as const
      return firstWanted(logouts, { ...newest, equal: { accountId, ...defined({ endId }) } })
    },
  }
}
