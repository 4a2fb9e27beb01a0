import type { IdentifiedClient, User } from '../contract/index.ts'
import { hashToken, newToken } from '../crypto/token.ts'
import { MAIL_KINDS } from '../contract/mail-kinds.ts'
import { attemptOf } from '../store/outbox-record.ts'
import type { MailJob } from '../store/index.ts'
import type { MailLink, Recipient } from './mail-flow.ts'
import type { MailParts } from '../jobs/parts.ts'
import type { OutgoingMail } from './sending.ts'

/** As long as a notice may wait to be sent, and a week. */
const NOT_ME_MS = 8 * 24 * 3_600_000

/** The mail of one job, as it leaves; the token of its "This wasn't me" is made for this attempt. */
export async function renderMail(
  { views, store, oauthUrl, clock }: MailParts,
  job: MailJob,
  { user, email }: Recipient,
  link: MailLink,
  client: IdentifiedClient['client'],
): Promise<OutgoingMail> {
  const { kind, requester, requestedAt } = job
  const token = newToken()
  const createdAt = clock.now()
  await store.notMeTokens.issue({
    id: hashToken(token),
    kind,
    userId: user.id,
    linkId: link.token?.id,
    email,
    locale: link.locale,
    ...attemptOf(job),
    createdAt,
    purgeAt: new Date(createdAt.getTime() + NOT_ME_MS),
  })
  const locals = {
    username: user.username,
    link: link.url,
    notMe: `${oauthUrl}/not-me?token=${token}`,
    at: requestedAt,
    ...(link.token && { lifetimeMs: link.token.lifetimeMs }),
    login: link.login,
    ...(client && { clientName: client.clientName }),
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
