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
export const verificationMail: MailFlow = {
  findUser: ({ users }, username) => findByName(users, username),

  refuses: ({ emailVerified }) => (emailVerified ? 'already_verified' : undefined),

  async mint(parts, job, recipient) {
    const { pendingLogins, authorizeSig, loginCodes, store, settings, clock } = parts
    const { user } = recipient
    const { carried, client } = await parts.identify(job.carried)
    const pending = await pendingLoginOf(parts, job, user.id)
    const locale = localeOf(parts, job, user, uiLocalesOf(pending))
    const lifetimeMs = settings().emailVerificationExpiration
    const { token, record, told } = newLinkToken(job, recipient, lifetimeMs, clock.now())
    const purgeAt = new Date(record.expiresAt.getTime() + KEEP_LOGIN_MS)
    if (pending) await pendingLogins.change({ id: pending.id }, { purgeAt })
    // That of a login stays one of a login: it signs nobody in where that is gone.
    const pendingLoginId = job.pendingLoginId ?? pending?.id
    await store.verificationTokens.issue({ ...record, pendingLoginId, carried, locale })
    const signed = { token, carried, authorizeSig: authorizeSig.sign(token, carried) }
    const shown = ({ id, createdAt: at }: PendingLogin) => ({ code: loginCodes.codeOf(id), at })
    return {
      url: `${parts.oauthUrl}${MAIL_KINDS.email_verification.page}?${linkQuery(signed)}`,
      token: told,
      clientName: client?.clientName,
      ...(pending && isOpen(pending, user) && { login: shown(pending) }),
      locale,
    }
  },
}

function pendingLoginOf(
  { pendingLogins }: MailParts,
  { pendingLoginId: id, carried }: MailJob,
  accountId: string,
) {
  return pendingLogins.find(id === undefined ? { accountId, carried } : { id })
}

/** Whether a code can be typed into its page. */
function isOpen(login: PendingLogin, user: User): boolean {
  return isWaitingPage(login) && isStillFor(login, user)
}

function uiLocalesOf(pending: PendingLogin | undefined): string | undefined {
  const uiLocales = pending?.captured.params['ui_locales']
  return typeof uiLocales === 'string' ? uiLocales : undefined
}
