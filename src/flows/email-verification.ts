/**
 * E-mail verification during the login: section 3.2 of the specification, in code.
 *
 * | state  | trigger                          | here                                                       | next   |
 * |--------|----------------------------------|------------------------------------------------------------|--------|
 * | (none) | POST login, address not verified | `blocks`, `block`; later in a worker, `verification-mail`  | unused |
 * | (none) | POST resend-verification         | `resend`; later in a worker, `verification-mail`           | unused |
 * | unused | GET verify-email                 | `open`, then `confirm`                                     | used   |
 * | used   | any use                          | `open` answers `expired`                                   | used   |
 * | any    | a new link is asked for from it  | `renew`; later in a worker, `verification-mail`            |        |
 *
 * @module
 */
import { isToken } from '../crypto/token.ts'
import { requestMail, type MailRequest } from '../outbox/request.ts'
import type { CapturedRequest, CarriedParameters, Requester, Token, User } from '../ports/index.ts'
import { carriedBy, isSameCarried } from '../ports/carried-query.ts'
import { isVerified } from './account.ts'
import { contextOf, findLink, verificationState, type VerificationLink } from './link.ts'
import type { FlowParts } from './parts.ts'
import { about, refuse, unknown, type LinkRefusal } from './link-refusal.ts'
import { linkedLogin, unlessLeft, type LinkedLogin, type LoginToMatch } from './linked-login.ts'
import { inLoginTurn, MOST_LOGINS, newPendingLogin } from './waiting-login.ts'
import { disown, isHeld, tryNumber, windowRule } from './whose-window.ts'

/** A genuine, usable link and the account it is for. Nothing is consumed yet. */
export interface OpenedLink extends LinkedLogin {
  accountId: string
  token: Token
}

/** Who opens a link, and the cookie of the browser. `undefined`: it has none. */
type LinkOpener = Requester & { browser: string | undefined }

/**
 * What follows a verification. `takesTurn`: in the turn of the login that waits in this browser. `matched`: the login whose number was
 * typed; with `match`, no other one goes on after a link that was opened in another browser.
 */
export type AfterConfirming = {
  takesTurn: boolean
  matched: string | undefined
  goOn: () => Promise<void>
}

export type EmailVerification = ReturnType<typeof createEmailVerification>

export function createEmailVerification(parts: FlowParts) {
  return {
    /** Whether this user may not finish the login (4.8). */
    blocks: (user: User) => parts.settings().requireEmailVerification && !user.emailVerified,

    /**
     * Keeps the login that waits, and asks for a link. The id of the same request in the same browser is always the same. `undefined`: the request is too long to be kept, and nothing was done.
     */
    async block(user: User, captured: CapturedRequest, opener: LinkOpener) {
      const { browser: _browser, ...requester } = opener
      const lifetimeMs = parts.settings().emailVerificationExpiration
      const begun = newPendingLogin(user, captured, opener, parts.clock.now(), lifetimeMs)
      if (!begun) return undefined
      const login = (await isHeld(parts, user.id)) ? { ...begun, isHeld: true as const } : begun
      await parts.pendingLogins.save(login, MOST_LOGINS)
      const asked = { accountId: user.id, carried: carriedBy(captured), requester }
      await request(parts, { ...asked, pendingLoginId: login.id })
      return login
    },

    /** Asks for a fresh link (4.7). Does the same for every username, and answers nothing. */
    resend: (identifier: string, carried: CarriedParameters, requester: Requester, form?: string) =>
      request(parts, { identifier, carried, requester, form }),

    /** Whether we signed exactly this link (5.4). */
    isGenuine: (link: VerificationLink) => isGenuine(parts, link),

    /** Judges a link without consuming it. */
    open: (link: VerificationLink, opener: LinkOpener) => open(parts, link, opener),

    /** Asks for a fresh link in the place of a genuine one that expired. */
    renew: (link: VerificationLink, requester: Requester, form?: string) =>
      renew(parts, link, requester, form),

    /**
     * unverified → verified, unused → used, and then `goOn`. A refusal: somebody else was first, or the account changed just now.
     * `continued`: the waiting window of this browser has taken the turn of the login, which `takesTurn` asks for. In neither is
     * `goOn` called; where that fails in its turn, the turn is given back.
     */
    confirm: (link: OpenedLink, by: Requester, then: AfterConfirming) =>
      confirm(parts, link, by, then),

    /** Judges the number that was typed for the window of a login, which may be tried twice. */
    tryNumber: (token: Token, by: Requester, login: LoginToMatch, typed: string) =>
      tryNumber(parts, { token, by }, login.id, typed),

    /** Whoever opened the link sees no window that waits: verifies nothing, and ends the login and the link. */
    disown: ({ token }: OpenedLink, by: Requester) => disown(parts, { token, by }),

    /** Records that a confirmed link has done its work: once for each link, however often it is recorded. */
    recordConfirmed: ({ token }: OpenedLink, by: Requester) =>
      parts.audit({
        ...about(parts, token, by),
        id: `verified:${token.id}`,
        type: 'email_verification_completed',
      }),
  }
}

