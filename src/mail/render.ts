/** Makes mails: first the link, then the text. */
import type { RequestParameters, IdentifiedClient } from '../contract/index.ts'
import type { OutgoingMail } from './sending.ts'
import { MAIL_KINDS, tokensOf } from '../contract/mail-kinds.ts'
import { hashToken, newToken } from '../crypto/token.ts'
import type { AccountFlowsStore, MailJob } from '../store/index.ts'
import { attemptOf } from '../store/outbox-record.ts'
import type { Views } from '../views/index.ts'
import { MAIL_FLOWS, type LinkParts, type MailLink, type Recipient } from './links.ts'

/** The longest time that a notice may wait to be sent, plus a week. */
const NOT_ME_MS = 8 * 24 * 3_600_000

interface RenderParts extends LinkParts {
  store: LinkParts['store'] & Pick<AccountFlowsStore, 'notMeTokens'>
  views: Pick<Views, 'localeFor' | 'mail'>
}

interface MailMakerParts extends RenderParts {
  /** Drops parameters that do not belong to a registered client and its redirect URI, and names that client. */
  identify(parameters: RequestParameters): Promise<IdentifiedClient>
}

export type MakeMail = ReturnType<typeof createMakeMail>

export function createMakeMail(parts: MailMakerParts) {
  const { store, identify, clock } = parts

  /** Makes the link of a mail. `superseded`: the user has asked for another one since. */
  return async (job: MailJob, recipient: Recipient) => {
    const { parameters, client } = await identify(job.parameters)
    const link = await MAIL_FLOWS[job.kind].mint(parts, job, recipient, parameters)
    if (link === 'superseded') return link
    return {
      /** Makes the finished mail. */
      render: () => renderMail(parts, job, recipient, link, client),

      /** Voids the link of a mail that does not leave. */
      async voidLink() {
        const { id } = link
        if (id !== undefined) await tokensOf(store, job.kind)?.revoke({ id }, clock.now())
      },
    }
  }
}

// Each attempt makes a new token for "This wasn't me".
async function renderMail(
  { views, store, oauthUrl, clock }: RenderParts,
  job: MailJob,
  { user, email }: Recipient,
  { id: linkId, locale, ...told }: MailLink,
  client: IdentifiedClient['client'],
): Promise<OutgoingMail> {
  const { kind, requester, requestedAt } = job
  const token = newToken()
  const createdAt = clock.now()
  await store.notMeTokens.issue({
    id: hashToken(token),
    kind,
    userId: user.id,
    linkId,
    email,
    locale,
    ...attemptOf(job),
    createdAt,
    purgeAt: new Date(createdAt.getTime() + NOT_ME_MS),
  })
  const locals = {
    ...told,
    ...(client && { clientName: client.clientName }),
    username: user.username,
    notMe: `${oauthUrl}/not-me?token=${token}`,
    at: requestedAt,
    userAgent: requester.userAgent,
    isByAdmin: requester.isAdmin ?? false,
  }
  const rendered = views.mail(MAIL_KINDS[kind].template, locals, { asked: locale })
  return { ...rendered, to: email, kind }
}
