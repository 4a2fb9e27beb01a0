import type { NoMail, User } from '../ports/index.ts'
import { MAIL_KINDS } from '../ports/mail-kinds.ts'
import type { MailJob } from '../records/index.ts'
import { refusesMail } from '../flows/account.ts'
import { isMailAddress } from '../settings/mail-address.ts'
import { endJob, endUnsent, isHeld } from './end.ts'
import { recordRequested, wasSent } from './events.ts'
import { msOverLimit, takesSpare } from './limits.ts'
import type { Recipient } from './mail-flow.ts'
import { MAIL_FLOWS } from './mail-flows.ts'
import { earlierThan, endEarlierAndCheckOvertaken } from './newest.ts'
import type { MailParts } from './parts.ts'
import { isIdentifier } from './request.ts'

/** How long a job is held to be sent: longer than the time in line and the attempt together. */
export const SEND_LEASE_MS = 60_000
/** A mail leaves earlier than this where nothing is in its way. */
const LATE_MS = 2_000

/**
 * Looks the account of a job up, and does what is due whether or not the mail will arrive. Answers the job, held to be sent.
 * `undefined`: it is over.
 */
export async function resolveJob(parts: MailParts, job: MailJob): Promise<MailJob | undefined> {
  if (job.state === 'superseded') {
    await recordRequested(parts, job)
    return endUnsent(parts, job, 'superseded')
  }
  if (parts.clock.now() >= job.expiresAt) {
    await recordRequested(parts, job, 'expired')
    return endUnsent(parts, job, 'expired')
  }
  const user = await findUser(parts, job)
  if (typeof user === 'string') {
    await recordRequested(parts, job, user)
    return endJob(parts, job, user)
  }
  const refusal = refusalOf(parts, job, user)
  const held = await hold(parts, job, user, refusal)
  if (held === 'lost') return undefined
  const found = { ...job, accountId: user.id }
  if (held === 'throttled') {
    await recordRequested(parts, found, held)
    return endJob(parts, job, held)
  }
  await recordRequested(parts, found, refusal)
  if (refusal) return endUnsent(parts, found, refusal)
  if (MAIL_KINDS[job.kind].newestOnly && (await endEarlierAndCheckOvertaken(parts, found, user)))
    return endUnsent(parts, found, 'superseded')
  return { ...found, attempts: job.attempts + 1, availableAt: held }
}

/** Until when the job is held to be sent. `lost`: somebody else holds it. */
async function hold(
  parts: MailParts,
  job: MailJob,
  user: User,
  refusal: NoMail | undefined,
): Promise<Date | 'throttled' | 'lost'> {
  const { store, clock } = parts
  // Before it counts as resolved: a throttled request overtakes and supersedes nothing. And once: what was let pass may have ended
  // the earlier link.
  const msOver = refusal || job.isResolved ? 0 : await msOverLimit(parts, job, user)
  if (msOver > 0) {
    if (MAIL_KINDS[job.kind].isNotice) return putOff(parts, job, user, msOver)
    // The process that has the job now needs the spare.
    if (!(await isHeld(parts, job))) return 'lost'
    if (!(await takesSpare(parts, job, user))) return 'throttled'
  }
  const heldUntil = new Date(clock.now().getTime() + SEND_LEASE_MS)
  return (await store.outbox.resolve(job, user.id, heldUntil)) ? heldUntil : 'lost'
}

/** A notice over a limit waits until that allows it, in place of the earlier ones that wait. */
async function putOff(
  { store, clock }: MailParts,
  job: MailJob,
  { id }: User,
  ms: number,
): Promise<'throttled' | 'lost'> {
  const now = clock.now()
  const at = new Date(now.getTime() + ms)
  if (at >= job.expiresAt) return 'throttled'
  const waiting = (await store.outbox.requestsOf(id, job.kind)).filter((one) => !one.isResolved)
  await store.outbox.supersede(earlierThan(job, waiting), now)
  await store.outbox.release(job, at, 'throttled')
  return 'lost'
}

/** The recipient as the account is now, or why there is none. */
export async function recipientOf(parts: MailParts, job: MailJob): Promise<Recipient | NoMail> {
  // A notice may be asked for again once it is sent. Any other mail is better sent twice: a later attempt has voided its link.
  if (MAIL_KINDS[job.kind].isNotice && (await wasSent(parts, job))) return 'sent_before'
  const user = await findUser(parts, job)
  // The process that looked the account up may have died before it recorded the request.
  if (job.attempts > 1) await recordRequested(parts, job)
  if (typeof user === 'string') return user
  // Nobody wants two mails at once after an outage, and the process may have died before it ended what was earlier.
  const lateMs = parts.clock.now().getTime() - job.requestedAt.getTime()
  const isLate = job.attempts > 1 || lateMs > LATE_MS
  if (isLate && (await endEarlierAndCheckOvertaken(parts, job, user))) return 'superseded'
  const email = job.sendTo ?? user.email
  if (email === undefined) return 'no_address'
  return refusalOf(parts, job, user) ?? { user, email }
}

async function findUser(parts: MailParts, { kind, accountId, identifier }: MailJob) {
  if (accountId !== undefined) return (await parts.users.findById(accountId)) ?? 'account_gone'
  const isMeant = identifier !== undefined && isIdentifier(identifier)
  const found = isMeant ? await MAIL_FLOWS[kind].findUser?.(parts, identifier) : undefined
  return found ?? 'unknown'
}

// A notice of what was done to an account leaves, whatever became of the account since.
function refusalOf(parts: MailParts, { kind, sendTo }: MailJob, user: User): NoMail | undefined {
  if (sendTo !== undefined) return isMailAddress(sendTo) ? undefined : 'bad_address'
  return refusesMail(user) ?? MAIL_FLOWS[kind].refuses?.(user, parts)
}
