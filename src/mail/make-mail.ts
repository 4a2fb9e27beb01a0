/** Makes a mail: its link with its lifetime, then its text. `MAIL_BEHAVIOUR` has what differs between the kinds of mail. */
import type { MailKind, NoMail, RequestParameters, User, UserStore } from '../contract/index.ts'
import { MAIL_KINDS, type LinkKind, type NewestLinkKind } from '../contract/mail-kinds.ts'
import { formQuery } from '../contract/parameters.ts'
import { isForFirst, passwordDigest, resetDigest } from '../crypto/password.ts'
import { hashToken, newId, newToken } from '../crypto/token.ts'
import { linkQuery } from '../crypto/verification-link.ts'
import {
  answerToReset,
  elsewhereOf,
  findByIdentifier,
  findByName,
  isUnchanged,
  whyNoInvitation,
} from '../flows/account.ts'
import { readNoticeId } from '../flows/request-mail.ts'
import type { MailJob } from '../store/index.ts'
import { KEEP_LOGIN_MS } from '../store/logins.ts'
import { orderOf } from '../store/outbox-record.ts'
import type { MailLocals } from '../views/index.ts'
import type { MailParts } from './parts.ts'
import type { OutgoingMail, Recipient } from './sending.ts'

/** How long "This wasn't me" works (3.6). */
const NOT_ME_MS = 8 * 24 * 3_600_000

interface MailBehaviour {
  /** Left out: this kind is never requested by an identifier. */
  findByIdentifier?(users: UserStore, identifier: string): Promise<User | 'unknown' | 'ambiguous'>
  /** Why this account gets no such mail. `undefined`: it gets one. */
  refuses?(user: User, parts: MailParts): NoMail | undefined
  /** Makes the link with genuine parameters, and stores the hash of its token. `superseded`: the user has asked for another since. */
  makeLink(
    parts: MailParts,
    job: MailJob,
    recipient: Recipient,
    parameters: RequestParameters,
  ): Promise<MailLink | 'superseded'>
}

/** The link of one mail, and what the mail says about it. A raw token exists only here (5.5). */
interface MailLink extends Partial<MailLocals> {
  link: string
  /** The id of its token. Left out: the link leads to a public page, or there is none. */
  id?: string
  /** The language of the mail, and of the pages that the link opens. Left out: no page needs it. */
  locale?: string
}

/** A link of which only the newest of an account is live. */
function makeNewestLink(kind: NewestLinkKind): MailBehaviour['makeLink'] {
  const { page, link } = MAIL_KINDS[kind]
  return async (parts, job, recipient, parameters) => {
    const locale = localeOf(parts, job, recipient.user)
    const { token, record, shown } = newLinkToken(parts, kind, job, recipient)
    // No link is issued if a later request has one.
    const isIssued = await parts.store[link.tokens].issue({ ...record, parameters, locale })
    if (!isIssued) return 'superseded'
    const made = `${parts.oauthUrl}${page}?token=${token}`
    return { ...shown, link: made, isFirst: isForFirst(record), locale }
  }
}

const makeResetLink = makeNewestLink('password_reset')

