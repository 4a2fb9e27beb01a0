import { AccountFlowsError } from '../errors.ts'
import type {
  AuditEvent,
  Log,
  MailJob,
  MailKind,
  MailOutbox,
  OutgoingMail,
  User,
} from '../ports.ts'
import type { MintedLink, NoMail, ResolvedMail } from './outcomes.ts'

const FIRST_RETRY_MS = 2_000
const LAST_RETRY_MS = 300_000
/** Anybody may have written it. */
const MAX_AUDITED_LENGTH = 256
const LOOK_FOR_SMTP_MS = 2_000

/** What a worker does with one claimed job (D20): what cannot be sent is tried again, or given up. */
export type DeliverMail = (job: MailJob) => Promise<void>

export interface MailDeliveryPorts {
  flows: Record<
    MailKind,
    {
      resolve(job: MailJob): Promise<ResolvedMail | NoMail>
      mint(job: MailJob, mail: ResolvedMail): Promise<MintedLink | 'superseded'>
    }
  >
  outbox: MailOutbox
  render(kind: MailKind, user: User, link: MintedLink): Omit<OutgoingMail, 'to'>
  /** Throws `ERR_MAIL_REFUSED` or `ERR_MAIL_ADDRESS` where trying again is no use. */
  send(mail: OutgoingMail): Promise<void>
  /** False while there is nowhere to send to: jobs are resolved, and wait. */
  canSend(): boolean
  /** Voids the link of a mail that will never arrive. */
  voidLink(job: MailJob, userId: string): Promise<void>
  audit(event: AuditEvent): Promise<void>
  /** Stands for an identifier in the audit log, and tells nothing about it. */
  keyedHash(identifier: string): string
  log: Log
  now(): Date
}

export function createMailDelivery(ports: MailDeliveryPorts): DeliverMail {
  const { flows, outbox, audit, now } = ports

  const event = (job: MailJob, what: 'requested' | 'mail_sent' | 'mail_failed') =>
    ({
      id: `${what}:${job.id}`,
      type: `${job.kind}_${what}`,
      at: now(),
      clientId: job.carried.clientId?.slice(0, MAX_AUDITED_LENGTH),
      ...job.requester,
    }) as const

  async function recordRequest(job: MailJob, outcome: ResolvedMail | NoMail) {
    const isFound = typeof outcome !== 'string'
    const at = job.requestedAt
    await audit({
      ...event(job, 'requested'),
      at,
      accountId: isFound ? outcome.user.id : job.accountId,
      ...(!isFound && { reason: outcome }),
      ...(!isFound &&
        job.identifier !== undefined && {
          details: { identifier_hash: ports.keyedHash(job.identifier) },
        }),
    })
    if (job.pendingLoginId === undefined) return
    const { accountId } = job
    await audit({
      ...event(job, 'requested'),
      at,
      id: `blocked:${job.id}`,
      type: 'email_login_blocked',
      accountId,
    })
  }

  async function endWithoutMail(job: MailJob, accountId: string, reason: NoMail) {
    await outbox.remove(job)
    await audit({ ...event(job, 'mail_failed'), accountId, reason })
  }

  async function send(job: MailJob, mail: ResolvedMail) {
    const link = await flows[job.kind].mint(job, mail)
    if (link === 'superseded') return endWithoutMail(job, mail.user.id, link)
    await ports.send({ to: mail.email, ...ports.render(job.kind, mail.user, link) })
    await outbox.remove(job)
    await audit({ ...event(job, 'mail_sent'), accountId: mail.user.id })
  }

  async function fail(job: MailJob, userId: string, error: AccountFlowsError) {
    const reason = error.code
    ports.log('warn', error.message, { job: job.id, kind: job.kind, code: reason })
    const retryAt = new Date(now().getTime() + backoffMs(job.attempts))
    const isOver = isPermanent(reason) || retryAt >= job.expiresAt
    await audit({
      ...event(job, 'mail_failed'),
      id: `mail_failed:${job.id}:${job.attempts}`,
      accountId: userId,
      reason,
    })
    if (!isOver) return outbox.retry(job, retryAt, reason)
    await ports.voidLink(job, userId)
    await outbox.giveUp(job, now(), reason)
  }

  const wait = (job: MailJob) =>
    outbox.retry(job, new Date(now().getTime() + LOOK_FOR_SMTP_MS), 'smtp_not_configured')

  return async (job) => {
    if (now() >= job.expiresAt) return outbox.giveUp(job, now(), 'expired')
    const outcome = await flows[job.kind].resolve(job)
    if (outcome === 'lease_lost') return
    await recordRequest(job, outcome)
    if (typeof outcome === 'string') return outbox.remove(job)
    if (!ports.canSend()) return wait(job)
    try {
      await send(job, outcome)
    } catch (error) {
      if (!(error instanceof AccountFlowsError)) throw error
      await fail(job, outcome.user.id, error)
    }
  }
}

function isPermanent(reason: string): boolean {
  return reason === 'ERR_MAIL_REFUSED' || reason === 'ERR_MAIL_ADDRESS'
}

function backoffMs(attempts: number): number {
  const longest = Math.min(FIRST_RETRY_MS * 2 ** (attempts - 1), LAST_RETRY_MS)
  return longest / 2 + Math.random() * (longest / 2)
}
