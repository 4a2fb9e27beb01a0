import { passwordDigest } from '../crypto/password.ts'
import { hashToken, newId, newToken } from '../crypto/token.ts'
import type { User } from '../ports/index.ts'
import { MAIL_KINDS } from '../ports/mail-kinds.ts'
import { attemptOf, isLater } from '../ports/request-order.ts'
import type { MailJob, PendingLogin } from '../records/index.ts'
import { findByName, isUnchanged } from '../flows/account.ts'
import { isWaitingPage, KEEP_LOGIN_MS } from '../flows/waiting-login.ts'
import type { MailFlow } from './mail-flow.ts'
import type { MailParts } from './parts.ts'
import { localeOf } from './render.ts'
import { hasUsableLink, linkQuery, MAX_LINKS } from '../flows/link.ts'

/** The mail with a verification link: (none) → unused of section 3.2. */
export function createVerificationMail(parts: MailParts): MailFlow {
  const { users, pendingLogins, authorizeSig, loginCodes } = parts
  const { verificationTokens } = parts.store
  const { now } = parts.clock

  const shown = ({ id, createdAt: at }: PendingLogin) => ({ code: loginCodes.codeOf(id), at })

  const pendingLoginOf = ({ pendingLoginId: id, carried }: MailJob, accountId: string) =>
    pendingLogins.find(id === undefined ? { accountId, carried } : { id })

  return {
    findUser: (username) => findByName(users, username),

    refuses: ({ emailVerified }) => (emailVerified ? 'already_verified' : undefined),

    hasUsable: (user, login) => hasUsableLink(verificationTokens, user, now(), login),

    async mint(job, { user, email }, { emailVerificationExpiration: lifetimeMs }) {
      const token = newToken()
      const id = newId()
      const createdAt = now()
      const expiresAt = new Date(createdAt.getTime() + lifetimeMs)
      const { carried, client } = await parts.identify(job.carried)
      const pending = await pendingLoginOf(job, user.id)
      const locale = localeOf(parts, job, user, uiLocalesOf(pending))
      const purgeAt = new Date(expiresAt.getTime() + KEEP_LOGIN_MS)
      if (pending) await pendingLogins.change({ id: pending.id }, { purgeAt })
      await verificationTokens.issue({
        id,
        tokenHash: hashToken(token),
        userId: user.id,
        email,
        passwordDigest: passwordDigest(user.passwordHash),
        // That of a login stays one of a login: it signs nobody in where that is gone.
        pendingLoginId: job.pendingLoginId ?? pending?.id,
        carried,
        locale,
        ...attemptOf(job),
        createdAt,
        expiresAt,
      })
      const signed = { token, carried, authorizeSig: authorizeSig.sign(token, carried) }
      return {
        url: `${parts.oauthUrl}${MAIL_KINDS.email_verification.page}?${linkQuery(signed)}`,
        token: { id, lifetimeMs },
        clientName: client?.clientName,
        ...(pending && isOpen(pending, user) && { login: shown(pending) }),
        locale,
      }
    },

    isServedLater: async (job, user) =>
      (await verificationTokens.ofUser(user.id, MAX_LINKS)).some(
        (token) => token.pendingLoginId === job.pendingLoginId && isLater(token, attemptOf(job)),
      ),

    async revoke({ token }) {
      if (token) await verificationTokens.revoke({ id: token.id }, now())
    },

    abandon: (job, userId) => verificationTokens.revoke({ userId, upTo: attemptOf(job) }, now()),
  }
}

/** Whether a code can be typed into its page. */
function isOpen(login: PendingLogin, user: User): boolean {
  return isWaitingPage(login) && isUnchanged(login, user)
}

function uiLocalesOf(pending: PendingLogin | undefined): string | undefined {
  const uiLocales = pending?.captured.params['ui_locales']
  return typeof uiLocales === 'string' ? uiLocales : undefined
}
