import { isMailAddress } from '../settings/mail-address.ts'
import type { Log, MailJob, MailOutbox, NoMail, User, UserStore } from '../ports/index.ts'
import type { MailEvents } from './events.ts'
import { isIdentifier } from './request.ts'
import type { MailFlow, MailFlows, Recipient } from './mail-flow.ts'
import type { MailLimits } from './limits.ts'
import { earlierThan, isOvertaken } from './newest.ts'

/** From a request to a job that only waits for the mail server. */
export interface MailResolution {
  /**
   * Looks the account up, and does what is due whether or not the mail will arrive. Answers the job, held to be sent. `undefined`: it
   * is over.
   */
  resolve(job: MailJob): Promise<MailJob | undefined>
  /** The recipient as the account is now, or why there is none. */
  recipientOf(job: MailJob): Promise<Recipient | NoMail>
  /** Ends a job that gets no mail. */
  end(job: MailJob, reason: NoMail): Promise<void>
  /** Ends a job that nobody sent within its life. */
  expire(job: MailJob): Promise<void>
  /** Makes a dead letter of a job, and voids its links. `false`: somebody else holds it. */
  giveUp(job: MailJob, reason: string): Promise<boolean>
  /** Makes dead letters of all records that are no readable job. */
  endUnreadable(): Promise<void>
}

export interface MailResolutionPorts {
  flows: MailFlows
  users: Pick<UserStore, 'findById'>
  outbox: MailOutbox
  limits: MailLimits
  events: MailEvents
  log: Log
  now(): Date
}

/** A mail server is waited for in line, and then for its answer; together that is less. */
const HOLD_TO_SEND_MS = 60_000

/** A mail leaves earlier than this where nothing is in its way. */
const LATE_MS = 2_000

/** What an admin can mend, or should know of; the others are ordinary, and nothing of them stays. */
const DEAD_LETTERS: ReadonlySet<NoMail> = new Set<NoMail>([
  'expired',
  'account_gone',
  'disabled',
  'no_address',
  'bad_address',
  'no_password',
])

export function createMailResolution(ports: MailResolutionPorts): MailResolution {
  const { flows, users, outbox, limits, events, log, now } = ports

  async function findUser({ kind, accountId, identifier }: MailJob) {
    if (accountId !== undefined) return (await users.findById(accountId)) ?? 'account_gone'
    const isMeant = identifier !== undefined && isIdentifier(identifier)
    return isMeant ? flows[kind].findUser(identifier) : 'unknown'
  }

  const isLateAndOvertaken = async (job: MailJob, user: User) =>
    isLate(job, now()) &&
    (isOvertaken(job, await outbox.requestsOf(user.id, job.kind)) ||
      (await flows[job.kind].isServedLater(job, user)))

  /** Ends what the account asked for earlier, unless it asked again since. Repeated, it changes nothing. */
  async function isOvertakenElseEndsEarlier(job: MailJob, user: User): Promise<boolean> {
    const flow = flows[job.kind]
    if (flow.newestOnly) {
      // The job counts as resolved by now, so that of two at once at least one sees the other.
      const requests = await outbox.requestsOf(user.id, job.kind)
      await outbox.supersede(earlierThan(job, requests), now())
      if (isOvertaken(job, requests)) return true
    }
    await flow.onRequest(job, user)
    return false
  }

  async function giveUp(job: MailJob, reason: string) {
    // Its links first: nobody takes a dead letter up again.
    if (!(await outbox.isHeld(job))) return false
    const { kind, accountId } = job
    if (accountId !== undefined) await flows[kind].abandon(job, accountId)
    return outbox.giveUp(job, now(), reason)
  }

  async function end(job: MailJob, reason: NoMail): Promise<undefined> {
    if (!DEAD_LETTERS.has(reason)) await outbox.remove(job)
    else if (await giveUp(job, reason))
      log('warn', 'no mail can be sent for a request', { job: job.id, kind: job.kind, reason })
  }

  async function endUnsent(job: MailJob, reason: NoMail): Promise<undefined> {
    if (reason !== 'sent_before') await events.failed(job, reason)
    await end(job, reason)
  }

  return {
    end: endUnsent,

    // Whoever sent it may have died before it could remove the job.
    expire: async (job) => endUnsent(job, (await events.wasSent(job)) ? 'sent_before' : 'expired'),

    giveUp,

    async resolve(job) {
      if (job.isSuperseded) {
        await events.requested(job)
        return endUnsent(job, 'superseded')
      }
      if (now() >= job.expiresAt) {
        await events.requested(job, 'expired')
        return endUnsent(job, 'expired')
      }
      const user = await findUser(job)
      if (typeof user === 'string') {
        await events.requested(job, user)
        return end(job, user)
      }
      const found = { ...job, accountId: user.id }
      const flow = flows[job.kind]
      const refusal = refusalOf(flow, job, user)
      // Before it counts as resolved: a throttled request overtakes and supersedes nothing. And once: what was let pass may
      // have ended the earlier link.
      if (!refusal && !job.isResolved && (await limits.refuse(job, user))) {
        await events.requested(found, 'throttled')
        return end(job, 'throttled')
      }
      const at = now()
      const heldUntil = new Date(at.getTime() + HOLD_TO_SEND_MS)
      if (!(await outbox.resolve(job, user.id, at, heldUntil))) return undefined
      await events.requested(found, refusal)
      if (refusal) return endUnsent(found, refusal)
      if (await isOvertakenElseEndsEarlier(found, user)) return endUnsent(found, 'superseded')
      return { ...found, attempts: job.attempts + 1, heldUntil }
    },

    async recipientOf(job) {
      if (mayHaveLeft(job) && (await events.wasSent(job))) return 'sent_before'
      const user = await findUser(job)
      // Whoever looked the account up may have died before it did all that is due then.
      if (job.attempts > 1) await events.requested(job)
      if (typeof user === 'string') return user
      if (job.attempts > 1 && (await isOvertakenElseEndsEarlier(job, user))) return 'superseded'
      const email = job.sendTo ?? user.email
      if (email === undefined) return 'no_address'
      if (await isLateAndOvertaken(job, user)) return 'superseded'
      return refusalOf(flows[job.kind], job, user) ?? { user, email }
    },

    async endUnreadable() {
      for (const job of await outbox.giveUpUnreadable(now()))
        log('error', 'a mail job cannot be read', { job, reason: 'unreadable' })
    },
  }
}

// A notice may be asked for again once it is sent. Any other mail is better sent twice: a later attempt has voided its link.
function mayHaveLeft({ kind }: MailJob): boolean {
  return kind === 'password_changed'
}

// Nobody wants two mails at once after an outage.
function isLate({ attempts, requestedAt }: MailJob, at: Date): boolean {
  return attempts > 1 || at.getTime() - requestedAt.getTime() > LATE_MS
}

// Whoever is told of what was done to an account is told whatever became of the account since.
function refusalOf(flow: MailFlow, { sendTo }: MailJob, user: User): NoMail | undefined {
  if (sendTo !== undefined) return isMailAddress(sendTo) ? undefined : 'bad_address'
  if (user.disabled) return 'disabled'
  if (user.email === undefined) return 'no_address'
  if (!isMailAddress(user.email)) return 'bad_address'
  return flow.refuses(user)
}
