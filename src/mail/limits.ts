/**
 * Limits on mails for an account and for a mailbox. A request over a limit ends without a mail, before it changes anything. An account
 * without a usable link still gets its spare mail, so strangers cannot lock a user out. A notice waits instead.
 */
import { MAIL_KINDS, tokensOf } from '../contract/mail-kinds.ts'
import { passwordDigest } from '../crypto/password.ts'
import { answerToReset } from '../flows/account.ts'
import { withState } from '../flows/link-state.ts'
import type { FlowParts } from '../flows/parts.ts'
import { mailboxKey } from '../settings/addresses.ts'
import type { Settings } from '../settings/table.ts'
import type { JobRecord, MailJob, RateLimits, TokenStore } from '../store/index.ts'
import type { Recipient } from './sending.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

/** How many links of an account are looked through, newest first. */
export const MAX_LINKS = 100

/** The worker counts a request somewhat later than the page, which says when the user may ask again. */
const COUNTED_LATER_MS = 1_000

type LimitParts = Pick<FlowParts, 'settings' | 'store' | 'users' | 'keyed' | 'clock'>

/** What is counted, the window in milliseconds, and the most hits in it. A 0 means that there is no such limit. */
type Limit = [key: string, windowMs: number, most: number]

/** The limits of a mail. The limits of one list are counted at once. If one is exceeded, the next list is not counted. */
function tableOf({ settings, keyed: { keyedHash } }: LimitParts, job: MailJob, to: Recipient) {
  const { kind } = job
  const { user, awaited, email } = to
  const { link } = MAIL_KINDS[kind]
  const { mailsPerAccountPerHour: most, resendCooldown } = settings()
  const soonMs = resendCooldown - Math.min(COUNTED_LATER_MS, resendCooldown / 2)
  const lifeMs = link ? settings()[link.lifetime] : 0
  const verifies = kind === 'email_verification'
  // The user gave the right password. So strangers, who know a name at most, cannot use up the mails for logins.
  const ofLogin = job.pendingLoginId === undefined ? '' : 'login:'
  // A notice to an address that the account has left counts for the account alone.
  const isUnverified = job.isUnverified ?? (!user.emailVerified && user.email === email)
  const box = mailboxKey(awaited?.email ?? email)
  // A user who used the link has a new password, and so a new spare.
  const proof = user.emailVerified ? passwordDigest(user.passwordHash) : ''
  const [account, mailbox] = [keyedHash(user.id), keyedHash(box)]
  const owner = keyedHash(JSON.stringify([user.id, box, proof]))

  const notices: Limit[][] = [
    [isUnverified ? [`notices:${mailbox}`, DAY_MS, 1] : [`notice:${kind}:${account}`, HOUR_MS, 5]],
  ]
  const requests: Limit[][] = [
    [
      [`${ofLogin}account:${account}`, HOUR_MS, most],
      // Not for who verified the mailbox: spellings that are counted together may be mailboxes of two people, and neither may learn of the other.
      [`${ofLogin}mailbox:${mailbox}`, HOUR_MS, isUnverified ? most : 0],
      // A mailed code is valid for one login and one address only, so each gets a mail.
      [`${kind}:${job.pendingLoginId ?? account}${awaited?.id ?? ''}`, soonMs, 1],
    ],
    // Half of a mailbox's mails for a day are for logins.
    [[`named:${mailbox}`, DAY_MS, verifies && !ofLogin ? 15 : 0]],
    [[`day:${mailbox}`, DAY_MS, verifies ? 30 : 0]],
  ]
  const spares: Limit[][] = [
    [[`${ofLogin}spare:${kind}:${owner}`, verifies ? Math.max(lifeMs, DAY_MS) : lifeMs, 1]],
    [[`spares:${kind}:${mailbox}`, lifeMs, isUnverified && !verifies ? most : 0]],
  ]
  return { counted: link ? requests : notices, spares }
}

/** Counts a mail, and returns for how many milliseconds it is over a limit. 0: it is within all limits. */
export const msOverLimit = (parts: LimitParts, job: MailJob, to: Recipient): Promise<number> =>
  msOver(parts, tableOf(parts, job, to).counted)

/** Whether the account of a request over a limit still gets a mail. This uses up the spare, whatever becomes of the mail. */
export async function takesSpare(parts: LimitParts, job: MailJob, to: Recipient): Promise<boolean> {
  const { store, clock } = parts
  const { user } = to
  // A mail without a link opens no account.
  if (job.kind === 'password_reset' && answerToReset(user, parts) !== 'link') return false
  // Reads the outbox first: a mail that leaves between the two reads has already stored its link.
  const requests = await store.outbox.requestsOf(user.id, job.kind)
  if (isOtherUnderWay(job, requests, clock.now())) return false
  const tokens = tokensOf(store, job.kind)
  if (tokens && (await hasUsableLink(parts, tokens, to, job.pendingLoginId))) return false
  return (await msOver(parts, tableOf(parts, job, to).spares)) === 0
}

/** Whether the account has a usable link. With `pendingLoginId`: one that finishes that login. */
export async function hasUsableLink(
  parts: LimitParts,
  tokens: TokenStore,
  { user, awaited }: Pick<Recipient, 'user' | 'awaited'>,
  pendingLoginId?: string,
): Promise<boolean> {
  const found = (await tokens.ofUser(user.id, MAX_LINKS)).filter(
    (token) => pendingLoginId === undefined || token.pendingLoginId === pendingLoginId,
  )
  const states = await Promise.all(found.map((token) => withState(parts, token, user, awaited)))
  return states.some(({ state }) => state === 'usable')
}

/** Whether the mail of another request may still leave. If the job is for a login, only requests of that login count. */
export function isOtherUnderWay(job: MailJob, requests: JobRecord[], at: Date): boolean {
  return requests.some(
    (other) =>
      other.id !== job.id &&
      other.state === 'resolved' &&
      other.expiresAt > at &&
      (job.pendingLoginId === undefined || other.pendingLoginId === job.pendingLoginId),
  )
}

async function msOver({ store }: LimitParts, lists: Limit[][]): Promise<number> {
  for (const list of lists) {
    const over = list.map(async ([key, windowMs, most]) => {
      if (windowMs <= 0 || most <= 0) return 0
      const { count, msToEnd } = await store.limits.hit(`mails:${key}`, windowMs, most)
      return count > most ? Math.max(1, msToEnd) : 0
    })
    const longest = Math.max(...(await Promise.all(over)))
    if (longest > 0) return longest
  }
  return 0
}

export type GlobalLimit = ReturnType<typeof createGlobalLimit>

/** `mails_per_minute`: the most mails that leave in a minute, from all processes together. The others wait. */
export function createGlobalLimit(limits: RateLimits, settings: () => Settings, now: () => Date) {
  let full = { until: new Date(0), most: 0 }

  return {
    /** Whether taking a job makes sense. A changed limit applies at once. */
    isOpen: () => now() >= full.until || settings().mailsPerMinute !== full.most,

    /** Counts one mail, and returns whether it may leave. */
    async mayLeave() {
      const { mailsPerMinute: most } = settings()
      if (most === 0) return true
      const { count, msToEnd } = await limits.hit('mails:all', MINUTE_MS, most)
      if (count <= most) return true
      full = { until: new Date(now().getTime() + msToEnd), most }
      return false
    },
  }
}
