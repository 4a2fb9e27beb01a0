/** Finds the account of a job: looks it up, applies the limits, and lets the newest of its requests win. */
import type { NoMail, User } from '../contract/index.ts'
import { isLinkKind, MAIL_KINDS, tokensOf } from '../contract/mail-kinds.ts'
import { whyNoMail } from '../flows/account.ts'
import { awaitedOf } from '../flows/other-address.ts'
import { MAX_IDENTIFIER_LENGTH } from '../flows/request-mail.ts'
import { isMailAddress } from '../settings/addresses.ts'
import type { JobRecord, MailJob } from '../store/index.ts'
import { isLater, isWaiting, orderOf } from '../store/outbox-record.ts'
import { MAX_LINKS, msOverLimit, takesSpare } from './limits.ts'
import { MAIL_BEHAVIOUR } from './make-mail.ts'
import { endJob, endUnsent, isHeld, recordRequested, wasSent } from './outcome.ts'
import type { MailParts } from './parts.ts'
import type { Recipient } from './sending.ts'

/** The lease of a job that is to be sent: longer than the wait for a slot and the attempt together. */
export const SEND_LEASE_MS = 60_000
/** A mail leaves earlier than this if nothing delays it. */
const PROMPT_MS = 2_000

/** A job with a lease to be sent. `recipient` is left out if the job has waited since its account was looked up. */
export type JobToSend = MailJob & { recipient?: Recipient }

/** Does what is due even if no mail leaves. Returns the job, with a lease to be sent. `undefined`: it is over. */
export async function resolveJob(parts: MailParts, job: MailJob): Promise<JobToSend | undefined> {
  if (job.state === 'superseded') {
    await recordRequested(parts, job)
    return endUnsent(parts, job, 'superseded')
  }
  if (parts.clock.now() >= job.expiresAt) {
    await recordRequested(parts, job, 'expired')
    return endUnsent(parts, job, 'expired')
  }
  const user = await userOf(parts, job)
  if (typeof user === 'string') return refuse(parts, job, user)
  const recipient = await recipientIn(parts, job, user)
  const found = { ...job, accountId: user.id }
  const leaseEnd = await takeLease(parts, found, recipient)
  if (!leaseEnd) return undefined
  await recordRequested(parts, found, typeof recipient === 'string' ? recipient : undefined)
  if (typeof recipient === 'string') return endUnsent(parts, found, recipient)
  // After an outage, a user must not get two mails at once.
  const isLate = parts.clock.now().getTime() - job.requestedAt.getTime() > PROMPT_MS
  const isToCheck = MAIL_KINDS[job.kind].link?.newestOnly || isLate
  if (isToCheck && (await endEarlierAndCheckOvertaken(parts, found, user)))
    return endUnsent(parts, found, 'superseded')
  return { ...found, attempts: job.attempts + 1, availableAt: leaseEnd, recipient }
}

async function refuse(parts: MailParts, job: MailJob, reason: NoMail): Promise<undefined> {
  await recordRequested(parts, job, reason)
  return endJob(parts, job, reason)
}

type Found = MailJob & { accountId: string }

/** Returns the end of the lease in which the job is to be sent. `undefined`: this worker has no lease any more. */
async function takeLease(parts: MailParts, job: Found, to: Recipient | NoMail) {
  const { store, clock } = parts
  // The limits come before the job counts as resolved, so that a throttled request overtakes and supersedes nothing.
  const msOver = typeof to === 'string' ? 0 : await msOverLimit(parts, job, to)
  if (typeof to !== 'string' && msOver > 0) {
    if (!isLinkKind(job.kind)) return putOff(parts, job, msOver)
    // If another process has the job now, that process needs the spare.
    if (!(await isHeld(parts, job))) return undefined
    if (!(await takesSpare(parts, job, to))) return refuse(parts, job, 'throttled')
  }
  const leaseEnd = new Date(clock.now().getTime() + SEND_LEASE_MS)
  return (await store.outbox.resolve(job, job.accountId, leaseEnd)) ? leaseEnd : undefined
}

