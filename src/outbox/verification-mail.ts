import type { User } from '../ports/index.ts'
import { MAIL_KINDS } from '../ports/mail-kinds.ts'
import type { MailJob, PendingLogin } from '../records/index.ts'
import { findByName, isStillFor } from '../flows/account.ts'
import { linkQuery } from '../flows/link.ts'
import { isWaitingPage, KEEP_LOGIN_MS } from '../flows/waiting-login.ts'
import { newLinkToken } from './link-tokens.ts'
import type { MailFlow } from './mail-flow.ts'
import type { MailParts } from './parts.ts'
import { localeOf } from './render.ts'

/** The mail with a verification link: (none) → unused of section 3.2. */
export function createVerificationMail(parts: MailParts): MailFlow {
  const { users, pendingLogins, authorizeSig, loginCodes } = parts

  const shown = ({ id, createdAt: at }: PendingLogin) => ({ code: loginCodes.codeOf(id), at })

  const pendingLoginOf = ({ pendingLoginId: id, carried }: MailJob, accountId: string) =>
    pendingLogins.find(id === undefined ? { accountId, carried } : { id })

  return {
    findUser: (username) => findByName(users, username),

    refuses: ({ emailVerified }) => (emailVerified ? 'already_verified' : undefined),

    async mint(job, recipient, { emailVerificationExpiration: lifetimeMs }) {
      const { user } = recipient
      const { carried, client } = await parts.identify(job.carried)
      const pending = await pendingLoginOf(job, user.id)
      const locale = localeOf(parts, job, user, uiLocalesOf(pending))
      const now = parts.clock.now()
      const { token, record, told } = newLinkToken(job, recipient, lifetimeMs, now)
      const purgeAt = new Date(record.expiresAt.getTime() + KEEP_LOGIN_MS)
      if (pending) await pendingLogins.change({ id: pending.id }, { purgeAt })
      // That of a login stays one of a login: it signs nobody in where that is gone.
      const pendingLoginId = job.pendingLoginId ?? pending?.id
      await parts.store.verificationTokens.issue({ ...record, pendingLoginId, carried, locale })
      const signed = { token, carried, authorizeSig: authorizeSig.sign(token, carried) }
      return {
        url: `${parts.oauthUrl}${MAIL_KINDS.email_verification.page}?${linkQuery(signed)}`,
        token: told,
        clientName: client?.clientName,
        ...(pending && isOpen(pending, user) && { login: shown(pending) }),
        locale,
      }
    },
  }
}

/** Whether a code can be typed into its page. */
function isOpen(login: PendingLogin, user: User): boolean {
  return isWaitingPage(login) && isStillFor(login, user)
}

function uiLocalesOf(pending: PendingLogin | undefined): string | undefined {
  const uiLocales = pending?.captured.params['ui_locales']
  return typeof uiLocales === 'string' ? uiLocales : undefined
}
