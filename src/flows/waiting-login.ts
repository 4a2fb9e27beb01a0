/** A login that waits for its address to be verified (3.2). It goes on once, with the original request of the client. */
import { passwordDigest } from '../crypto/password.ts'
import { hashToken, idOf, newId } from '../crypto/token.ts'
import type { Requester, User } from '../contract/index.ts'
import { parametersOf } from '../contract/parameters.ts'
import { isEnded, type SessionCutoffs } from '../store/cutoffs.ts'
import { isInTime, isVoid, type CapturedRequest, type PendingLogin } from '../store/logins.ts'
import { isUnchanged } from './account.ts'
import {
  awaitedOf,
  endOfWait,
  mayReplaceEmail,
  waitForOther,
  type AwaitedAddress,
  type OpenLogin,
} from './other-address.ts'
import type { FlowParts } from './parts.ts'
import { requestMail } from './request-mail.ts'

/** The most waiting logins of one account; the newest stay. Otherwise a stranger who knows the password could keep the owner out. */
const MAX_LOGINS = 10

/** Longer than any request that fits into an address. */
const MAX_CAPTURED_BYTES = 32_768

/**
 * Keeps a login that has to wait, and asks for a link. It comes back void if the user reported it ("This wasn't me"), it had too many wrong
 * codes, or the account is verified by now. `undefined`: the request is too long to be kept, and nothing was done.
 */
async function block(
  parts: FlowParts,
  user: User,
  captured: CapturedRequest,
  requester: Requester,
  browser: string,
): Promise<PendingLogin | undefined> {
  const { users, store, clock } = parts
  if (Buffer.byteLength(JSON.stringify(captured)) > MAX_CAPTURED_BYTES) return undefined
  const { id: accountId, email, passwordHash } = user
  const checked = { accountId, email, passwordDigest: passwordDigest(passwordHash) }
  // The same request from the same browser is the same login: its earlier link still finishes it, even if this request gets no mail. After
  // an end of the account, the same request is another login, and the earlier login stays ended.
  const { params, deviceCode } = captured
  const asked = [browser, checked, params, deviceCode, captured.login.accountFlowsSeen]
  const id = idOf(asked)
  const login = {
    ...checked,
    id,
    captured,
    browserHash: hashToken(browser),
    waitId: newId(),
    createdAt: clock.now(),
    continuedAt: undefined,
    purgeAt: endOfWait(parts),
  }
  const isKept = await store.pendingLogins.save(login, MAX_LOGINS)
  // If another login verified since the host read the account, it has ended this one.
  const isVerified = (await users.findById(accountId))?.emailVerified
  if (isVerified) await store.pendingLogins.change({ id }, { isVoid: true })
  if (!isKept || isVerified) return { ...login, passwordDigest: '' }
  const whose = { accountId, pendingLoginId: id, parameters: parametersOf(captured) }
  await requestMail(parts, 'email_verification', { ...whose, requester })
  return login
}

export interface ClosedLogin {
  status: 'continued' | 'ended'
  /** `undefined`: it is no login of this browser. */
  captured: CapturedRequest | undefined
}

export function createWaitingLogins(parts: FlowParts) {
  const { users, store, sessions, settings, clock } = parts
  const { pendingLogins } = store

  const mustVerify = (user: User) => settings().requireEmailVerification && !user.emailVerified

  async function findOwn(id: string, browser: string | undefined) {
    if (browser === undefined) return undefined
    const pending = await pendingLogins.find({ id })
    if (pending?.browserHash !== hashToken(browser)) return undefined
    return isInTime(pending, clock) ? pending : undefined
  }

  // Each turn has an id, so that no request gives back the turn of another request.
  async function inTurn(id: string, goOn: () => Promise<boolean>) {
    const turn = newId()
    try {
      if (!(await pendingLogins.setTurn(id, turn, clock.now()))) return 'continued'
      return (await goOn()) ? undefined : 'ended'
    } catch (error) {
      // If that fails too, the turn stays taken, and a new login is needed.
      await pendingLogins.setTurn(id, turn, undefined).catch(() => {})
      throw error
    }
  }

  return {
    /** Whether the login has to wait (4.8). */
    mustVerify,

    block: block.bind(undefined, parts),

    /** Finds a login by account, address, password and cut-offs as they are now. It does not take the turn. */
    async find(id: string, browser: string | undefined): Promise<OpenLogin | ClosedLogin> {
      const login = await findOwn(id, browser)
      if (!login) return { status: 'ended', captured: undefined }
      const { captured, accountId } = login
      if (login.continuedAt) return { status: isVoid(login) ? 'ended' : 'continued', captured }
      const [user, cutoffs] = await Promise.all([
        users.findById(accountId),
        sessions.readCutoffs(accountId),
      ])
      if (!user || !isLoginOf(login, user, cutoffs)) return { status: 'ended', captured }
      const awaited = await awaitedOf(parts, user)
      if (mustVerify(user)) return { status: 'waiting', user, login, awaited }
      // Looks again: another login ends this one before that login verifies, perhaps after the first look.
      const latest = await findOwn(id, browser)
      if (!latest || isVoid(latest)) return { status: 'ended', captured }
      return { status: 'verified', user, login, awaited }
    },

    /** What the page shows of the address of the user, and whether it takes another one. */
    addressOf: (user: User, awaited: AwaitedAddress | undefined) => ({
      sentTo: awaited?.email ?? user.email ?? undefined,
      mayReplaceEmail: mayReplaceEmail(parts, user),
    }),

    awaitedOf: (user: User) => awaitedOf(parts, user),

    waitForOther: waitForOther.bind(undefined, parts),

    /** Whether the user cancelled the login on its page. Also `true` if the login is gone. */
    async wasCancelled(id: string): Promise<boolean> {
      const pending = await pendingLogins.find({ id })
      return !pending || (isVoid(pending) && pending.continuedAt !== undefined)
    },

    /**
     * Runs `goOn` in the one turn of the login. If that fails, the turn is given back. `continued`: the turn was taken before. `ended`: the
     * answer of `goOn` was `false`.
     */
    inTurn,

    /** The same, and then ends the login. Its link still verifies the address, but does not sign the user in. */
    leave: (id: string, goOn: () => Promise<boolean>) =>
      inTurn(id, async () => {
        const isDone = await goOn()
        await pendingLogins.change({ id }, { isVoid: true })
        return isDone
      }),
  }
}

/** Whether the account is unchanged since the password was checked, and no cut-off ended the login. */
export function isLoginOf(pending: PendingLogin, user: User, cutoffs: SessionCutoffs | undefined) {
  const { accountId, ts: second, accountFlowsSeen: seen } = pending.captured.login
  return (
    pending.accountId === user.id &&
    accountId === user.id &&
    isUnchanged(pending, user) &&
    !isEnded('idp', { second, seen }, cutoffs)
  )
}
