/**
 * E-mail verification during the login: section 3.2 of the specification, in code.
 *
 * | state  | trigger                          | here                                                       | next   |
 * |--------|----------------------------------|------------------------------------------------------------|--------|
 * | (none) | POST login, address not verified | `blocks`, `block`; later in a worker, `mail/kinds.ts`      | unused |
 * | (none) | POST resend-verification         | `resend`; later in a worker, `mail/kinds.ts`               | unused |
 * | unused | GET verify-email                 | `open`, then `confirm`; elsewhere `codeOf`, and no change  | used   |
 * | unused | POST verify-email/waiting        | `confirmByCode`                                            | used   |
 * | used   | any use                          | `open` answers `expired`                                   | used   |
 * | any    | a new link is asked for from it  | `renew`; later in a worker, `mail/kinds.ts`                |        |
 */
import { hashToken, isToken } from '../crypto/token.ts'
import { requestMail, type MailRequest } from '../jobs/request.ts'
import type { CapturedRequest, CarriedParameters, Requester, User } from '../contract/index.ts'
import { carriedBy, isSameCarried } from '../contract/carried-query.ts'
import type { VerificationLink } from '../contract/links.ts'
import type { PendingLogin, Token } from '../store/index.ts'
import { linkContext, findLink, verificationState } from './link.ts'
import { codeWait } from './login-code.ts'
import { createConfirm, type OpenedLink } from './confirm-address.ts'
import type { FlowParts } from './parts.ts'
import { refuse, unknownLink, type LinkRefusal } from './link-refusal.ts'
import { isLoginOf, isWaitingPage, MAX_LOGINS, newPendingLogin } from './waiting-login.ts'

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
