import { idOf, newId } from '../crypto/token.ts'
import { acceptedTags, askedTags, keptTags } from '../views/languages.ts'
import type { RequestParameters, Requester } from '../contract/index.ts'
import { MAIL_KINDS, type LinkKind } from '../contract/mail-kinds.ts'
import { WEEK_MS } from '../store/kind.ts'
import type { MailOutbox } from '../store/index.ts'
import type { Settings } from '../settings/table.ts'

/** No username or address is longer; nothing is looked up for one that is (RFC 5321, 4.5.3.1.3). */
const MAX_IDENTIFIER_LENGTH = 254

/** The owner wants to know of a change by somebody else, however late. */
const NOTICE_LIFE_MS = 24 * 3_600_000

/** The same for all, so that jobs become due in the order of the requests. */
const DUE_AFTER_MS = 50
const MIN_JOB_LIFE_MS = 3_600_000

export interface MailRequest {
  /** Of the job, so that somebody can ask for it later. `undefined`: any. */
  id?: string
  /** The id of the form that asks: sent again, it is the same request. `undefined`: each is one of its own. */
  form?: string | undefined
  kind: LinkKind
  identifier?: string
  accountId?: string
  pendingLoginId?: string | undefined
  parameters: RequestParameters
  requester: Requester
}

/**
 * Writes the outbox job of a request for a mail: the same one write for everybody, with no user look-up. A worker takes
 * it a short time later, so that its work does not fall on the request that follows.
 * Nobody wants the mail once its link would be dead.
 */
export function requestMail(
  outbox: Pick<MailOutbox, 'add'>,
  { form, identifier, accountId, pendingLoginId, ...request }: MailRequest,
  settings: Settings,
  now: Date,
): Promise<void> {
  const week = Math.floor(now.getTime() / WEEK_MS)
  const { kind } = request
  // Of whom it asks for, too: the id of a form keeps nobody else's mail back.
  const { id = form && idOf([form, kind, identifier, accountId, pendingLoginId, week]) } = request
  const lifetimeMs = settings[MAIL_KINDS[kind].link.lifetime]
  return outbox.add({
    ...request,
    requester: keptRequester(request.requester),
    // One character more tells that it was too long; it is a job like the others all the same.
    identifier: identifier?.slice(0, MAX_IDENTIFIER_LENGTH + 1),
    accountId,
    pendingLoginId,
    id: id ?? newId(),
    ...(form !== undefined && { isOfForm: true }),
    notBefore: new Date(now.getTime() + DUE_AFTER_MS),
    expiresAt: new Date(now.getTime() + Math.max(lifetimeMs, MIN_JOB_LIFE_MS)),
  })
}

/** Whether somebody can be meant by what was typed. */
export function isIdentifier(typed: string): boolean {
  return typed.length <= MAX_IDENTIFIER_LENGTH
}

/** A password that was changed. */
interface PasswordChange {
  /** Of the end of its sessions: of each change another one. */
  id: string
  accountId: string
  /** The address to tell. A thief may have changed that of the account by the time that the mail leaves. */
  email: string
  /** The account only claims that address. */
  isClaim?: boolean | undefined
  parameters: RequestParameters
  /** Who changed it. */
  requester: Requester
}

/** The id of a change begins with it where the host made it, and no link. */
export const BY_HOST = 'host:'

/** Before the id of the end, which the apps are found by. */
const OF_END = 'changed:'

/** Asks for the mail that tells of a changed password. Repeated, it asks once. */
export function requestNotice(
  outbox: Pick<MailOutbox, 'add'>,
  { id, accountId, email, isClaim, parameters, requester }: PasswordChange,
  now: Date,
): Promise<void> {
  return outbox.add({
    id: `${OF_END}${id}`,
    kind: 'password_changed',
    isOfForm: true,
    identifier: undefined,
    accountId,
    pendingLoginId: undefined,
    sendTo: email,
    ...(isClaim && { isClaim }),
    parameters,
    requester: keptRequester(requester),
    notBefore: now,
    expiresAt: new Date(now.getTime() + NOTICE_LIFE_MS),
  })
}

/** The end that a notice is of. */
export function endOfNotice(job: { id: string }) {
  const endId = job.id.slice(OF_END.length)
  return { endId, isByHost: endId.startsWith(BY_HOST) }
}

/** What a job keeps of its requester, who may have sent anything. */
function keptRequester({ uiLocales, acceptLanguage, ...requester }: Requester): Requester {
  const asked = keptTags(askedTags(uiLocales ?? ''), ' ')
  const accepted = keptTags(acceptedTags(acceptLanguage ?? ''), ',')
  return {
    ...requester,
    ...(asked !== undefined && { uiLocales: asked }),
    ...(accepted !== undefined && { acceptLanguage: accepted }),
  }
}
