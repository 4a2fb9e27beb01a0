/**
 * E-mail verification during the login (3.2). `blocks` and `block` keep a login that must wait. `resend` and `renew` ask for another link;
 * a worker mails it (`mail/links.ts`). `open` checks a link without using it up; `confirm` and `confirmByCode` verify.
 */
import type { AuthorizeSig } from '../crypto/keys.ts'
import { hashToken, isToken } from '../crypto/token.ts'
import type { CapturedRequest } from '../store/logins.ts'
import type { RequestParameters, LinkEnd, Requester, User, UserStore } from '../contract/index.ts'
import {
  parametersOf,
  isSameRequest,
  type VerificationLink,
  type VerificationReason,
} from '../contract/requests.ts'
import type {
  PendingLogin,
  PendingLoginStore,
  Token,
  VerificationTokenStore,
} from '../store/index.ts'
import { isVerified, wasVoided } from './account.ts'
import { eventBy, type Environment } from './audit.ts'
import {
  findLink,
  linkContext,
  MAX_MAILED,
  renewalOf,
  verificationState,
  type AskForMail,
  type LinkContext,
  type ReadCutoffs,
} from './link.ts'
import type { CodeOutcome, CodeTries } from './login-code.ts'
import { isLoginOf, isWaitingPage, MAX_LOGINS, newPendingLogin } from './waiting-login.ts'

export interface VerificationParts extends Environment {
  pendingLogins: PendingLoginStore
  verificationTokens: VerificationTokenStore
  users: UserStore
  readCutoffs: ReadCutoffs
  askForMail: AskForMail
  authorizeSig: Pick<AuthorizeSig, 'verify'>
  codes: Pick<CodeTries, 'tryCode' | 'codeOf'>
}

type LinkOpener = Requester & { browser: string | undefined }

/** A genuine, usable link, and its account. Nothing is consumed yet. */
export interface OpenedLink {
  username: string
  token: Token
  /** The login that the link was mailed for. `undefined`: there was no such login, or it is over. */
  login: PendingLogin | undefined
  /** The login of this account that waits in this browser: `login`, or else the newest. Without one: `login`, if it went on here before. */
  here: PendingLogin | undefined
}

export interface LinkRefusal extends LinkContext {
  /** `verified`: the account was verified in another way, and the link is no longer needed. */
  refusal: 'expired' | 'verified'
  reason: VerificationReason
}

export function createEmailVerification(parts: VerificationParts) {
  const { users, pendingLogins, askForMail, codes, settings, clock } = parts
  return {
    /** Whether this user may not finish the login (4.8). */
    blocks: (user: User) => settings().requireEmailVerification && !user.emailVerified,

    /**
     * Keeps a login that has to wait, and asks for a link. The same request in the same browser is the same login. It comes back void if
     * the user reported it ("This wasn't me"), it had too many wrong codes, or the account is verified by now. `undefined`: the request is
     * too long to be kept, and nothing was done.
     */
    async block(user: User, captured: CapturedRequest, { browser, ...requester }: LinkOpener) {
      const lifetimeMs = settings().emailVerificationExpiration
      const login = newPendingLogin(user, captured, browser, clock.now(), lifetimeMs)
      if (!login) return undefined
      const { id } = login
      const isKept = await pendingLogins.save(login, MAX_LOGINS)
      // If another login verified since the host read the account, it has ended this one.
      const isLate = (await users.findById(user.id))?.emailVerified
      if (isLate) await pendingLogins.change({ id }, { isVoid: true })
      if (!isKept || isLate) return { ...login, passwordDigest: '' }
      const whose = { accountId: user.id, pendingLoginId: id }
      const parameters = parametersOf(captured)
      await askForMail({ kind: 'email_verification', ...whose, parameters, requester })
      return login
    },

    /** Asks for a new link (4.7), by name or for a login that waits. It does the same work for every name, and returns nothing. */
    resend: (
      whose: { identifier: string } | { accountId: string; pendingLoginId: string },
      parameters: RequestParameters,
      requester: Requester,
      form?: string,
    ) => askForMail({ kind: 'email_verification', ...whose, parameters, requester, form }),

    /** Whether we signed exactly this link (5.4). */
    isGenuine: isGenuine.bind(undefined, parts),

    open: open.bind(undefined, parts),

    /** The code of the link's login, and for how long no code is compared. `undefined`: the login does not wait any more. */
    codeOf: async ({ login }: OpenedLink) =>
      login && isWaitingPage(login) ? codes.codeOf(login) : undefined,

    /** Asks for a new link in place of a genuine one that expired. */
    async renew(link: VerificationLink, by: Requester, form?: string) {
      const found = await find(parts, link)
      if ('refusal' in found) return found
      const { token } = found
      // A usable link is as good for this as an expired one.
      const state = verificationState(found)
      if (state !== 'expired' && state !== 'usable')
        return refuse(parts, token, state, 'account_changed', by)
      await askForMail({ kind: 'email_verification', ...renewalOf(token, by), form })
      return { refusal: undefined, ...linkContext(token) }
    },

    /**
     * Verifies the address, marks the link as used, and ends the waiting logins of the account, except `goesOn`. It refuses if another
     * request was first, or the account changed just now.
     */
    async confirm(
      { token, login }: OpenedLink,
      by: Requester,
      goesOn = login?.id,
    ): Promise<'confirmed' | LinkRefusal> {
      const isOurs = ({ id }: Token) => id === token.id
      if (await verifyAddress(parts, token, by, goesOn, isOurs)) return 'confirmed'
      const state = isVerified(token, await users.findById(token.userId)) ? 'used' : 'changed'
      return refuse(parts, token, state, 'account_changed', by)
    },

    /** The same by a code that the user types where the login waits. `over` also: another request was first, or the account changed. */
    async confirmByCode(login: PendingLogin, typed: string, by: Requester): Promise<CodeOutcome> {
      const outcome = await codes.tryCode(login, typed, by)
      if (outcome !== 'right') return outcome
      const { id, accountId: userId, email = '', captured } = login
      const isOurs = ({ pendingLoginId }: Token) => pendingLoginId === id
      const whose = { id, userId, email, parameters: parametersOf(captured) }
      return (await verifyAddress(parts, whose, by, id, isOurs)) ? 'right' : 'over'
    },
  }
}

