/** A login that waits for its address to be verified (3.2). It goes on once, with the original request of the client. */
import { passwordDigest } from '../crypto/password.ts'
import { hashToken, idOf, isToken, newId } from '../crypto/token.ts'
import { isInTime, isVoid, KEEP_LOGIN_MS, type CapturedRequest } from '../store/logins.ts'
import { isEnded, type SessionCutoffs } from '../store/cutoffs.ts'
import type { Requester, User } from '../contract/index.ts'
import { equalsInAsciiCase, withoutBlanks } from '../contract/users.ts'
import { parametersOf } from '../contract/parameters.ts'
import { requestMail } from '../jobs/request-mail.ts'
import type { PendingLogin } from '../store/index.ts'
import { isMailAddress } from '../settings/addresses.ts'
import { isUnchanged } from './account.ts'
import { eventBy } from './audit.ts'
import { awaitedOf, mayReplaceEmail, type WithOther } from './other-address.ts'
import type { FlowParts } from './parts.ts'
import { voidMailed } from './void-links.ts'

/** The most waiting logins of one account; the newest stay. Otherwise a stranger who knows the password could keep the owner out. */
const MAX_LOGINS = 10

const otherOf = ({ otherEmail, addressId, typedAt }: WithOther) => ({
  otherEmail,
  addressId,
  typedAt,
})

/** How often an account gets another address in a day. */
const MAX_REPLACED = 3

const DAY_MS = 24 * 3_600_000

/** Longer than any request that fits into an address. */
const MAX_CAPTURED_BYTES = 32_768

/**
 * Keeps a login that has to wait, and asks for a link. It comes back void if the user reported it ("This wasn't me"), it had too many wrong
 * codes, or the account is verified by now. `undefined`: the request is too long to be kept, and nothing was done.
 */
export async function block(
  parts: FlowParts,
  user: User,
  captured: CapturedRequest,
  requester: Requester,
  browser: string | undefined,
): Promise<PendingLogin | undefined> {
  const { users, store, settings, clock } = parts
  if (Buffer.byteLength(JSON.stringify(captured)) > MAX_CAPTURED_BYTES) return undefined
  const { id: accountId, email, passwordHash } = user
  const checked = { accountId, email, passwordDigest: passwordDigest(passwordHash) }
  // The same request from the same browser is the same login: its earlier link still finishes it, even if this request gets no mail. After
  // an end of the account, the same request is another login, and the earlier login stays ended.
  const { params, deviceCode } = captured
  const asked = [browser, checked, params, deviceCode, captured.login.accountFlowsSeen]
  const id = browser === undefined ? newId() : idOf(asked)
  const createdAt = clock.now()
  const keptMs = settings().emailVerificationExpiration + KEEP_LOGIN_MS
  const awaited = await awaitedOf(parts, user)
  const login = {
    ...checked,
    // The same login keeps its other address.
    ...(awaited?.id === id && otherOf(awaited)),
    id,
    captured,
    browserHash: browser === undefined ? undefined : hashToken(browser),
    createdAt,
    continuedAt: undefined,
    purgeAt: new Date(createdAt.getTime() + keptMs),
  }
  const isKept = await store.pendingLogins.save(login, MAX_LOGINS)
  // If another login verified since the host read the account, it has ended this one.
  const isLate = (await users.findById(accountId))?.emailVerified
  if (isLate) await store.pendingLogins.change({ id }, { isVoid: true })
  if (!isKept || isLate) return { ...login, passwordDigest: '' }
  const whose = { accountId, pendingLoginId: id, parameters: parametersOf(captured) }
  await requestMail(parts, 'email_verification', { ...whose, requester })
  return login
}

export interface WaitingLogin {
  status: 'waiting' | 'verified'
  user: User
  login: PendingLogin
  /** The login whose other address the account waits for. */
  awaited: WithOther | undefined
}

export interface ClosedLogin {
  status: 'continued' | 'ended'
  /** `undefined`: it is no login of this browser. */
  captured: CapturedRequest | undefined
}

