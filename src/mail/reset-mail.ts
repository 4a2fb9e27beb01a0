import { MAIL_KINDS, type PasswordLinkKind } from '../contract/mail-kinds.ts'
import { findUser, whyNoInvitation } from '../flows/account.ts'
import { newLinkToken } from './link-tokens.ts'
import type { MailFlow } from './mail-flow.ts'
import { localeOf } from './render.ts'

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
