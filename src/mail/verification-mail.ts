import { MAIL_KINDS } from '../contract/mail-kinds.ts'
import type { PendingLogin } from '../store/index.ts'
import { findByName, isUnchanged } from '../flows/account.ts'
import { linkQuery } from '../contract/link-query.ts'
import { isWaitingPage, KEEP_LOGIN_MS } from '../flows/waiting-login.ts'
import { newLinkToken } from './link-tokens.ts'
import type { MailFlow } from './mail-flow.ts'
import { localeOf } from './render.ts'

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
