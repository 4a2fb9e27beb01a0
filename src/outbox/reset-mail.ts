import { MAIL_KINDS, type PasswordLinkKind } from '../ports/mail-kinds.ts'
import { findUser, refusesInvitation } from '../flows/account.ts'
import { newLinkToken } from './link-tokens.ts'
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
  return { ...passwordLinkMail(parts, 'invitation'), refuses: refusesInvitation }
}

/** A link to a form for a password; of each account the newest alone is alive. */
function passwordLinkMail(parts: MailParts, kind: PasswordLinkKind): Pick<MailFlow, 'mint'> {
  const { page, link } = MAIL_KINDS[kind]
  const tokens = parts.store[link.tokens]

  return {
    async mint(job, recipient, settings) {
      const locale = localeOf(parts, job, recipient.user)
      const { carried, client } = await parts.identify(job.carried)
      const now = parts.clock.now()
      const { token, record, told } = newLinkToken(job, recipient, settings[link.lifetime], now)
      // It is not issued after that of a later request.
      if (!(await tokens.issue({ ...record, carried, locale }))) return 'superseded'
      const url = `${parts.oauthUrl}${page}?token=${token}`
      return { url, token: told, clientName: client?.clientName, locale }
    },
  }
}
