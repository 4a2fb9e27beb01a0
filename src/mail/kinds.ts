import type { SignedOutApps } from '../views/page-locals.ts'
import type { CarriedParameters, MailKind, NoMail, Requester, User } from '../contract/index.ts'
import type { MailJob, MailOutbox, PendingLogin } from '../store/index.ts'
import type { MailParts } from '../jobs/parts.ts'
import { passwordDigest } from '../crypto/password.ts'
import { hashToken, newId, newToken } from '../crypto/token.ts'
import { attemptOf } from '../store/request-order.ts'
import { MAIL_KINDS, type PasswordLinkKind } from '../contract/mail-kinds.ts'
import { findByName, findUser, isUnchanged, whyNoInvitation } from '../flows/account.ts'
import { localeOf } from './render.ts'
import { linkQuery } from '../flows/link.ts'
import { KEEP_LOGIN_MS, isWaitingPage } from '../flows/waiting-login.ts'
import { formQuery } from '../contract/carried-query.ts'
import { keptRequester } from '../jobs/request.ts'

/** What is particular to one kind of mail; looking up, sending and giving up are the same for all. A kind leaves out what it has no need of. */
export interface MailFlow {
  /** Finds whom a typed identifier means. Left out: it is never asked for by one. */
  findUser?(parts: MailParts, identifier: string): Promise<User | 'unknown' | 'ambiguous'>
  /** Why this account gets no such mail. `undefined`: it gets one. */
  refuses?(user: User, parts: MailParts): NoMail | undefined
  /**
   * Makes the link of the mail, and stores the hash of its token. `superseded`: the user has asked for another one since.
   *
   * @param carried - what is genuine of it.
   */
  mint(
    parts: MailParts,
    job: MailJob,
    recipient: Recipient,
    carried: CarriedParameters,
  ): Promise<MailLink | 'superseded'>
}

export interface Recipient {
  user: User
  /** The stored address, never the typed one. */
  email: string
}

/** The link of one mail. The only place where a raw token is (5.5). */
export interface MailLink {
  url: string
  /** `undefined`: it leads to a page that anybody may open. */
  token: { id: string; lifetimeMs: number } | undefined
  /** The login that waits for it. Left out: none does. */
  login?: { code: string; at: Date }
  /** It tells of a password that the host changed. */
  isByHost?: boolean
  /** Left out but of a notice: the apps that the account was signed in to. */
  apps?: SignedOutApps | undefined
  /** The language of the mail, and of the pages that the link opens. */
  locale: string
}

