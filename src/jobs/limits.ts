/**
 * How many mails leave for an account and for a mailbox. Who is over a limit is told nothing: the request ends without a mail, before
 * it supersedes, invalidates or creates anything. An account that has nothing to use gets one all the same while it has its spare,
 * so that strangers lock nobody out. A notice waits.
 */
import type { Clock } from '../clock.ts'
import type { User } from '../contract/index.ts'
import { MAIL_KINDS, tokensOf, type TokenPart } from '../contract/mail-kinds.ts'
import { passwordDigest } from '../crypto/password.ts'
import { hasUsableLink } from '../flows/link.ts'
import { mailboxKey } from '../settings/addresses.ts'
import type { Settings } from '../settings/table.ts'
import type { AccountFlowsStore, MailJob, RateLimits } from '../store/index.ts'
import { isOtherUnderWay } from './newest.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

/** A request is counted here somewhat later than by the page that says when the next one may be made. */
const LATE_MS = 1_000

/** What is counted, for how many milliseconds, and how often it may be. With a 0 there is no such limit. */
type Limit = [key: string, windowMs: number, most: number]

export interface LimitParts {
  store: Pick<AccountFlowsStore, 'outbox' | 'limits' | TokenPart>
  keyedHash(text: string): string
  settings(): Settings
  clock: Clock
}

/** The limits of a mail. What is in one list is counted at once; the next list is counted if nothing of that is over. */
function tableOf({ settings, keyedHash }: LimitParts, job: MailJob, user: User) {
  const { kind, sendTo = user.email } = job
  const { link } = MAIL_KINDS[kind]
  const { mailsPerAccountPerHour: most, resendCooldown } = settings()
  const soonMs = resendCooldown - Math.min(LATE_MS, resendCooldown / 2)
  const lifeMs = link ? settings()[link.lifetime] : 0
  const verifies = kind === 'email_verification'
  // Its password was checked: strangers, who know a name at most, do not use up what logins are sent.
  const own = job.pendingLoginId === undefined ? '' : 'login:'
  // Whether the account only claims the mailbox. If it has left it, the mailbox of before is told.
  const isClaim = job.isClaim ?? (!user.emailVerified && user.email === sendTo)
  const box = mailboxKey(sendTo ?? '')
  // A person who used the link has a new password, and so a new spare.
  const proof = user.emailVerified ? passwordDigest(user.passwordHash) : ''
  const [account, mailbox] = [keyedHash(user.id), keyedHash(box)]
  const owner = keyedHash(JSON.stringify([user.id, box, proof]))

  const notices: Limit[][] = [
    [isClaim ? [`notices:${mailbox}`, DAY_MS, 1] : [`notice:${account}`, HOUR_MS, 5]],
  ]
  const requests: Limit[][] = [
    [
      [`${own}account:${account}`, HOUR_MS, most],
      [`${own}mailbox:${mailbox}`, HOUR_MS, most],
      // The code of a mail is good for its login alone, so each login has a mail.
      [`${kind}:${job.pendingLoginId ?? account}`, soonMs, 1],
    ],
    // Half of what a mailbox gets in a day is for logins.
    [[`named:${mailbox}`, DAY_MS, verifies && !own ? 15 : 0]],
    [[`day:${mailbox}`, DAY_MS, verifies ? 30 : 0]],
  ]
  const spares: Limit[][] = [
    [[`${own}spare:${kind}:${owner}`, verifies ? Math.max(lifeMs, DAY_MS) : lifeMs, 1]],
    [[`spares:${kind}:${mailbox}`, lifeMs, isClaim && !verifies ? most : 0]],
  ]
  return { notices, requests, spares }
}

/** Counts a mail, and answers for how many milliseconds it is over a limit. 0: it is within all. */
export function msOverLimit(parts: LimitParts, job: MailJob, user: User): Promise<number> {
  const { notices, requests } = tableOf(parts, job, user)
  return msOver(parts, MAIL_KINDS[job.kind].isNotice ? notices : requests)
}

/** Whether the account of a request over a limit gets a mail all the same. The spare is gone by that, whatever becomes of the mail. */
export async function takesSpare(parts: LimitParts, job: MailJob, user: User): Promise<boolean> {
  const { store, clock } = parts
  // The outbox first: a mail that leaves between the two looks has left its link.
  const requests = await store.outbox.requestsOf(user.id, job.kind)
  if (isOtherUnderWay(job, requests, clock.now())) return false
  const tokens = tokensOf(store, job.kind)
  const hasLink = tokens && (await hasUsableLink(tokens, user, clock.now(), job.pendingLoginId))
  if (hasLink) return false
  return (await msOver(parts, tableOf(parts, job, user).spares)) === 0
}

async function msOver({ store }: LimitParts, lists: Limit[][]): Promise<number> {
  for (const list of lists) {
    const limits = list.filter(([, windowMs, most]) => windowMs > 0 && most > 0)
    const hits = limits.map(([key, windowMs, most]) =>
      store.limits.hit(`mails:${key}`, windowMs, most),
    )
    const over = (await Promise.all(hits)).filter(({ count }, i) => count > (limits[i]?.[2] ?? 0))
    if (over.length > 0) return Math.max(1, ...over.map(({ msToEnd }) => msToEnd))
  }
  return 0
}

export type GlobalLimit = ReturnType<typeof createGlobalLimit>

/** `mails_per_minute`: at most so many mails leave in a minute, of all processes together; the others wait. */
export function createGlobalLimit(limits: RateLimits, settings: () => Settings, now: () => Date) {
  let full = { until: new Date(0), most: 0 }

  return {
    /** Whether it is worth while to take a job. A limit that was changed is in force at once. */
    isOpen: () => now() >= full.until || settings().mailsPerMinute !== full.most,

    /** Counts one mail, and answers whether it may leave. */
    async mayLeave(): Promise<boolean> {
      const { mailsPerMinute: most } = settings()
      if (most === 0) return true
      const { count, msToEnd } = await limits.hit('mails:all', MINUTE_MS, most)
      if (count <= most) return true
      full = { until: new Date(now().getTime() + msToEnd), most }
      return false
    },
  }
}
