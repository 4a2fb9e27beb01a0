/** Clients that are told of an ended account (OpenID Connect Back-Channel Logout 1.0): who is to be told, and who was. */

/** A client that an ended session or grant was of. */
export interface NewClientLogout {
  /** Made of the end, the client and its session: asked for again, it is the same one. */
  id: string
  /** The `SessionEnd` that it is of. */
  endId: string
  accountId: string
  clientId: string
  /** The session at the client. `undefined`: all sessions of the account there. */
  sid: string | undefined
  /** `false`: the client has no `backchannel_logout_uri`. Nobody tries; it is kept for the person to be told. */
  canBeTold: boolean
  requestedAt: Date
  /** After this time nobody tries any more. */
  expiresAt: Date
}

/** How far it is. `dead`: nobody will try again. `untold`: it cannot be told. */
export type ClientLogoutState = 'waiting' | 'sent' | 'dead' | 'untold'

/** One that was asked for, and how far it is. */
export interface ClientLogout extends NewClientLogout {
  state: ClientLogoutState
  /** How often it was taken to be sent. */
  attempts: number
  /** Why the last attempt failed. */
  reason: string | undefined
  /** Its account was forgotten since: it goes once it is over, and no event tells of it. */
  isForgotten: boolean
}

/** One that a worker has claimed. */
export interface ClientLogoutJob extends ClientLogout {
  /** Names the claim; a write with the id of an earlier claim changes nothing. */
  leaseId: string
}

/** What became of an attempt. Without a `reason`, the one before stays. */
export type ClientLogoutOutcome =
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

/** Keeps them in `client_logouts`; each stays for a week after it is over. */
export interface ClientLogoutStore {
  /** One write. What is there already stays as it is. */
  add(logouts: readonly NewClientLogout[]): Promise<void>
  /**
   * Takes at most this many that wait, are due and nobody holds, the longest due first. It takes one of each client, and none of
   * those in `except`. So a client with many leaves room for the others. Those past `expiresAt` are among them.
   */
  claim(
    most: number,
    at: Date,
    heldUntil: Date,
    except: readonly string[],
  ): Promise<ClientLogoutJob[]>
  /** Ends a claimed one, or gives it back to be claimed again from `retryAt` on. It changes nothing once the lease is lost. */
  settle(job: ClientLogoutJob, outcome: ClientLogoutOutcome): Promise<void>
  /** Of one account, or of one of its ends; newest first, at most 100. */
  find(which: { accountId: string; endId?: string }): Promise<ClientLogout[]>
}