function request(parts: FlowParts, asked: Omit<MailRequest, 'kind'>): Promise<void> {
  const { outbox, settings, clock } = parts
  const wanted = { kind: 'email_verification', ...asked } as const
  return requestMail(outbox, wanted, settings(), clock.now())
}

const isGenuine = ({ authorizeSig }: FlowParts, { token, carried, signature }: VerificationLink) =>
  isToken(token) && authorizeSig.verify(signature, token, carried)

/** A link that we signed, with its record and its account; a refusal, where there is none. */
async function find(parts: FlowParts, link: VerificationLink) {
  if (!isGenuine(parts, link)) return unknown({})
  const { verificationTokens, users, clock, readCutoffs } = parts
  const found = await findLink(verificationTokens, users, link.token, clock.now(), readCutoffs)
  return found && isSameCarried(found.token.carried, link.carried) ? found : unknown(link.carried)
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
    return { refusal: 'verified', reason: state, ...contextOf(token) }
  }
  if (state !== 'usable' || !account) {
    return refuse(parts, token, state === 'usable' ? 'changed' : state, end, requester)
  }
  const login = await linkedLogin(parts, token.pendingLoginId, account, browser)
  return { accountId: account.id, token, ...login }
}

async function renew(parts: FlowParts, link: VerificationLink, by: Requester, form?: string) {
  const found = await find(parts, link)
  if ('refusal' in found) return found
  const { userId: accountId, pendingLoginId, carried, locale } = found.token
  // One that is good still is as good for this as one that expired.
  const state = verificationState(found)
  if (state !== 'expired' && state !== 'usable') {
    return refuse(parts, found.token, state, 'account_changed', by)
  }
  const requester = { ...by, uiLocales: by.uiLocales ?? locale }
  await request(parts, { accountId, pendingLoginId, carried, requester, form })
  return { refusal: undefined, ...contextOf(found.token) }
}

async function confirm(
  parts: FlowParts,
  { token, isFirstBrowser }: OpenedLink,
  requester: Requester,
  { takesTurn, matched, goOn }: AfterConfirming,
): Promise<'confirmed' | 'continued' | LinkRefusal> {
  const { users, verificationTokens, pendingLogins, settings, clock } = parts
  const { userId, email, pendingLoginId } = token
  // Before the address is verified: from then on each window goes on that is not ended.
  if (!isFirstBrowser && windowRule(settings()) === 'match') {
    const others = { accountId: userId, email, ...(matched !== undefined && { except: matched }) }
    await pendingLogins.change(others, { isVoid: true })
  }
  const won = await users.markEmailVerified(userId, email)
  if (!won) {
    const state = isVerified(token, await users.findById(userId)) ? 'used' : 'changed'
    return refuse(parts, token, state, 'account_changed', requester)
  }
  await verificationTokens.use(token, clock.now())
  const tellWindows = () =>
    pendingLogins.change({ accountId: userId, email }, { verifiedAt: clock.now() })
  const finish = async () => {
    await tellWindows()
    await goOn()
  }
  // The turn is taken before the waiting window can see that it may go on.
  const hasTurn = takesTurn && isFirstBrowser && pendingLoginId !== undefined
  const isFinished = hasTurn
    ? await inLoginTurn(pendingLogins, pendingLoginId, clock.now(), finish)
    : await unlessLeft(pendingLogins, takesTurn ? pendingLoginId : undefined, finish)
  if (isFinished) return 'confirmed'
  await tellWindows()
  return 'continued'
}
