/** A login that waits for its address to be verified (3.2). It goes on once, with the original request of the client. */
import { passwordDigest } from '../crypto/password.ts'
import { hashToken, idOf, isToken, newId } from '../crypto/token.ts'
import { isAwaited, isVoid, KEEP_LOGIN_MS, type CapturedRequest } from '../store/logins.ts'
import { isEnded, type SessionCutoffs } from '../store/cutoffs.ts'
import type { Requester, User } from '../contract/index.ts'
import { equalsInAsciiCase, withoutBlanks } from '../contract/users.ts'
import { linkKinds } from '../contract/mail-kinds.ts'
import { parametersOf } from '../contract/parameters.ts'
import { requestMail } from '../jobs/request-mail.ts'
import type { PendingLogin } from '../store/index.ts'
import { isMailAddress } from '../settings/addresses.ts'
import { isUnchanged } from './account.ts'
import { eventBy } from './audit.ts'
import { awaitedAddress, mailedTo, mayReplaceEmail } from './other-address.ts'
import type { FlowParts } from './parts.ts'
import { voidEverything } from './void-links.ts'

/** The most waiting logins of one account; the newest stay. Otherwise a stranger who knows the password could keep the owner out. */
const MAX_LOGINS = 10

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
  replaced?: { id: string; email: string },
): Promise<PendingLogin | undefined> {
  const { users, store, settings, clock } = parts
  if (Buffer.byteLength(JSON.stringify(captured)) > MAX_CAPTURED_BYTES) return undefined
  const { id: accountId, email, passwordHash } = user
  // A login that begins while another one waits for another address waits for that address too.
  const awaited = replaced ? replaced.email : await awaitedAddress(parts, user)
  const otherEmail = awaited === email ? undefined : awaited
  const digest = passwordDigest(passwordHash)
  const checked = { accountId, email, otherEmail, passwordDigest: digest }
  // The same request from the same browser is the same login: its earlier link still finishes it, even if this request gets no mail. After
  // an end of the account, the same request is another login, and the earlier login stays ended.
  const { params, deviceCode } = captured
  const asked = [browser, checked, params, deviceCode, captured.login.accountFlowsSeen]
  const id = replaced?.id ?? (browser === undefined ? newId() : idOf(asked))
  const createdAt = clock.now()
  const keptMs = settings().emailVerificationExpiration + KEEP_LOGIN_MS
  const login = {
    ...checked,
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
  if (replaced) await voidEverything(store, accountId, linkKinds, id)
  const whose = { accountId, pendingLoginId: id, parameters: parametersOf(captured) }
  await requestMail(parts, 'email_verification', { ...whose, requester })
  return login
}

export interface WaitingLogin {
  status: 'waiting' | 'verified'
  user: User
  login: PendingLogin
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
    return isAwaited(pending, clock) ? pending : undefined
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
      if (!mayGoOn) return { status: 'waiting', user, login }
      // Looks again: another login ends this one before it verifies, perhaps after the first look.
      const now = await findOwn(id, browser)
      if (!now || isVoid(now)) return { status: 'ended', captured }
      return { status: 'verified', user, login }
    },

    mayReplaceEmail: (user: User) => mayReplaceEmail(parts, user),

    /** The id of the login that follows if this one gets that address. */
    idWithEmail,

    replaceEmail: replaceEmail.bind(undefined, parts),

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

const idWithEmail = (id: string, typed: string) => idOf([id, withoutBlanks(typed)])

/**
 * The login goes on waiting, as another one, for a link to this address. Everything that was mailed before is void. A number: milliseconds
 * until the account may get another address.
 */
async function replaceEmail(
  parts: FlowParts,
  { user, login }: WaitingLogin,
  typed: string,
  by: Requester,
  browser: string | undefined,
): Promise<PendingLogin | 'invalid' | 'same' | number> {
  const { store, keyed, audit, clock } = parts
  const { captured } = login
  const email = withoutBlanks(typed)
  if (!isMailAddress(email)) return 'invalid'
  if (equalsInAsciiCase(email, mailedTo(login) ?? '')) return 'same'
  const key = keyed.keyedHash(`replaced:${user.id}`)
  const { count, msToEnd } = await store.limits.hit(key, DAY_MS, MAX_REPLACED)
  if (count > MAX_REPLACED) return msToEnd
  const id = idWithEmail(login.id, typed)
  const about = { userId: user.id, parameters: parametersOf(captured) }
  const event = { ...eventBy(clock, about, by), id: `replaced:${id}` }
  await audit({ ...event, type: 'email_replacement_requested' })
  // It was short enough before.
  return (await block(parts, user, captured, by, browser, { id, email })) ?? login
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
