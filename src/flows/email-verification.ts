/** E-mail verification during the login (3.2). `open` checks a link without using it up; `confirm` and `confirmByCode` verify. */
import { hashToken, isToken } from '../crypto/token.ts'
import type { LinkEnd, Requester, User } from '../contract/index.ts'
import { isSameRequest, parametersOf, type VerificationReason } from '../contract/parameters.ts'
import type { VerificationLink } from '../crypto/verification-link.ts'
import type { PendingLogin, Token } from '../store/index.ts'
import { isTaken, isVerified } from './account.ts'
import { eventBy } from './audit.ts'
import {
  faultOf,
  findLink,
  MAX_MAILED,
  requestRenewal,
  UNKNOWN,
  type LinkContext,
} from './link-state.ts'
import { codeWait, tryCode } from './login-code.ts'
import { mayReplaceEmail, type Mailed, type OpenLogin } from './other-address.ts'
import type { FlowParts } from './parts.ts'
import { wasVoided } from './void-links.ts'
import { isLoginOf } from './waiting-login.ts'

/** A genuine, usable link, and its account. Nothing is consumed yet. */
export interface OpenedLink {
  username: string
  token: Mailed<Token>
  /** The login that the link was mailed for. `undefined`: there is none, or it is over. */
  login: PendingLogin | undefined
  /** The login of the account that waits in this browser: `login`, or else the newest. Without one: `login`, if it went on here. */
  here: PendingLogin | undefined
}

/** `verified`: the account was verified in another way, and the link is no longer needed. */
export type LinkRefusal = LinkContext & { fault: VerificationReason | 'verified' }

export function createEmailVerification(parts: FlowParts) {
  const { users, keyed, sessions } = parts

  /** Whether we signed exactly this link (5.4). */
  const isGenuine = ({ token, parameters, authorizeSig }: VerificationLink) =>
    isToken(token) && keyed.authorizeSig.verify(authorizeSig, token, parameters)

  async function find(link: VerificationLink | undefined) {
    if (!link || !isGenuine(link)) return UNKNOWN
    const found = await findLink(parts, 'email_verification', link.token, sessions)
    if (found && isSameRequest(found.token.parameters, link.parameters)) return found
    // We signed these parameters, so the page may carry them on.
    return { ...UNKNOWN, parameters: link.parameters }
  }

  return {
    isGenuine,

    async open(link: VerificationLink, by: Requester, browser: string | undefined) {
      const found = await find(link)
      if ('fault' in found) return found
      const { token, account, state, end } = found
      if (isVerified(token, account))
        return state === 'usable' ? faultOf(token, 'verified') : refuse(parts, token, 'used', by)
      if (state === 'usable' && account) return openedLink(parts, token, account, browser)
      // Also a used link whose address is not verified now.
      return refuse(parts, token, state === 'expired' ? state : 'changed', by, end)
    },

    /** The code of the link's login. `undefined`: the login does not wait any more. */
    async codeOf({ login, token: { email, addressId, otherEmail = email } }: OpenedLink) {
      if (!login || login.continuedAt) return undefined
      const code = keyed.loginCodes.codeOf(login.waitId, addressId)
      return { code, waitMs: await codeWait(parts, otherEmail) }
    },

    async renew(
      link: VerificationLink | undefined,
      by: Requester,
      form?: string,
    ): Promise<LinkContext | LinkRefusal> {
      const found = await find(link)
      if ('fault' in found) return found
      const { token, account, state, end } = found
      if (isVerified(token, account)) return refuse(parts, token, 'used', by)
      if (state !== 'expired' && state !== 'usable') return refuse(parts, token, 'changed', by, end)
      return requestRenewal(parts, 'email_verification', token, by, form)
    },

    /** Verifies the address, and ends the waiting logins of the account, except `goesOn`. It refuses if another request was first. */
    async confirm({ token, login }: OpenedLink, by: Requester, goesOn = login?.id) {
      const outcome = await verifyAddress(parts, token, by, goesOn)
      if (outcome === 'verified') return outcome
      const isUsed = isVerified(token, await users.findById(token.userId))
      return refuse(parts, token, isUsed ? 'used' : outcome, by)
    },

    /** The same by a typed code. `over` also: another request was first, or the account changed. */
    async confirmByCode({ login, awaited }: OpenLogin, typed: string, by: Requester) {
      const tried = await tryCode(parts, login, awaited, typed, by)
      if (tried !== 'right') return tried
      const { id, accountId: userId, email = '', captured } = login
      const { id: addressId, email: otherEmail } = awaited ?? {}
      const proof = { id, userId, email, addressId, otherEmail, parameters: parametersOf(captured) }
      const outcome = await verifyAddress(parts, proof, by, id)
      return outcome === 'changed' ? 'over' : outcome
    },
  }
}

