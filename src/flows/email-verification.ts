/**
 * E-mail verification during the login: section 3.2 of the specification, in code.
 *
 * | state  | trigger                          | here                                                       | next   |
 * |--------|----------------------------------|------------------------------------------------------------|--------|
 * | (none) | POST login, address not verified | `blocks`, `block`; later in a worker, `verification-mail`  | unused |
 * | (none) | POST resend-verification         | `resend`; later in a worker, `verification-mail`           | unused |
 * | unused | GET verify-email                 | `open`, then `confirm`; elsewhere `codeOf`, and no change  | used   |
 * | unused | POST verify-email/waiting        | `confirmByCode`                                            | used   |
 * | used   | any use                          | `open` answers `expired`                                   | used   |
 * | any    | a new link is asked for from it  | `renew`; later in a worker, `verification-mail`            |        |
 */
import { hashToken, isToken } from '../crypto/token.ts'
import { requestMail, type MailRequest } from '../jobs/request.ts'
import type {
  CapturedRequest,
  CarriedParameters,
  LinkEnd,
  Requester,
  User,
} from '../contract/index.ts'
import { carriedBy, isSameCarried } from '../contract/carried-query.ts'
import type { VerificationLink, VerificationReason } from '../contract/links.ts'
import type { PendingLogin, Token } from '../store/index.ts'
import { MAX_MAILED, findLink, linkContext, verificationState, type LinkContext } from './link.ts'
import { codeWait } from './login-code.ts'
import type { FlowParts } from './parts.ts'
import { MAX_LOGINS, isLoginOf, isWaitingPage, newPendingLogin } from './waiting-login.ts'
import { isVerified, wasVoided } from './account.ts'

type LinkOpener = Requester & { browser: string | undefined }

export function createEmailVerification(parts: FlowParts) {
  return {
    /** Whether this user may not finish the login (4.8). */
    blocks: (user: User) => parts.settings().requireEmailVerification && !user.emailVerified,

    /**
     * Keeps a login that has to wait, and asks for a link. The same request in the same browser is the same login. It comes back void if
     * it was reported ("This wasn't me"), had too many wrong codes, or its account is verified by now.
     * `undefined`: the request is too long to be kept, and nothing was done.
     */
    async block(user: User, captured: CapturedRequest, { browser, ...requester }: LinkOpener) {
      const lifetimeMs = parts.settings().emailVerificationExpiration
      const login = newPendingLogin(user, captured, browser, parts.clock.now(), lifetimeMs)
      if (!login) return undefined
      const { id } = login
      const isKept = await parts.pendingLogins.save(login, MAX_LOGINS)
      // A login that verified since the host read the account has ended this one.
      const isLate = (await parts.users.findById(user.id))?.emailVerified
      if (isLate) await parts.pendingLogins.change({ id }, { isVoid: true })
      if (!isKept || isLate) return { ...login, passwordDigest: '' }
      const carried = carriedBy(captured)
      await request(parts, { accountId: user.id, pendingLoginId: id, carried, requester })
      return login
    },

    /** Asks for a new link (4.7), by name or for a login that waits. The same work for every name, and no answer. */
    resend: (
      whose: { identifier: string } | { accountId: string; pendingLoginId: string },
      carried: CarriedParameters,
      requester: Requester,
      form?: string,
    ) => request(parts, { ...whose, carried, requester, form }),

    /** Whether we signed exactly this link (5.4). */
    isGenuine: isGenuine.bind(undefined, parts),

    open: open.bind(undefined, parts),

    /** The code of the login that the link was mailed for, if that still waits, and for how long no code is compared. */
    async codeOf({ login }: OpenedLink) {
      if (!login || !isWaitingPage(login)) return undefined
      const waitMs = await codeWait(parts, login.email)
      return { code: parts.loginCodes.codeOf(login.id), waitMs }
    },

    /** Asks for a new link in place of a genuine one that expired. */
    async renew(link: VerificationLink, by: Requester, form?: string) {
      const found = await find(parts, link)
      if ('refusal' in found) return found
      const { userId: accountId, pendingLoginId, carried, locale } = found.token
      // A usable link is as good for this as an expired one.
      const state = verificationState(found)
      if (state !== 'expired' && state !== 'usable') {
        return refuse(parts, found.token, state, 'account_changed', by)
      }
      const requester = { ...by, uiLocales: by.uiLocales ?? locale }
      await request(parts, { accountId, pendingLoginId, carried, requester, form })
      return { refusal: undefined, ...linkContext(found.token) }
    },

    ...createConfirm(parts),
  }
}

