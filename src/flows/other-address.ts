/**
 * "Wrong address?" (3.9): an account waits for another address than its own. While it waits, only what was mailed to that address works.
 * The account gets the address in the step that verifies it.
 */
import type { Requester, User } from '../contract/index.ts'
import { parametersOf } from '../contract/parameters.ts'
import { equalsInAsciiCase, withoutBlanks } from '../contract/users.ts'
import { newId } from '../crypto/token.ts'
import { isMailAddress } from '../settings/addresses.ts'
import type { PendingLogin, Token } from '../store/index.ts'
import { isInTime, KEEP_LOGIN_MS, type OtherEmail } from '../store/logins.ts'
import { isUnchanged } from './account.ts'
import { eventBy } from './audit.ts'
import type { FlowParts } from './parts.ts'
import { requestMail } from './request-mail.ts'
import { endMailed } from './void-links.ts'

/** How often an account gets another address in a day. */
const MAX_A_DAY = 3

const DAY_MS = 24 * 3_600_000

type Parts = Pick<FlowParts, 'store' | 'users' | 'clock'>

/** Whether the user may replace the address of the account. */
export const mayReplaceEmail = ({ users }: Pick<Parts, 'users'>, user: User): boolean =>
  users.replaceEmail !== undefined &&
  user.mayReplaceEmail === true &&
  user.email !== undefined &&
  !user.emailVerified

/** The address that an account waits for, and the login that holds it. */
export interface AwaitedAddress extends OtherEmail {
  loginId: string
}

/** A login whose page is open. */
export interface OpenLogin {
  /** `verified`: it may go on. */
  status: 'waiting' | 'verified'
  user: User
  login: PendingLogin
  awaited: AwaitedAddress | undefined
}

/** Only the address that was typed last can be awaited. `undefined`: the account's own address counts. */
export async function awaitedOf(parts: Parts, user: User): Promise<AwaitedAddress | undefined> {
  if (!mayReplaceEmail(parts, user)) return undefined
  const login = await parts.store.pendingLogins.withOther(user.id)
  if (!login?.other) return undefined
  const waits = !login.continuedAt && isUnchanged(login, user) && isInTime(login, parts.clock)
  return waits ? { ...login.other, loginId: login.id } : undefined
}

/**
 * The account waits for this address from now on, and everything that was mailed before has ended. A number: milliseconds until the account
 * may get another address. `over`: the login does not wait any more, or the account may not get another address.
 */
export async function waitForOther(
  parts: FlowParts,
  { status, user, login, awaited }: OpenLogin,
  typed: string,
  by: Requester,
): Promise<'replaced' | 'invalid' | 'same' | 'over' | number> {
  const { store, keyed, audit, clock } = parts
  if (status !== 'waiting' || !mayReplaceEmail(parts, user)) return 'over'
  const { id: accountId } = user
  const email = withoutBlanks(typed)
  if (!isMailAddress(email)) return 'invalid'
  if (equalsInAsciiCase(email, awaited?.email ?? user.email ?? '')) return 'same'
  const key = keyed.keyedHash(`replaced:${accountId}`)
  const { count, msToEnd } = await store.limits.hit(key, DAY_MS, MAX_A_DAY)
  if (count > MAX_A_DAY) return msToEnd
  const parameters = parametersOf(login.captured)
  const event = eventBy(clock, { userId: accountId, parameters }, by)
  await audit({ ...event, type: 'email_replacement_requested' })
  const other = { id: newId(), email, typedAt: clock.now().getTime() }
  if (!(await store.pendingLogins.setOther(login, other, endOfWait(parts)))) return 'over'
  await endMailed(store, accountId, clock.now())
  const whose = { accountId, pendingLoginId: login.id, parameters }
  await requestMail(parts, 'email_verification', { ...whose, requester: by })
  return 'replaced'
}

/** When the record of a login goes that begins to wait now. */
export const endOfWait = ({ settings, clock }: Pick<FlowParts, 'settings' | 'clock'>) =>
  new Date(clock.now().getTime() + settings().emailVerificationExpiration + KEEP_LOGIN_MS)

/** What was mailed, and where to if that was not the address that the account had. */
export type Mailed<Of> = Of & { otherEmail?: string | undefined }

/**
 * Reads the addresses of what was mailed to another address from the login that holds it. If that is gone, `email` stays empty. A used link has
 * its address.
 */
export async function withAddresses<Of extends Pick<Token, 'userId' | 'email' | 'addressId'>>(
  { store }: Pick<Parts, 'store'>,
  mailed: Of,
): Promise<Mailed<Of>> {
  const { userId: accountId, email, addressId } = mailed
  if (addressId === undefined || email !== '') return mailed
  const login = await store.pendingLogins.find({ accountId, addressId })
  return login?.other
    ? { ...mailed, email: login.email ?? '', otherEmail: login.other.email }
    : mailed
}
