import type { MailJob, OutgoingMail, User } from '../ports/index.ts'
import { MAIL_KINDS } from '../ports/mail-kinds.ts'
import type { MailLink, Recipient } from './mail-flow.ts'
import type { MailParts } from './parts.ts'

/** The mail of one job, as it leaves. */
export function renderMail(
  { views, notMeTokens, oauthUrl, clock }: MailParts,
  job: MailJob,
  { user, email }: Recipient,
  link: MailLink,
): OutgoingMail {
  const { kind, requester, requestedAt, passwordDigest } = job
  const id = link.token?.id ?? job.id
  const { locale, token: { lifetimeMs } = {} } = link
  const named = { kind, accountId: user.id, id, locale, passwordDigest, email, lifetimeMs }
  const locals = {
    username: user.username,
    link: link.url,
    notMe: `${oauthUrl}/not-me?token=${notMeTokens.seal(named, clock.now())}`,
    at: requestedAt,
    ...(link.token && { lifetimeMs: link.token.lifetimeMs }),
    ...(link.clientName !== undefined && { clientName: link.clientName }),
    apps: link.apps,
    userAgent: requester.userAgent,
    isByAdmin: requester.isAdmin ?? false,
    ...(link.isByHost && { isByHost: true }),
  }
  const rendered = views.mail(MAIL_KINDS[kind].template, locals, { asked: link.locale })
  return { ...rendered, to: email, kind }
}

/**
 * The language of a mail. An admin reads nothing of what is sent.
 *
 * @param uiLocales - of the login that waits for it.
 */
export function localeOf(
  { views }: MailParts,
  { requester }: MailJob,
  { locale: user }: User,
  uiLocales?: string,
): string {
  if (requester.isAdmin) return views.localeFor({ user })
  const asked = requester.uiLocales ?? uiLocales
  return views.localeFor({ asked, user, accepted: requester.acceptLanguage })
}
