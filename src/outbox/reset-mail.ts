import { passwordDigest } from '../crypto/password.ts'
import { hashToken, newId, newToken } from '../crypto/token.ts'
import { MAIL_KINDS } from '../ports/mail-kinds.ts'
import { attemptOf, orderOf } from '../ports/request-order.ts'
import { findUser } from '../flows/account.ts'
import { hasUsableLink } from '../flows/link.ts'
import type { MailFlow } from './mail-flow.ts'
import type { MailParts } from './parts.ts'
import { localeOf } from './render.ts'

/** The mail with a reset link: (none) → unused, and unused → invalidated, of section 3.1. */
export function createResetMail(parts: MailParts): MailFlow {
  const {
    users,
    settings,
    store: { resetTokens },
    clock: { now },
  } = parts

  return {
    findUser: (identifier) => findUser(users, identifier),

    refuses({ passwordHash, emailVerified }) {
      if (passwordHash === undefined) return 'no_password'
      return settings().resetRequiresVerifiedEmail && !emailVerified ? 'not_verified' : undefined
    },

    hasUsable: (user) => hasUsableLink(resetTokens, user, now()),

    onRequest: (job, user) => resetTokens.revoke({ userId: user.id, upTo: orderOf(job) }, now()),

    async mint(job, { user, email }, { passwordResetExpiration: lifetimeMs }) {
      const token = newToken()
      const id = newId()
      const createdAt = now()
      const locale = localeOf(parts, job, user)
      const { carried, client } = await parts.identify(job.carried)
      const isIssued = await resetTokens.issue({
        id,
        tokenHash: hashToken(token),
        userId: user.id,
        email,
        passwordDigest: passwordDigest(user.passwordHash),
        carried,
        locale,
        ...attemptOf(job),
        createdAt,
        expiresAt: new Date(createdAt.getTime() + lifetimeMs),
      })
      if (!isIssued) return 'superseded'
      const url = `${parts.oauthUrl}${MAIL_KINDS.password_reset.page}?token=${token}`
      return { url, token: { id, lifetimeMs }, clientName: client?.clientName, locale }
    },

    // A token is not issued after that of a later request.
    isServedLater: async () => false,

    async revoke({ token }) {
      if (token) await resetTokens.revoke({ id: token.id }, now())
    },

    abandon: (job, userId) => resetTokens.revoke({ userId, upTo: attemptOf(job) }, now()),
  }
}