/** The behaviour of each kind in `contract/mail-kinds.ts`. */
export const MAIL_BEHAVIOUR: Record<MailKind, MailBehaviour> = {
  /** It makes the transitions (none) → unused, and unused → invalidated, of section 3.1. */
  password_reset: {
    findByIdentifier,
    refuses(user, parts) {
      const answer = answerToReset(user, parts)
      return answer === 'link' || answer === 'elsewhere' ? undefined : answer
    },
    async makeLink(parts, job, recipient, parameters) {
      const { user } = recipient
      if (answerToReset(user, parts) !== 'elsewhere')
        return makeResetLink(parts, job, recipient, parameters)
      return { link: '', signsInElsewhere: elsewhereOf(user) }
    },
  },

  /** It makes the transition (none) → unused of section 3.2. */
  email_verification: {
    findByIdentifier: findByName,

    refuses: ({ emailVerified }) => (emailVerified ? 'already_verified' : undefined),

    async makeLink(parts, job, recipient, parameters) {
      const { pendingLogins, verificationTokens } = parts.store
      const { authorizeSig, loginCodes } = parts.keyed
      const { user } = recipient
      const { pendingLoginId: id } = job
      const pending = await pendingLogins.find(
        id === undefined ? { accountId: user.id, parameters: job.parameters } : { id },
      )
      const locale = localeOf(parts, job, user, pending?.captured.params['ui_locales'])
      const { token, record, shown } = newLinkToken(parts, 'email_verification', job, recipient)
      const purgeAt = new Date(record.expiresAt.getTime() + KEEP_LOGIN_MS)
      // A login with another address that is not awaited any more is not prolonged: the address would be awaited again.
      const own = pending?.other ? undefined : pending?.id
      // Nor does a request by name prolong the wait for another address: a stranger could, and no reset is mailed meanwhile.
      const other = job.pendingLoginId && recipient.awaited?.loginId
      for (const waiting of new Set([own, other]))
        if (waiting) await pendingLogins.change({ id: waiting }, { purgeAt })
      // A link that was made for a login stays bound to it. If that login is gone, the link signs no user in.
      const pendingLoginId = job.pendingLoginId ?? pending?.id
      await verificationTokens.issue({ ...record, pendingLoginId, parameters, locale })
      const signed = { token, parameters, authorizeSig: authorizeSig.sign(token, parameters) }
      const waits = pending && !pending.continuedAt && isUnchanged(pending, user)
      // The mail shows a code only if the page that waits accepts one.
      const code = waits && loginCodes.codeOf(pending.waitId, recipient.awaited?.id)
      return {
        ...shown,
        link: `${parts.oauthUrl}${MAIL_KINDS.email_verification.page}?${linkQuery(signed)}`,
        login: code ? { code, at: pending.createdAt } : undefined,
        isEntered: !waits,
        locale,
      }
    },
  },

  /** It makes the same transitions of section 3.4. */
  invitation: { makeLink: makeNewestLink('invitation'), refuses: whyNoInvitation },

  /** The notice of a changed password. Its link leads to the forgot-password form, and holds no secret. */
  password_changed: {
    async makeLink(parts, job, { user }) {
      const locale = localeOf(parts, job, user)
      const { endId, isByHost, isFirst } = readNoticeId(job)
      // A stranger may have chosen the parameters of the reset, so the link leaves them out.
      const link = `${parts.oauthUrl}${MAIL_KINDS.password_changed.page}${formQuery({}, locale)}`
      const apps = await parts.notifications.appsOf(user.id, endId)
      return { link, apps, isByHost, isFirst, locale }
    },
  },

  /** The notice to the address that the account had. It leads nowhere. */
  email_changed: { makeLink: async () => ({ link: '' }) },
}

/** Writes the text; beside a link, with a new token for "This wasn't me" at each attempt. The words are in `views/mails.ts`. */
export async function writeMail(
  parts: MailParts,
  job: MailJob,
  recipient: Recipient,
  { locale = localeOf(parts, job, recipient.user), ...shown }: Omit<MailLink, 'id'>,
): Promise<OutgoingMail> {
  const { views, store, oauthUrl, clock } = parts
  const { kind, requester, requestedAt } = job
  const { user, email, awaited } = recipient
  const token = newToken()
  const now = clock.now()
  const purgeAt = new Date(now.getTime() + NOT_ME_MS)
  const record = { ...mailed(job, recipient, now), id: hashToken(token), kind, locale, purgeAt }
  // A mail without a link has nothing to take back.
  if (shown.link) await store.notMeTokens.issue(record)
  const locals = {
    ...shown,
    username: user.username,
    notMe: shown.link && `${oauthUrl}/not-me?token=${token}`,
    at: requestedAt,
    userAgent: requester.userAgent,
    isByAdmin: requester.isAdmin ?? false,
  }
  const template = shown.signsInElsewhere ? 'signs-in-elsewhere' : MAIL_KINDS[kind].template
  const rendered = views.mail(template, locals, { asked: locale })
  return { ...rendered, to: awaited?.email ?? email, kind }
}

/** What the records of both tokens of a mail hold: of an awaited address only the id. */
const mailed = (job: MailJob, { user, email, awaited }: Recipient, createdAt: Date) => ({
  userId: user.id,
  email: awaited ? '' : email,
  addressId: awaited?.id,
  ...orderOf(job, job.attempts),
  createdAt,
})

/** Makes a token, the record of it, and what the mail says about it. */
function newLinkToken(parts: MailParts, kind: LinkKind, job: MailJob, recipient: Recipient) {
  const { settings, clock } = parts
  const lifetimeMs = settings()[MAIL_KINDS[kind].link.lifetime]
  const now = clock.now()
  const token = newToken()
  const digestOf = kind === 'password_reset' ? resetDigest : passwordDigest
  const record = {
    ...mailed(job, recipient, now),
    id: newId(),
    tokenHash: hashToken(token),
    passwordDigest: digestOf(recipient.user.passwordHash),
    expiresAt: new Date(now.getTime() + lifetimeMs),
  }
  return { token, record, shown: { id: record.id, lifetimeMs } }
}

/** @param uiLocales - of the login that waits for the mail. */
function localeOf({ views }: MailParts, { requester }: MailJob, user: User, uiLocales?: unknown) {
  // The request of an admin does not show the reader's language.
  if (requester.isAdmin) return views.localeFor({ user: user.locale })
  const asked = requester.uiLocales ?? (typeof uiLocales === 'string' ? uiLocales : undefined)
  return views.localeFor({ asked, user: user.locale, accepted: requester.acceptLanguage })
}
