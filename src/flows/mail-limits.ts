/**
 * How many mails may be asked for (D21). Whoever is over a limit is told nothing: the request ends without a mail, before it
 * supersedes, invalidates or creates anything. An account that has nothing to use is refused nothing, so that nobody is locked
 * out by a stranger's requests.
 *
 * @module
 */
import type { MailJob, MailOutbox, RateLimits, User } from '../ports.ts'
import type { Settings } from '../settings/table.ts'
import type { MailFlows } from './mail-resolution.ts'

const HOUR_MS = 3_600_000

/** Longer than it takes to look an account up, and shorter than the lease of a job, so that a job taken up again has a turn. */
const TURN_MS = 5_000

export interface MailLimits {
  /** Counts a request, and answers whether it gets no mail. Counted twice, it is refused only where a link is left to use. */
  refuse(job: MailJob, user: User): Promise<boolean>
}

export interface MailLimitsPorts {
  flows: MailFlows
  limits: RateLimits
  outbox: Pick<MailOutbox, 'isUnderWay'>
  /** Stands for an account or a mailbox in the keys. */
  keyedHash(text: string): string
  settings(): Settings
  now(): Date
}

export function createMailLimits(ports: MailLimitsPorts): MailLimits {
  const { flows, limits, outbox, keyedHash, settings, now } = ports

  async function count(key: string, windowMs: number): Promise<number> {
    return (await limits.hit(`mails:${key}`, windowMs)).count
  }

  // The outbox first: a mail that leaves between the two looks has left its link.
  const hasSomethingToUse = async (job: MailJob, user: User) =>
    (await outbox.isUnderWay(job, now())) || flows[job.kind].hasUsable(user)

  // Of those that come at once, and find that nothing is left, one is served.
  async function isNotItsTurn({ kind }: MailJob, { id }: User): Promise<boolean> {
    return (await count(`turn:${kind}:${keyedHash(id)}`, TURN_MS)) > 1
  }

  async function isTooSoon({ kind }: MailJob, { id }: User): Promise<boolean> {
    const { resendCooldown } = settings()
    if (resendCooldown === 0) return false
    return (await count(`${kind}:${keyedHash(id)}`, resendCooldown)) > 1
  }

  /** `flood`: other accounts have used up the mailbox, and nobody has proved that this one's owner reads it. */
  async function isTooMuch({ id, email = '', emailVerified }: User): Promise<boolean | 'flood'> {
    const { mailsPerAccountPerHour: most } = settings()
    if (most === 0) return false
    const [own, all] = await Promise.all([
      count(`account:${keyedHash(id)}`, HOUR_MS),
      count(`mailbox:${keyedHash(mailboxOf(email))}`, HOUR_MS),
    ])
    if (!emailVerified && all - own >= most) return 'flood'
    return own > most || all > most
  }

  return {
    async refuse(job, user) {
      // What was done to an account is always told.
      if (job.kind === 'password_changed') return false
      const [tooMuch, tooSoon] = await Promise.all([isTooMuch(user), isTooSoon(job, user)])
      if (tooMuch === 'flood') return true
      if (!tooMuch && !tooSoon) return false
      const found = { ...job, accountId: user.id }
      return (await hasSomethingToUse(found, user)) || isNotItsTurn(job, user)
    },
  }
}

/** One bucket for the addresses that most mail servers put into one mailbox; it identifies nobody. */
function mailboxOf(email: string): string {
  const [, mailbox = '', domain = ''] = /^(.[^+@]*)[^@]*(@.*)$/.exec(email.toLowerCase()) ?? []
  return mailbox + domain
}