function request(parts: FlowParts, asked: Omit<MailRequest, 'kind'>): Promise<void> {
  const { outbox, settings, clock } = parts
  const wanted = { kind: 'email_verification', ...asked } as const
  return requestMail(outbox, wanted, settings(), clock.now())
}

const isGenuine = (parts: FlowParts, { token, carried, authorizeSig }: VerificationLink) =>
  isToken(token) && parts.authorizeSig.verify(authorizeSig, token, carried)

async function find(parts: FlowParts, link: VerificationLink) {
  if (!isGenuine(parts, link)) return unknownLink({})
  const { verificationTokens, users, clock, readCutoffs } = parts
  const found = await findLink(verificationTokens, users, link.token, clock.now(), readCutoffs)
  return found && isSameCarried(found.token.carried, link.carried)
    ? found
    : unknownLink(link.carried)
}

async function open(
  parts: FlowParts,
  link: VerificationLink,
  { browser, ...requester }: LinkOpener,
): Promise<OpenedLink | LinkRefusal> {
  const found = await find(parts, link)
  if ('refusal' in found) return found
  const { token, account, end } = found
  const state = verificationState(found)
  if (found.state === 'usable' && state === 'used') {
    return { refusal: 'verified', reason: state, ...linkContext(token) }
  }
  if (state !== 'usable' || !account) {
    return refuse(parts, token, state === 'usable' ? 'changed' : state, end, requester)
  }
  const { username } = account
  return { username, token, ...(await loginsOf(parts, token, account, browser)) }
}

async function loginsOf(
  { pendingLogins, readCutoffs }: FlowParts,
  { pendingLoginId: id }: Token,
  user: User,
  browser: string | undefined,
): Promise<Pick<OpenedLink, 'login' | 'here'>> {
  const browserHash = browser === undefined ? undefined : hashToken(browser)
  const cutoffs = await readCutoffs(user.id)
  const valid = (login: PendingLogin | undefined) =>
    login && isLoginOf(login, user, cutoffs) ? login : undefined
  const login = id === undefined ? undefined : valid(await pendingLogins.find({ id }))
  if (browserHash === undefined) return { login, here: undefined }
  const own = login?.browserHash === browserHash ? login : undefined
  if (own && isWaitingPage(own)) return { login, here: own }
  const newest = await pendingLogins.find({ accountId: user.id, browserHash })
  return { login, here: valid(newest) ?? own }
}

export interface LinkRefusal extends LinkContext {
  /** `verified`: the account was verified by other means, and the link is no longer needed. */
  refusal: 'expired' | 'verified'
  reason: VerificationReason
}

/** Only parameters that we signed are carried on. */
export const unknownLink = (carried: CarriedParameters) =>
  ({ refusal: 'expired', reason: 'unknown', carried, locale: undefined }) as const

/** Recorded once an hour for each link and end: no limit counts GET requests, and they would fill the log. */
export async function refuse(
  parts: FlowParts,
  token: Token,
  reason: VerificationReason,
  end: LinkEnd,
  by: Requester,
) {
  const hour = Math.floor(parts.clock.now().getTime() / 3_600_000)
  const because = reason === 'used' ? 'already_verified' : end
  const event = { ...eventBy(parts, token, by), id: `rejected:${token.id}:${because}:${hour}` }
  await parts.audit({ ...event, type: 'email_verification_rejected', reason: because })
  return { refusal: 'expired', reason, ...linkContext(token) } as const
}