/** A token for the link of a mail, and what is stored of it. */
export function newLinkToken(
  job: MailJob,
  { user, email }: Recipient,
  lifetimeMs: number,
  createdAt: Date,
) {
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

/** The mail with a reset link: (none) → unused, and unused → invalidated, of section 3.1. */
export const resetMail: MailFlow = {
  ...passwordLinkMail('password_reset'),

  findUser: ({ users }, identifier) => findUser(users, identifier),

  refuses({ passwordHash, emailVerified }, { settings }) {
    if (passwordHash === undefined) return 'no_password'
    return settings().resetRequiresVerifiedEmail && !emailVerified ? 'not_verified' : undefined
  },
}

/** The mail with an invitation: the same of section 3.4. */
export const invitationMail: MailFlow = {
  ...passwordLinkMail('invitation'),
  refuses: whyNoInvitation,
}

/** A link to a form for a password; of each account the newest alone is alive. */
function passwordLinkMail(kind: PasswordLinkKind): Pick<MailFlow, 'mint'> {
  const { page, link } = MAIL_KINDS[kind]

  return {
    async mint(parts, job, recipient, carried) {
      const { store, settings, clock } = parts
      const locale = localeOf(parts, job, recipient.user)
      const lifetimeMs = settings()[link.lifetime]
      const { token, record, told } = newLinkToken(job, recipient, lifetimeMs, clock.now())
      // It is not issued after that of a later request.
      const isIssued = await store[link.tokens].issue({ ...record, carried, locale })
      if (!isIssued) return 'superseded'
      const url = `${parts.oauthUrl}${page}?token=${token}`
      return { url, token: told, locale }
    },
  }
}

/** The mail with a verification link: (none) → unused of section 3.2. */
export const verificationMail: MailFlow = {
  findUser: ({ users }, username) => findByName(users, username),

  refuses: ({ emailVerified }) => (emailVerified ? 'already_verified' : undefined),

  async mint(parts, job, recipient, carried) {
    const { pendingLogins, authorizeSig, loginCodes, store, settings, clock } = parts
    const { user } = recipient
    const { pendingLoginId: id } = job
    const pending = await pendingLogins.find(
      id === undefined ? { accountId: user.id, carried: job.carried } : { id },
    )
    const locale = localeOf(parts, job, user, uiLocalesOf(pending))
    const lifetimeMs = settings().emailVerificationExpiration
    const { token, record, told } = newLinkToken(job, recipient, lifetimeMs, clock.now())
    const purgeAt = new Date(record.expiresAt.getTime() + KEEP_LOGIN_MS)
    if (pending) await pendingLogins.change({ id: pending.id }, { purgeAt })
    // That of a login stays one of a login: it signs nobody in where that is gone.
    const pendingLoginId = job.pendingLoginId ?? pending?.id
    await store.verificationTokens.issue({ ...record, pendingLoginId, carried, locale })
    const signed = { token, carried, authorizeSig: authorizeSig.sign(token, carried) }
    // Its page takes a code.
    const isShown = pending && isWaitingPage(pending) && isUnchanged(pending, user)
    return {
      url: `${parts.oauthUrl}${MAIL_KINDS.email_verification.page}?${linkQuery(signed)}`,
      token: told,
      ...(isShown && { login: { code: loginCodes.codeOf(pending.id), at: pending.createdAt } }),
      locale,
    }
  },
}

function uiLocalesOf(pending: PendingLogin | undefined): string | undefined {
  const uiLocales = pending?.captured.params['ui_locales']
  return typeof uiLocales === 'string' ? uiLocales : undefined
}

/** The owner wants to know of a change by somebody else, however late. */
const JOB_LIFE_MS = 24 * 3_600_000

/** The id of a change begins with it where the host made it, and no link. */
export const BY_HOST = 'host:'

/** A password that was changed. */
export interface PasswordChange {
  /** Of the end of its sessions: of each change another one. */
  id: string
  accountId: string
  /** The address to tell. A thief may have changed that of the account by the time that the mail leaves. */
  email: string
  /** The account only claims that address. */
  isClaim?: boolean | undefined
  carried: CarriedParameters
  /** Who changed it. */
  requester: Requester
}

/** Before the id of the end, which the apps are found by. */
const OF_END = 'changed:'

/** Asks for the mail that tells of a changed password. Repeated, it asks once. */
export function requestNotice(
  outbox: Pick<MailOutbox, 'add'>,
  { id, accountId, email, isClaim, carried, requester }: PasswordChange,
  now: Date,
): Promise<void> {
  return outbox.add({
    id: `${OF_END}${id}`,
    kind: 'password_changed',
    isOfForm: true,
    identifier: undefined,
    accountId,
    pendingLoginId: undefined,
    sendTo: email,
    ...(isClaim && { isClaim }),
    carried,
    requester: keptRequester(requester),
    notBefore: now,
    expiresAt: new Date(now.getTime() + JOB_LIFE_MS),
  })
}

/** The mail that tells of a changed password. Its link leads to the forgot-password form, and holds no secret. */
export const noticeMail: MailFlow = {
  async mint(parts, job, { user }) {
    const locale = localeOf(parts, job, user)
    // A stranger may have chosen what the reset carried.
    const query = formQuery({}, locale)
    const endId = job.id.slice(OF_END.length)
    return {
      url: `${parts.oauthUrl}${MAIL_KINDS.password_changed.page}${query}`,
      token: undefined,
      apps: await parts.appsOf(user.id, endId),
      isByHost: endId.startsWith(BY_HOST),
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
