/**
 * What is particular to each kind of mail: who is meant by a typed name, who gets none, and the link. Looking up, sending and giving
 * up are the same for all. Nothing here knows how a mail looks, or how it leaves.
 */
import type { Clock } from '../clock.ts'
import { formQuery } from '../contract/requests.ts'
import type { RequestParameters, MailKind, NoMail, User, UserStore } from '../contract/index.ts'
import {
  MAIL_KINDS,
  type LinkKind,
  type PasswordLinkKind,
  type TokenPart,
} from '../contract/mail-kinds.ts'
import type { AuthorizeSig } from '../crypto/keys.ts'
import type { LoginCodes } from '../crypto/login-code.ts'
import { passwordDigest } from '../crypto/password.ts'
import { hashToken, newId, newToken } from '../crypto/token.ts'
import { findByName, findUser, isUnchanged, whyNoInvitation } from '../flows/account.ts'
import { linkQuery } from '../contract/link-query.ts'
import { isWaitingPage, KEEP_LOGIN_MS } from '../flows/waiting-login.ts'
import { endOfNotice } from '../jobs/request.ts'
import type { Settings } from '../settings/table.ts'
import type { AccountFlowsStore, MailJob, PendingLoginStore } from '../store/index.ts'
import { attemptOf } from '../store/outbox-record.ts'
import type { MailLocals, SignedOutApps, Views } from '../views/index.ts'

export interface LinkParts {
  store: Pick<AccountFlowsStore, TokenPart>
  pendingLogins: Pick<PendingLoginStore, 'find' | 'change'>
  authorizeSig: AuthorizeSig
  loginCodes: LoginCodes
  /** The apps that an end of sessions signed an account out of. `undefined`: they are not known. */
  appsOf(accountId: string, endId: string): Promise<SignedOutApps | undefined>
  /** Where links start: base URL and OAuth path, never anything from a request. */
  oauthUrl: string
  views: Pick<Views, 'localeFor'>
  settings(): Settings
  clock: Clock
}

/** A kind leaves out what it has no need of. */
interface MailFlow {
  /** Finds whom a typed identifier means. Left out: it is never asked for by one. */
  findUser?(users: UserStore, identifier: string): Promise<User | 'unknown' | 'ambiguous'>
  /** Why this account gets no such mail. `undefined`: it gets one. */
  refuses?(user: User, settings: Settings): NoMail | undefined
  /**
   * Makes the link of the mail, and stores the hash of its token. `superseded`: the user has asked for another one since.
   *
   * @param parameters - what is genuine of it.
   */
  mint(
    parts: LinkParts,
    job: MailJob,
    recipient: Recipient,
    parameters: RequestParameters,
  ): Promise<MailLink | 'superseded'>
}

export interface Recipient {
  user: User
  /** The stored address, never the typed one. */
  email: string
}

/** The link of one mail, and what the mail says of it. The only place where a raw token is (5.5). */
export interface MailLink extends Pick<
  MailLocals,
  'link' | 'lifetimeMs' | 'login' | 'apps' | 'isByHost'
> {
  /** Of its token. Left out: it leads to a page that anybody may open. */
  id?: string
  /** The language of the mail, and of the pages that the link opens. */
  locale: string
}

/** The mail with a reset link: (none) → unused, and unused → invalidated, of section 3.1. */
const resetMail: MailFlow = {
  ...passwordLinkMail('password_reset'),
  findUser,
  refuses({ passwordHash, emailVerified }, { resetRequiresVerifiedEmail }) {
    if (passwordHash === undefined) return 'no_password'
    return resetRequiresVerifiedEmail && !emailVerified ? 'not_verified' : undefined
  },
}

/** The mail with an invitation: the same of section 3.4. */
const invitationMail: MailFlow = {
  ...passwordLinkMail('invitation'),
  refuses: whyNoInvitation,
}

