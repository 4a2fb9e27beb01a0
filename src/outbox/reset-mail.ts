import { passwordDigest } from '../crypto/password.ts'
import { hashToken, newId, newToken } from '../crypto/token.ts'
import { MAIL_KINDS, type PasswordLinkKind } from '../ports/mail-kinds.ts'
import { attemptOf, orderOf } from '../ports/request-order.ts'
import { findUser, refusesInvitation } from '../flows/account.ts'
import { hasUsableLink } from '../flows/link.ts'
import type { MailFlow } from './mail-flow.ts'
import type { MailParts } from './parts.ts'
import { localeOf } from './render.ts'

/** The mail with a reset link: (none) → unused, and unused → invalidated, of section 3.1. */
export function createResetMail(parts: MailParts): MailFlow {
  const { users, settings } = parts
  return {
    ...passwordLinkMail(parts, 'password_reset'),

    findUser: (identifier) => findUser(users, identifier),

    refuses({ passwordHash, emailVerified }) {
      if (passwordHash === undefined) return 'no_password'
      return settings().resetRequiresVerifiedEmail && !emailVerified ? 'not_verified' : undefined
    },
  }
}

/** The mail with an invitation: the same of section 3.4. */
export function createInvitationMail(parts: MailParts): MailFlow {
  return {
    ...passwordLinkMail(parts, 'invitation'),
    refuses: refusesInvitation,
  }
}

/** A link to a form for a password; of each account the newest alone is alive. */
function passwordLinkMail(
  parts: MailParts,
  kind: PasswordLinkKind,
): Omit<MailFlow, 'findUser' | 'refuses'> {
  const { page, link } = MAIL_KINDS[kind]
  const tokens = parts.store[link.tokens]
  const { now } = parts.clock

  return {
    hasUsable: (user) => hasUsableLink(tokens, user, now()),

    onRequest: (job, user) => tokens.revoke({ userId: user.id, upTo: orderOf(job) }, now()),

    async mint(job, { user, email }, settings) {
      const lifetimeMs = settings[link.lifetime]
      const token = newToken()
      const id = newId()
      const createdAt = now()
      const locale = localeOf(parts, job, user)
      const { carried, client } = await parts.identify(job.carried)
      const isIssued = await tokens.issue({
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
      // It is not issued after that of a later request.
      if (!isIssued) return 'superseded'
      const url = `${parts.oauthUrl}${page}?token=${token}`
      return { url, token: { id, lifetimeMs }, clientName: client?.clientName, locale }
    },

    async revoke({ token }) {
      if (token) await tokens.revoke({ id: token.id }, now())
    },

    abandon: (job, userId) => tokens.revoke({ userId, upTo: attemptOf(job) }, now()),
  }
}
