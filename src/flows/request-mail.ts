/** Where a mail is requested: each request is a job, which a worker of `mail/` takes. */
import { idOf, newId } from '../crypto/token.ts'
import { askedTags, keptTags } from '../views/languages.ts'
import { MAIL_KINDS, type LinkKind } from '../contract/mail-kinds.ts'
import { defined, WEEK_MS } from '../store/kind.ts'
import type { NewMailJob } from '../store/index.ts'
import type { FlowParts } from './parts.ts'

type RequestParts = Pick<FlowParts, 'mailQueue' | 'settings' | 'clock'>

/** No username or address is longer (RFC 5321, 4.5.3.1.3). A longer text is never looked up. */
export const MAX_IDENTIFIER_LENGTH = 254

/** The owner wants to know of a change by a stranger, even late. Longer than a limit of notices delays one. */
export const NOTICE_LIFE_MS = 25 * 3_600_000

/** The same for all requests, so that jobs become due in the order of the requests. */
const DUE_AFTER_MS = 50
const MIN_JOB_LIFE_MS = 3_600_000

export interface MailRequest extends Pick<
  NewMailJob,
  'identifier' | 'accountId' | 'pendingLoginId' | 'parameters' | 'requester'
> {
  /** The id of the form that asks. The same form sent again is the same request. `undefined`: each call is a new request. */
  form?: string | undefined
}

/**
 * Writes the job of a mail: one write, the same for every account, with no user look-up. A worker takes it a short time later, so that its
 * work does not slow down the next request. Once its link would be dead, the mail is of no use. Returns the id of the job.
 */
export async function requestMail(
  parts: RequestParts,
  kind: LinkKind,
  { form, ...request }: MailRequest,
): Promise<string> {
  const { settings, clock } = parts
  const { identifier, accountId, pendingLoginId } = request
  const week = Math.floor(clock.now().getTime() / WEEK_MS)
  // The id also covers the account that the form asks for, so one user's form cannot hold back another user's mail. It stays taken for a
  // week, so it covers the week too.
  const idOfForm = form && idOf([form, kind, identifier, accountId, pendingLoginId, week])
  const id = idOfForm ?? newId()
  const lifetimeMs = settings()[MAIL_KINDS[kind].link.lifetime]
  const job = {
    ...request,
    kind,
    // One more character shows that the text was too long. It still becomes a job like the others.
    identifier: identifier?.slice(0, MAX_IDENTIFIER_LENGTH + 1),
    id,
    ...(form !== undefined && { keepsId: true }),
  }
  await addJob(parts, job, DUE_AFTER_MS, Math.max(lifetimeMs, MIN_JOB_LIFE_MS))
  return id
}

type Notice = Pick<NewMailJob, 'id' | 'accountId' | 'isUnverified' | 'parameters' | 'requester'> & {
  /** The address of the notice. A thief may have changed the account's address by the time that the mail leaves. */
  sendTo: string
}

/** The id of a change begins with this if the host made it, without a link. */
export const BY_HOST = 'host:'

const OF_FIRST = 'first:'

/**
 * Requests the mail that reports a changed password, by the id of the end of its sessions. `isFirst`: there was no password before.
 * Repeated, it requests one mail.
 */
export function requestPasswordNotice(
  parts: RequestParts,
  { id, isFirst, isUnverified, ...change }: Notice & { isFirst?: boolean },
) {
  const once = {
    id: `${isFirst ? OF_FIRST : 'changed:'}${id}`,
    keepsId: true,
    ...(isUnverified && { isUnverified }),
  }
  return requestNotice(parts, { ...change, ...once, kind: 'password_changed' })
}

/** The notice goes to `sendTo`, whatever the account's address is by then. */
export const requestNotice = (
  parts: RequestParts,
  notice: Notice & Pick<NewMailJob, 'kind' | 'keepsId'>,
) => addJob(parts, notice, 0, NOTICE_LIFE_MS)

/** What a notice reports. Its id is `changed:` or `first:`, then the id of the end, by which the signed-out apps are found. */
export function readNoticeId({ id }: { id: string }) {
  const endId = id.slice(id.indexOf(':') + 1)
  return { endId, isByHost: endId.startsWith(BY_HOST), isFirst: id.startsWith(OF_FIRST) }
}

/** Keeps only the tags of `uiLocales`: strangers may have sent any text. Those of the header are kept where it is read. */
function addJob(
  { mailQueue, clock }: RequestParts,
  job: Omit<NewMailJob, 'notBefore' | 'expiresAt'>,
  dueAfterMs: number,
  lifeMs: number,
): Promise<void> {
  const now = clock.now().getTime()
  const { uiLocales = '', ...requester } = job.requester
  const asked = defined({ uiLocales: keptTags(askedTags(uiLocales), ' ') })
  return mailQueue.add({
    ...job,
    requester: { ...requester, ...asked },
    notBefore: new Date(now + dueAfterMs),
    expiresAt: new Date(now + lifeMs),
  })
}