export function createWaitingLogins(parts: FlowParts) {
  const { users, store, sessions, settings, clock } = parts
  const { pendingLogins } = store

  async function findOwn(id: string, browser: string | undefined) {
    if (browser === undefined || !isToken(browser)) return undefined
    const pending = await pendingLogins.find({ id })
    if (pending?.browserHash !== hashToken(browser)) return undefined
    return isInTime(pending, clock) ? pending : undefined
  }

  // Each turn has an id, so that no request gives back the turn of another request.
  async function inTurn(id: string, goOn: () => Promise<void>) {
    const turn = newId()
    try {
      if (!(await pendingLogins.setTurn(id, turn, clock.now()))) return false
      await goOn()
      return true
    } catch (error) {
      // If that fails too, the turn stays taken, and a new login is needed.
      await pendingLogins.setTurn(id, turn, undefined).catch(() => {})
      throw error
    }
  }

  return {
    /** Finds a login by account, address, password and cut-offs as they are now. It does not take the turn. */
    async find(id: string, browser: string | undefined): Promise<WaitingLogin | ClosedLogin> {
      const login = await findOwn(id, browser)
      if (!login) return { status: 'ended', captured: undefined }
      const { captured, accountId } = login
      if (login.continuedAt) return { status: isVoid(login) ? 'ended' : 'continued', captured }
      const [user, cutoffs] = await Promise.all([
        users.findById(accountId),
        sessions.readCutoffs(accountId),
      ])
      if (!user || !isLoginOf(login, user, cutoffs)) return { status: 'ended', captured }
      const mayGoOn = user.emailVerified || !settings().requireEmailVerification
      const awaited = await awaitedOf(parts, user)
      if (!mayGoOn) return { status: 'waiting', user, login, awaited }
      // Looks again: another login ends this one before it verifies, perhaps after the first look.
      const now = await findOwn(id, browser)
      if (!now || isVoid(now)) return { status: 'ended', captured }
      return { status: 'verified', user, login, awaited }
    },

    /** What the page shows of the address of the user, and whether it takes another one. */
    addressOf: async (user: User) => ({
      sentTo: (await awaitedOf(parts, user))?.otherEmail ?? user.email,
      mayReplaceEmail: mayReplaceEmail(parts, user),
    }),

    waitForOther: waitForOther.bind(undefined, parts),

    /** Whether the user cancelled the login on its page. Also `true` if the login is gone. */
    async wasCancelled(id: string): Promise<boolean> {
      const pending = await pendingLogins.find({ id })
      return !pending || (isVoid(pending) && pending.continuedAt !== undefined)
    },

    /** Runs `goOn` in the one turn of the login. If that fails, the turn is given back. `false`: the turn was taken before. */
    inTurn,

    /** The same, and then ends the login. Its link still verifies the address, but does not sign the user in. */
    leave: (id: string, goOn: () => Promise<void>) =>
      inTurn(id, async () => {
        await goOn()
        await pendingLogins.change({ id }, { isVoid: true })
      }),
  }
}

/**
 * The account waits for this address from now on, and everything that was mailed before is void. A number: milliseconds until the account
 * may get another address. `over`: the login does not wait any more, or the account may not get another address.
 */
async function waitForOther(
  parts: FlowParts,
  { user, login, awaited }: WaitingLogin,
  typed: string,
  by: Requester,
): Promise<'replaced' | 'invalid' | 'same' | 'over' | number> {
  const { store, keyed, audit, settings, clock } = parts
  if (!mayReplaceEmail(parts, user)) return 'over'
  const { id: accountId } = user
  const otherEmail = withoutBlanks(typed)
  if (!isMailAddress(otherEmail)) return 'invalid'
  if (equalsInAsciiCase(otherEmail, awaited?.otherEmail ?? user.email ?? '')) return 'same'
  const key = keyed.keyedHash(`replaced:${accountId}`)
  const { count, msToEnd } = await store.limits.hit(key, DAY_MS, MAX_REPLACED)
  if (count > MAX_REPLACED) return msToEnd
  const [addressId, typedAt] = [newId(), clock.now()]
  const parameters = parametersOf(login.captured)
  const event = { ...eventBy(clock, { userId: accountId, parameters }, by), id: newId() }
  await audit({ ...event, type: 'email_replacement_requested' })
  const isSet = await store.pendingLogins.setOtherEmail(login.id, {
    otherEmail,
    addressId,
    typedAt,
  })
  if (!isSet) return 'over'
  const keptMs = settings().emailVerificationExpiration + KEEP_LOGIN_MS
  const purgeAt = new Date(typedAt.getTime() + keptMs)
  await store.pendingLogins.change({ id: login.id }, { purgeAt })
  await voidMailed(store, accountId)
  const whose = { accountId, pendingLoginId: login.id, parameters }
  await requestMail(parts, 'email_verification', { ...whose, requester: by })
  return 'replaced'
}

/** Whether its code can be typed where it waits. */
export function isWaitingPage({ browserHash, continuedAt }: PendingLogin): boolean {
  return browserHash !== undefined && !continuedAt
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