/** A link to a form for a password; of each account the newest alone is alive. */
function passwordLinkMail(kind: PasswordLinkKind): Pick<MailFlow, 'mint'> {
  const { page, link } = MAIL_KINDS[kind]

  return {
    async mint(parts, job, recipient, parameters) {
      const locale = localeOf(parts, job, recipient.user)
      const { token, record, told } = newLinkToken(parts, kind, job, recipient)
      // It is not issued after that of a later request.
      const isIssued = await parts.store[link.tokens].issue({ ...record, parameters, locale })
      if (!isIssued) return 'superseded'
      return { ...told, link: `${parts.oauthUrl}${page}?token=${token}`, locale }
    },
  }
}

/** The mail with a verification link: (none) → unused of section 3.2. */
const verificationMail: MailFlow = {
  findUser: findByName,

  refuses: ({ emailVerified }) => (emailVerified ? 'already_verified' : undefined),

  async mint(parts, job, recipient, parameters) {
    const { pendingLogins, authorizeSig, loginCodes, store } = parts
    const { user } = recipient
    const { pendingLoginId: id } = job
    const pending = await pendingLogins.find(
      id === undefined ? { accountId: user.id, parameters: job.parameters } : { id },
    )
    const uiLocales = pending?.captured.params['ui_locales']
    const locale = localeOf(parts, job, user, uiLocales)
    const { token, record, told } = newLinkToken(parts, 'email_verification', job, recipient)
    const purgeAt = new Date(record.expiresAt.getTime() + KEEP_LOGIN_MS)
    if (pending) await pendingLogins.change({ id: pending.id }, { purgeAt })
    // That of a login stays one of a login: it signs nobody in where that is gone.
    const pendingLoginId = job.pendingLoginId ?? pending?.id
    await store.verificationTokens.issue({ ...record, pendingLoginId, parameters, locale })
    const signed = { token, parameters, authorizeSig: authorizeSig.sign(token, parameters) }
    // Its page takes a code.
    const isShown = pending && isWaitingPage(pending) && isUnchanged(pending, user)
    return {
      ...told,
      link: `${parts.oauthUrl}${MAIL_KINDS.email_verification.page}?${linkQuery(signed)}`,
      ...(isShown && { login: { code: loginCodes.codeOf(pending.id), at: pending.createdAt } }),
      locale,
    }
  },
}

/** The mail that tells of a changed password. Its link leads to the forgot-password form, and holds no secret. */
const noticeMail: MailFlow = {
  async mint(parts, job, { user }) {
    const locale = localeOf(parts, job, user)
    const { endId, isByHost } = endOfNotice(job)
    // A stranger may have chosen what the reset carried.
    const query = formQuery({}, locale)
    return {
      link: `${parts.oauthUrl}${MAIL_KINDS.password_changed.page}${query}`,
      apps: await parts.appsOf(user.id, endId),
      isByHost,
      locale,
    }
  },
}

/** What each kind of `contract/mail-kinds.ts` does. */
export const MAIL_FLOWS: Record<MailKind, MailFlow> = {
  password_reset: resetMail,
  email_verification: verificationMail,
  invitation: invitationMail,
  password_changed: noticeMail,
}

/** A token for the link of a mail, what is stored of it, and what the mail tells of it. */
function newLinkToken(
  { settings, clock }: LinkParts,
  kind: LinkKind,
  job: MailJob,
  { user, email }: Recipient,
) {
  const lifetimeMs = settings()[MAIL_KINDS[kind].link.lifetime]
  const createdAt = clock.now()
  const token = newToken()
  const id = newId()
  const record = {
    id,
    tokenHash: hashToken(token),
    userId: user.id,
    email,
    passwordDigest: passwordDigest(user.passwordHash),
    ...attemptOf(job),
    createdAt,
    expiresAt: new Date(createdAt.getTime() + lifetimeMs),
  }
  return { token, record, told: { id, lifetimeMs } }
}

/**
 * The language of a mail. An admin reads nothing of what is sent.
 *
 * @param uiLocales - of the login that waits for it.
 */
function localeOf(
  { views }: LinkParts,
  { requester }: MailJob,
  { locale: user }: User,
  uiLocales?: unknown,
) {
  if (requester.isAdmin) return views.localeFor({ user })
  const asked = requester.uiLocales ?? (typeof uiLocales === 'string' ? uiLocales : undefined)
  return views.localeFor({ asked, user, accepted: requester.acceptLanguage })
}