const isGenuine = (
  parts: VerificationParts,
  { token, parameters, authorizeSig }: VerificationLink,
) => isToken(token) && parts.authorizeSig.verify(authorizeSig, token, parameters)

async function find(parts: VerificationParts, link: VerificationLink) {
  if (!isGenuine(parts, link)) return unknownLink({})
  const { verificationTokens, users, clock, readCutoffs } = parts
  const found = await findLink(verificationTokens, users, link.token, clock.now(), readCutoffs)
  return found && isSameRequest(found.token.parameters, link.parameters)
    ? found
    : unknownLink(link.parameters)
}

async function open(
  parts: VerificationParts,
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
  { pendingLogins, readCutoffs }: VerificationParts,
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

/** Pass only parameters that we signed: the page carries them on. */
export const unknownLink = (parameters: RequestParameters) =>
  ({ refusal: 'expired', reason: 'unknown', parameters, locale: undefined }) as const

/** Records one event an hour for each link and reason: no limit counts GET requests, so they could fill the log. */
async function refuse(
  { audit, clock }: VerificationParts,
  token: Token,
  reason: VerificationReason,
  end: LinkEnd,
  by: Requester,
) {
  const hour = Math.floor(clock.now().getTime() / 3_600_000)
  const because = reason === 'used' ? 'already_verified' : end
  const event = { ...eventBy(clock, token, by), id: `rejected:${token.id}:${because}:${hour}` }
  await audit({ ...event, type: 'email_verification_rejected', reason: because })
  return { refusal: 'expired', reason, ...linkContext(token) } as const
}

/**
 * `false`: another request verified the address, or its links were voided just now.
 *
 * @param isOurs - picks the links to mark as used. By the mark, "This wasn't me" of their mails finds that they verified.
 */
async function verifyAddress(
  { users, pendingLogins, verificationTokens, audit, clock, log }: VerificationParts,
  proof: Pick<Token, 'id' | 'userId' | 'email' | 'parameters'>,
  by: Requester,
  goesOn: string | undefined,
  isOurs: (token: Token) => boolean,
): Promise<boolean> {
  const { id, userId, email } = proof
  const endOthers = () =>
    pendingLogins.change({ accountId: userId, except: goesOn }, { isVoid: true })
  const ours = async () => (await verificationTokens.ofUser(userId, MAX_MAILED)).filter(isOurs)
  // Ends the others first, because each could go on once the address is verified. Ends them again later, for those that began meanwhile.
  await endOthers()
  if (!(await users.markEmailVerified(userId, email))) return false
  for (const token of await ours()) await verificationTokens.use(token, clock.now())
  await endOthers()
  // This marks links as used, then looks for void ones. "This wasn't me" voids, then looks for used ones. So one of them sees the other.
  if ((await ours()).some(wasVoided)) {
    await users.markEmailUnverified?.(userId, email)
    return false
  }
  const event = { ...eventBy(clock, proof, by), id: `verified:${id}` } as const
  // Recorded once for each link or login. If that fails, the login still finishes, because the link is used up.
  await audit({ ...event, type: 'email_verification_completed' }).catch((error: unknown) =>
    log('error', 'a verification was not recorded', { error: String(error) }),
  )
  return true
}