async function openedLink(
  { store: { pendingLogins }, sessions }: FlowParts,
  token: Mailed<Token>,
  user: User,
  browser: string | undefined,
): Promise<OpenedLink> {
  const { pendingLoginId: id } = token
  const cutoffs = await sessions.readCutoffs(user.id)
  const valid = (login: PendingLogin | undefined) =>
    login && isLoginOf(login, user, cutoffs) ? login : undefined
  const login = id === undefined ? undefined : valid(await pendingLogins.find({ id }))
  const opened = { username: user.username, token, login }
  if (browser === undefined) return { ...opened, here: undefined }
  const browserHash = hashToken(browser)
  const own = login?.browserHash === browserHash ? login : undefined
  if (own && !own.continuedAt) return { ...opened, here: own }
  const newest = await pendingLogins.find({ accountId: user.id, browserHash })
  return { ...opened, here: valid(newest) ?? own }
}

const RECORDED = { used: 'already_verified', taken: 'address_taken' } as const

/** Records one event an hour for each link and reason: no limit counts GET requests, so they could fill the log. */
async function refuse(
  { audit, clock }: FlowParts,
  token: Token,
  reason: VerificationReason,
  by: Requester,
  end: LinkEnd = 'account_changed',
) {
  const hour = Math.floor(clock.now().getTime() / 3_600_000)
  const recorded = reason === 'used' || reason === 'taken' ? RECORDED[reason] : end
  const event = eventBy(clock, token, by, `rejected:${token.id}:${recorded}:${hour}`)
  await audit({ ...event, type: 'email_verification_rejected', reason: recorded })
  return faultOf(token, reason)
}

type Proof = Mailed<Pick<Token, 'id' | 'userId' | 'email' | 'addressId' | 'parameters'>>

/**
 * Verifies the address of a proof: of a link, or of the code of a login. `taken`: another account has the other address, which only the owner
 * of its mailbox is told. `changed`: another request verified the address, or its links are void.
 *
 * @param goesOn - the id of the login that goes on. Left out: none does.
 */
async function verifyAddress(
  parts: FlowParts,
  proof: Proof,
  by: Requester,
  goesOn: string | undefined,
): Promise<'verified' | 'taken' | 'changed'> {
  const { users, store, audit, clock, log } = parts
  const { verificationTokens, pendingLogins } = store
  const { id, userId, email, addressId, otherEmail } = proof
  const endOthers = () =>
    pendingLogins.change({ accountId: userId, except: goesOn }, { isVoid: true })
  // The link, or all links of the login with the code. By their mark, "This wasn't me" finds that they verified.
  const isOurs = (token: Pick<Token, 'id' | 'pendingLoginId' | 'addressId'>) =>
    token.id === id || (token.pendingLoginId === id && token.addressId === addressId)
  if (otherEmail !== undefined) {
    if (await isTaken(users, userId, otherEmail)) return 'taken'
    // Replacing an address cannot be undone, so this looks before.
    const mailed = await verificationTokens.ofUser(userId, MAX_MAILED)
    if (mailed.filter(isOurs).some(wasVoided)) return 'changed'
  }
  // Ends the others first, because each could go on once the address is verified; and again, for those that began meanwhile.
  await endOthers()
  const outcome = await setVerified(parts, proof)
  if (outcome !== 'verified') return outcome
  const used = await verificationTokens.use(userId, isOurs, clock.now(), otherEmail)
  // Its page still goes on: the account has this address by now.
  if (goesOn && otherEmail) await pendingLogins.change({ id: goesOn }, { email: otherEmail })
  await endOthers()
  // "This wasn't me" voids links, then looks for used ones. So for each link, one of the two sees what the other did.
  if (used.some(wasVoided)) {
    await users.markEmailUnverified?.(userId, otherEmail ?? email)
    return 'changed'
  }
  const replaced = otherEmail !== undefined && { details: { address: 'replaced' as const } }
  const event = { ...eventBy(clock, proof, by, `verified:${id}`), ...replaced }
  // If this fails, the login still finishes, because the link is used up.
  await audit({ ...event, type: 'email_verification_completed' }).catch((error: unknown) =>
    log('error', 'a verification was not recorded', { error: String(error) }),
  )
  return 'verified'
}

/** Makes the address verified, or the other one in its place. `taken`: the store refused it. `changed`: the account has changed. */
async function setVerified(parts: FlowParts, { userId, email, otherEmail }: Proof) {
  const { users } = parts
  if (otherEmail === undefined)
    return (await users.markEmailVerified(userId, email)) ? 'verified' : 'changed'
  const mayReplace = async () => {
    const user = await users.findById(userId)
    return user?.email === email && !user.disabled && mayReplaceEmail(parts, user)
  }
  if (!(await mayReplace())) return 'changed'
  if (await users.replaceEmail?.(userId, email, otherEmail)) return 'verified'
  // The account still may, so the store refused: another account has the address.
  return (await mayReplace()) ? 'taken' : 'changed'
}
