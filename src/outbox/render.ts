import type { MailJob, OutgoingMail, User } from '../ports/index.ts'
import { MAIL_KINDS } from '../ports/mail-kinds.ts'
import type { Languages } from '../views/index.ts'
import type { MailLink, Recipient } from './mail-flow.ts'
import type { MailParts } from './parts.ts'

/** The mail of one job, as it leaves. */
export function renderMail(
  { views }: MailParts,
  job: MailJob,
  { user, email }: Recipient,
  link: MailLink,
): OutgoingMail {
  const { kind, requester, requestedAt } = job
  const locals = {
    username: user.username,
    link: link.url,
    at: requestedAt,
    ...(link.token && { lifetimeMs: link.token.lifetimeMs }),
    ...(link.clientName !== undefined && { clientName: link.clientName }),
    userAgent: requester.userAgent,
    isByAdmin: requester.isAdmin ?? false,
  }
  const rendered = views.mail(MAIL_KINDS[kind].template, locals, languagesOf(user, link, job))
  return { ...rendered, to: email, kind }
}

/** An admin reads nothing of what is sent. */
function languagesOf(user: User, link: MailLink, { requester }: MailJob): Languages {
  if (requester.isAdmin) return { user: user.locale }
  return {
    asked: requester.uiLocales ?? link.uiLocales,
    user: user.locale,
    accepted: requester.acceptLanguage,
  }
}
