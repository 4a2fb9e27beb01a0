/**
 * The window that logged in and waits for its address to be verified. It goes on by itself, once, with the very request
 * that the client made; whoever opens the link in another browser has no part in that.
 *
 * @module
 */
import { hashToken, isToken } from '../crypto/token.ts'
import type {
  CapturedRequest,
  PendingLoginStore,
  SessionCutoffs,
  User,
  UserStore,
} from '../ports/index.ts'
import type { Settings } from '../settings/table.ts'
import { inLoginTurn } from './login-turn.ts'
import { isLoginOf, waitsUntil } from './pending-login.ts'

/** `ended`: it is over, or never was this browser's; nobody is told which. */
export type WaitingStatus = 'waiting' | 'verified' | 'continued' | 'ended'

/** The window that asks: what its page names, and the cookie of its browser. */
export interface WaitingWindow {
  pendingLoginId: string
  browser: string | undefined
}

/** A login that may go on, because nothing keeps it from that any more, or that still waits. */
export interface WaitingLogin {
  status: 'waiting' | 'verified'
  user: User
  captured: CapturedRequest
}

/** A login that goes on no more. */
export interface FinishedLogin {
  status: 'continued' | 'ended'
  /** `undefined`: it was never this browser's. */
  captured: CapturedRequest | undefined
}

export interface WaitingLogins {
  /** One read, and one more while it waits. */
  status(window: WaitingWindow): Promise<WaitingStatus>
  /** Judges account, address, password and cut-offs as they are now. Takes nothing. */
  find(window: WaitingWindow): Promise<WaitingLogin | FinishedLogin>
  /** Goes on, in the one turn, which a failure gives back. `false`: it was taken before, and nothing was done. */
  inTurn(window: WaitingWindow, goOn: () => Promise<void>): Promise<boolean>
}

export interface WaitingLoginPorts {
  users: Pick<UserStore, 'findById'>
  pendingLogins: PendingLoginStore
  readCutoffs(accountId: string): Promise<SessionCutoffs | undefined>
  settings(): Pick<Settings, 'requireEmailVerification'>
  now(): Date
}

export function createWaitingLogins(ports: WaitingLoginPorts): WaitingLogins {
  const { users, pendingLogins, readCutoffs, settings, now } = ports

  async function findOwn({ pendingLoginId, browser }: WaitingWindow) {
    if (browser === undefined || !isToken(browser)) return undefined
    const pending = await pendingLogins.find(pendingLoginId)
    const isOwn = pending?.browserHash === hashToken(browser) && waitsUntil(pending) > now()
    return isOwn ? pending : undefined
  }

  return {
    async status(window) {
      const pending = await findOwn(window)
      if (!pending) return 'ended'
      if (pending.continuedAt) return 'continued'
      // Support or an import verifies an account too, and tells no window.
      const isVerified =
        pending.verifiedAt ?? (await users.findById(pending.accountId))?.emailVerified
      return isVerified ? 'verified' : 'waiting'
    },

    async find(window) {
      const pending = await findOwn(window)
      if (!pending) return { status: 'ended', captured: undefined }
      const { captured } = pending
      if (pending.continuedAt) return { status: 'continued', captured }
      const user = await users.findById(pending.accountId)
      const cutoffs = await readCutoffs(pending.accountId)
      if (!user || !isLoginOf(pending, user, cutoffs)) return { status: 'ended', captured }
      const mayGoOn = user.emailVerified || !settings().requireEmailVerification
      return { status: mayGoOn ? 'verified' : 'waiting', user, captured }
    },

    inTurn: ({ pendingLoginId }, goOn) => inLoginTurn(pendingLogins, pendingLoginId, now(), goOn),
  }
}
