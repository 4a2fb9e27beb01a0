/**
 * How many mails may be asked for. Whoever is over a limit is told nothing: the request ends without a mail, before it
 * supersedes, invalidates or creates anything. An account that has nothing to use has spares beyond the cap, so that a
 * stranger's requests lock nobody out.
 *
 * @module
 */
import { passwordDigest } from '../crypto/password.ts'
import type { MailJob, User } from '../ports/index.ts'
import { MAIL_KINDS } from '../ports/mail-kinds.ts'
import { isOtherUnderWay } from './newest.ts'
import type { OutboxParts } from './parts.ts'

const HOUR_MS = 3_600_000

/** Beyond the cap, for whoever has nothing to use: one, and another should the worker die with it. */
const SPARES = 2
const SPARE_MIN_MS = 600_000

/** A request is counted here somewhat later than by the page that says when the next one may be made. */
const LATE_MS = 1_000

/** Counts a request, and answers whether it gets no mail. Counted twice, it is refused only where a link is left to use. */
export async function isRefused(parts: OutboxParts, job: MailJob, user: User): Promise<boolean> {
  // What was done to an account is always told.
  if (MAIL_KINDS[job.kind].isNotice) return false
  const mailbox = mailboxOf(user.email ?? '')
  const [tooMuch, tooSoon] = await Promise.all([
    isTooMuch(parts, job, user, mailbox),
    isTooSoon(parts, job, user),
  ])
  if (!tooMuch && !tooSoon) return false
  return (await hasSomethingToUse(parts, job, user)) || !(await hasSpare(parts, job, user, mailbox))
}

async function count({ store }: OutboxParts, key: string, windowMs: number): Promise<number> {
  return (await store.limits.hit(`mails:${key}`, windowMs)).count
}

// The outbox first: a mail that leaves between the two looks has left its link. What somebody asked for by name finishes no login.
async function hasSomethingToUse({ store, flows, clock }: OutboxParts, job: MailJob, user: User) {
  return (
    isOtherUnderWay(job, await store.outbox.requestsOf(user.id, job.kind), clock.now()) ||
    flows[job.kind].hasUsable(user, isOfLogin(job))
  )
}

function lifetimeOf({ settings }: OutboxParts, { kind }: MailJob) {
  const { link } = MAIL_KINDS[kind]
  return link ? settings()[link.lifetime] : HOUR_MS
}

// Whoever used the link has another one. Not so where the mail was refused, nor where an account that proves nothing changes its
// password, or its address within one mailbox.
async function hasSpare(
  parts: OutboxParts,
  job: MailJob,
  { id, passwordHash, emailVerified }: User,
  mailbox: string,
) {
  const { keyedHash, settings } = parts
  const digest = emailVerified ? passwordDigest(passwordHash) : ''
  const owner = keyedHash(JSON.stringify([id, mailbox, digest]))
  const windowMs = Math.min(Math.max(lifetimeOf(parts, job), SPARE_MIN_MS), HOUR_MS)
  if ((await count(parts, `spare:${job.kind}:${owner}`, windowMs)) > SPARES) return false
  if (emailVerified) return true
  const { mailsPerAccountPerHour: most } = settings()
  const ofMailbox = await count(parts, `spares:${job.kind}:${keyedHash(mailbox)}`, windowMs)
  return most === 0 || ofMailbox <= most
}

// Whoever asks again after a login is too soon; a login after somebody asked is not.
async function isTooSoon(
  { store: { limits }, settings, keyedHash }: OutboxParts,
  job: MailJob,
  { id }: User,
): Promise<boolean> {
  const { resendCooldown } = settings()
  if (resendCooldown === 0) return false
  const key = `${job.kind}:${keyedHash(id)}`
  const [asked, ofLogins] = await Promise.all([
    limits.hit(`mails:${key}`, resendCooldown),
    isOfLogin(job) ? limits.hit(`mails:login:${key}`, resendCooldown) : undefined,
  ])
  const { count: requests, msToEnd } = ofLogins ?? asked
  return requests > 1 && msToEnd > Math.min(LATE_MS, resendCooldown / 2)
}

async function isTooMuch(
  parts: OutboxParts,
  job: MailJob,
  { id }: User,
  mailbox: string,
): Promise<boolean> {
  const { settings, keyedHash } = parts
  const { mailsPerAccountPerHour: most } = settings()
  if (most === 0) return false
  const by = isOfLogin(job) ? 'login:' : ''
  const counts = await Promise.all([
    count(parts, `${by}account:${keyedHash(id)}`, HOUR_MS),
    count(parts, `${by}mailbox:${keyedHash(mailbox)}`, HOUR_MS),
  ])
  return Math.max(...counts) > most
}

/** Its password was checked: strangers, who know a name at most, do not use up what its logins are sent. */
function isOfLogin({ pendingLoginId }: MailJob): boolean {
  return pendingLoginId !== undefined
}

/** One bucket for the addresses that most mail servers put into one mailbox; it identifies nobody. */
function mailboxOf(email: string): string {
  const [, mailbox = '', domain = ''] =
    /^(.[^+@]*)(?:\+[^@]*)?(@.*)$/.exec(email.toLowerCase()) ?? []
  return mailbox + domain
}