/** A notice over a limit waits until the limit allows it, and replaces earlier waiting notices to the same address. */
async function putOff(parts: MailParts, job: Found, ms: number): Promise<undefined> {
  const { store, clock } = parts
  const now = clock.now()
  const at = new Date(now.getTime() + ms)
  if (at >= job.expiresAt) return endUnsent(parts, job, 'throttled')
  const requests = await store.outbox.requestsOf(job.accountId, job.kind)
  const waiting = requests.filter((one) => !one.isResolved && one.sendTo === job.sendTo)
  await store.outbox.supersede(earlierThan(job, waiting), now)
  await store.outbox.release(job, at, 'throttled')
  return undefined
}

/** The recipient, or why there is none. If the job had to wait, the current state of the account counts. */
export async function recipientOf(parts: MailParts, job: JobToSend): Promise<Recipient | NoMail> {
  if (job.recipient) return job.recipient
  // The previous process may have died before it recorded the request, or after it sent the mail.
  if (job.attempts > 1) {
    // A mail with a link may be sent twice: that does no harm.
    if (!isLinkKind(job.kind) && (await wasSent(parts, job))) return 'sent_before'
    await recordRequested(parts, job)
  }
  const user = await userOf(parts, job)
  if (typeof user === 'string') return user
  if (await endEarlierAndCheckOvertaken(parts, job, user)) return 'superseded'
  return recipientIn(parts, job, user)
}

async function userOf(parts: MailParts, { kind, accountId, identifier }: MailJob) {
  if (accountId !== undefined) return (await parts.users.findById(accountId)) ?? 'account_gone'
  if (identifier === undefined || identifier.length > MAX_IDENTIFIER_LENGTH) return 'unknown'
  return (await MAIL_BEHAVIOUR[kind].findByIdentifier?.(parts.users, identifier)) ?? 'unknown'
}

/** Where the mail goes, or why it goes nowhere. */
async function recipientIn(parts: MailParts, job: MailJob, user: User) {
  const { kind, sendTo } = job
  // A notice of a change to an account leaves, whatever the account's state is by then.
  if (sendTo !== undefined) return isMailAddress(sendTo) ? { user, email: sendTo } : 'bad_address'
  const { email = '', disabled } = user
  const awaited = await awaitedOf(parts, user)
  const to = awaited?.email ?? user.email
  const refusal = whyNoMail({ disabled, email: to }) ?? MAIL_BEHAVIOUR[kind].refuses?.(user, parts)
  if (refusal) return refusal
  if (!awaited) return { user, email }
  return kind === 'email_verification' ? { user, email, awaited } : 'other_address'
}

/**
 * The newest request of an account and a kind wins. `true`: there is a later request, so this job ends. `false`: there is none; with
 * `newestOnly`, all earlier requests and links have ended. The job counts as resolved by now, so one of two concurrent jobs sees the other.
 */
async function endEarlierAndCheckOvertaken({ store, clock }: MailParts, job: MailJob, user: User) {
  const { outbox } = store
  const newestOnly = MAIL_KINDS[job.kind].link?.newestOnly
  const now = clock.now()
  const requests = await outbox.requestsOf(user.id, job.kind)
  if (newestOnly) await outbox.supersede(earlierThan(job, requests), now)
  if (isOvertaken(job, requests)) return true
  const tokens = tokensOf(store, job.kind)
  if (newestOnly) {
    await tokens?.revoke({ userId: user.id, upTo: orderOf(job) }, now)
    return false
  }
  // A later request whose mail has left is no longer in the outbox, but its link is stored.
  const links = (await tokens?.ofUser(user.id, MAX_LINKS)) ?? []
  return links.some(
    (link) =>
      link.pendingLoginId === job.pendingLoginId && isLater(link, orderOf(job, job.attempts)),
  )
}

/**
 * Whether a later request was looked up, even if it is a dead letter by now. A notice that is one takes the place of no other. Both are for one
 * login, or for none, and for one address.
 */
export function isOvertaken(job: MailJob, requests: JobRecord[]): boolean {
  return requests.some(
    (other) =>
      other.isResolved &&
      (other.state !== 'dead' || isLinkKind(job.kind)) &&
      other.pendingLoginId === job.pendingLoginId &&
      other.sendTo === job.sendTo &&
      isLater(orderOf(other), orderOf(job)),
  )
}

/** The ids of the requests that the job ends. */
export function earlierThan(job: MailJob, requests: JobRecord[]): string[] {
  return requests
    .filter((other) => isWaiting(other) && isLater(orderOf(job), orderOf(other)))
    .map(({ id }) => id)
}