export const eventBy = (
  { clock }: FlowParts,
  { userId: accountId, carried: { clientId } }: Pick<Token, 'userId' | 'carried'>,
  { address, userAgent }: Requester,
) => ({ at: clock.now(), accountId, clientId, address, userAgent })

/** A genuine, usable link, and its account. Nothing is consumed yet. */
export interface OpenedLink {
  username: string
  token: Token
  /** That the link was mailed for. `undefined`: none, or it is over. */
  login: PendingLogin | undefined
  /** The login of this account that waits in this browser: `login`, or else the newest. Or `login`, if it went on here before. */
  here: PendingLogin | undefined
}

/** unverified → verified, by a link or by a code (3.2). */
export function createConfirm(parts: FlowParts) {
  return {
    /**
     * unverified → verified, unused → used. Ends the waiting logins of the account, except `goesOn`. A refusal: another request was first,
     * or the account changed just now.
     */
    async confirm(
      { token, login }: OpenedLink,
      by: Requester,
      goesOn = login?.id,
    ): Promise<'confirmed' | LinkRefusal> {
      if (await verifyAddress(parts, token, goesOn, ({ id }) => id === token.id)) {
        await recordVerified(parts, token.id, token, by)
        return 'confirmed'
      }
      const state = isVerified(token, await parts.users.findById(token.userId)) ? 'used' : 'changed'
      return refuse(parts, token, state, 'account_changed', by)
    },

    /** The same by the right code, typed where the login waits. `false`: another request was first, or the account changed. */
    async confirmByCode(login: PendingLogin, by: Requester): Promise<boolean> {
      const { id, accountId: userId, email = '', captured } = login
      const isOurs = ({ pendingLoginId }: Token) => pendingLoginId === id
      if (!(await verifyAddress(parts, { userId, email }, id, isOurs))) return false
      await recordVerified(parts, id, { userId, carried: carriedBy(captured) }, by)
      return true
    },
  }
}

/** Once for each link or login. If this fails, the login is finished all the same, because the link is used up. */
async function recordVerified(
  parts: FlowParts,
  id: string,
  whose: Pick<Token, 'userId' | 'carried'>,
  by: Requester,
) {
  const event = { ...eventBy(parts, whose, by), id: `verified:${id}` }
  try {
    await parts.audit({ ...event, type: 'email_verification_completed' })
  } catch (error) {
    parts.log('error', 'a verification was not recorded', { error: String(error) })
  }
}

/**
 * `false`: another request verified the address, or its links were voided just now.
 *
 * @param isOurs - picks the links to mark as used. So "This wasn't me" of their mails finds that they verified.
 */
async function verifyAddress(
  { users, pendingLogins, verificationTokens, clock }: FlowParts,
  { userId, email }: Pick<Token, 'userId' | 'email'>,
  goesOn: string | undefined,
  isOurs: (token: Token) => boolean,
): Promise<boolean> {
  const endOthers = () =>
    pendingLogins.change({ accountId: userId, except: goesOn }, { isVoid: true })
  const ours = async () => (await verificationTokens.ofUser(userId, MAX_MAILED)).filter(isOurs)
  // Before, because each remaining login can go on once the address is verified. And after, for logins that began meanwhile.
  await endOthers()
  if (!(await users.markEmailVerified(userId, email))) return false
  for (const token of await ours()) await verificationTokens.use(token, clock.now())
  await endOthers()
  // This marks links as used, then looks for void ones. "This wasn't me" voids, then looks for used ones. So one sees the other.
  if (!(await ours()).some(wasVoided)) return true
  await users.markEmailUnverified?.(userId, email)
  return false
}
