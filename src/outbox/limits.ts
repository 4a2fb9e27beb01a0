/**
 * How many mails may be asked for: under each key so many in its window. Whoever is over a limit is told nothing: the request ends
 * without a mail, before it supersedes, invalidates or creates anything. An account that has nothing to use gets one all the same
 * while it has its spare, so that a stranger's requests lock nobody out.
 *
 * @module
 */
import { passwordDigest } from '../crypto/password.ts'
import type { MailJob, User } from '../ports/index.ts'
import { MAIL_KINDS } from '../ports/mail-kinds.ts'
import { isOtherUnderWay } from './newest.ts'
import type { OutboxParts } from './parts.ts'

const HOUR_MS = 3_600_000

/** A request is counted here somewhat later than by the page that says when the next one may be made. */
const LATE_MS = 1_000

/** 0, as `most` or as `windowMs`: there is no such limit. */
interface Limit {
  key: string
  windowMs: number
  most: number
}

/** Counts a request, and answers whether it is over a limit. */
export async function isOverLimit(parts: OutboxParts, job: MailJob, user: User): Promise<boolean> {
  // What was done to an account is always told.
  if (MAIL_KINDS[job.kind].isNotice) return false
  const counted = await Promise.all(limitsOf(parts, job, user).map((limit) => isOver(parts, limit)))
  return counted.includes(true)
}

/** Whether the account of a request over a limit gets a mail all the same. The spare is gone by that, whatever becomes of the mail. */
export async function takesSpare(parts: OutboxParts, job: MailJob, user: User): Promise<boolean> {
  const { store, flows, clock } = parts
  // The outbox first: a mail that leaves between the two looks has left its link.
  const requests = await store.outbox.requestsOf(user.id, job.kind)
  if (isOtherUnderWay(job, requests, clock.now())) return false
  // What somebody asked for by name finishes no login.
  if (await flows[job.kind].hasUsable(user, isOfLogin(job))) return false
  // One after the other: an account without a spare of its own takes none from the others.
  for (const limit of sparesOf(parts, job, user)) if (await isOver(parts, limit)) return false
  return true
}

function limitsOf({ settings, keyedHash }: OutboxParts, job: MailJob, user: User): Limit[] {
  const { mailsPerAccountPerHour: most, resendCooldown } = settings()
  const account = keyedHash(user.id)
  const mailbox = keyedHash(mailboxOf(user))
  const windowMs = resendCooldown - Math.min(LATE_MS, resendCooldown / 2)
  const asked = { key: `${job.kind}:${account}`, windowMs, most: 1 }
  const own = isOfLogin(job) ? 'login:' : ''
  return [
    { key: `${own}account:${account}`, windowMs: HOUR_MS, most },
    { key: `${own}mailbox:${mailbox}`, windowMs: HOUR_MS, most },
    { ...asked, key: own + asked.key },
    // Whoever asks by name after a login is too soon; a login after somebody asked is not.
    ...(isOfLogin(job) ? [{ ...asked, most: Infinity }] : []),
  ]
}

// A person who used the link has a new password, and so a new spare. Accounts that only claim a mailbox share some spares, and
// get no more by a new password. Otherwise one of them could use up the spares of the others.
function sparesOf({ settings, keyedHash }: OutboxParts, job: MailJob, user: User): Limit[] {
  const { link } = MAIL_KINDS[job.kind]
  if (!link) return []
  const windowMs = settings()[link.lifetime]
  const mailbox = mailboxOf(user)
  const proof = user.emailVerified ? passwordDigest(user.passwordHash) : ''
  const owner = keyedHash(JSON.stringify([user.id, mailbox, proof]))
  const own = { key: `spare:${job.kind}:${owner}`, windowMs, most: 1 }
  const most = settings().mailsPerAccountPerHour
  const shared = { key: `spares:${job.kind}:${keyedHash(mailbox)}`, windowMs, most }
  return user.emailVerified ? [own] : [own, shared]
}

async function isOver({ store }: OutboxParts, { key, windowMs, most }: Limit): Promise<boolean> {
  if (most === 0 || windowMs === 0) return false
  return (await store.limits.hit(`mails:${key}`, windowMs)).count > most
}

/** Its password was checked: strangers, who know a name at most, do not use up what its logins are sent. */
function isOfLogin({ pendingLoginId }: MailJob): boolean {
  return pendingLoginId !== undefined
}

/** One bucket for the addresses that most mail servers put into one mailbox; it identifies nobody. */
function mailboxOf({ email = '' }: User): string {
  const [, mailbox = '', domain = ''] =
    /^(.[^+@]*)(?:\+[^@]*)?(@.*)$/.exec(email.toLowerCase()) ?? []
  return mailbox + domain
}
