import type { Clock } from '../clock.ts'
import { AccountFlowsError, type ErrorCode, isStoreUnavailable } from '../errors.ts'
import type {
  Log,
  MailConnection,
  MailJob,
  MailKind,
  MailOutbox,
  OutgoingMail,
  User,
} from '../ports/index.ts'
import type { Settings } from '../settings/table.ts'
import type { MailBrake } from './brake.ts'
import type { MailEvents } from './events.ts'
import type { MailFlows, MailLink, Recipient } from './mail-flow.ts'
import type { MailResolution } from './resolve.ts'
import type { SendTurn } from './worker.ts'

const FIRST_RETRY_MS = 2_000
const LAST_RETRY_MS = 60_000
const SETTLE_AGAIN_MS = 1_000

/** Sends the mail of one resolved job: what cannot be sent is tried again, or given up. */
export type DeliverMail = (job: MailJob, turn: SendTurn) => Promise<void>

export interface MailDeliveryPorts {
  flows: MailFlows
  resolution: Pick<MailResolution, 'recipientOf' | 'end' | 'giveUp'>
  outbox: MailOutbox
  brake: Pick<MailBrake, 'mayLeave'>
  events: MailEvents
  /** Throws `ERR_MAIL_FAILED`. */
  connect(settings: Settings, signal: AbortSignal): Promise<MailConnection>
  render(
    kind: MailKind,
    user: User,
    link: MailLink,
    job: MailJob,
  ): Omit<OutgoingMail, 'to' | 'kind'>
  settings(): Settings
  log: Log
  clock: Clock
}

export function createMailDelivery(ports: MailDeliveryPorts): DeliverMail {
  const { flows, resolution, outbox, brake, events, log, clock } = ports
  const { now } = clock

  // The token is made when a connection is free, or will be in a moment as mails leave; it counts only while this worker holds the
  // job. `undefined`: it has to wait.
  async function send(job: MailJob, recipient: Recipient, signal: AbortSignal, isFlowing: boolean) {
    const settings = ports.settings()
    if (!(await brake.mayLeave())) return undefined
    const flow = flows[job.kind]
    let connection = isFlowing ? undefined : await ports.connect(settings, signal)
    try {
      const link = await flow.mint(job, recipient, settings)
      if (link === 'superseded') {
        if (await outbox.isHeld(job)) await resolution.end(job, link)
        return 'over'
      }
      const mail = ports.render(job.kind, recipient.user, link, job)
      connection ??= await ports.connect(settings, signal)
      if (!(await outbox.isHeld(job))) {
        await flow.revoke(link)
        return 'over'
      }
      await connection.send({ ...mail, to: recipient.email, kind: job.kind })
      return 'sent'
    } finally {
      connection?.release()
    }
  }

  // It left: it is not sent again because the database is away for a moment, or because the event cannot be recorded.
  async function settle(job: MailJob, turn: SendTurn) {
    let isRecorded = false
    for (;;) {
      try {
        isRecorded ||= await recorded(job)
        await outbox.remove(job)
        return
      } catch (error) {
        const mayTryAgain = !turn.isStopping() && now() < job.heldUntil
        if (!isStoreUnavailable(error) || !mayTryAgain) throw error
      }
      await clock.sleep(SETTLE_AGAIN_MS)
    }
  }

  async function recorded(job: MailJob): Promise<true> {
    try {
      await events.sent(job)
    } catch (error) {
      if (isStoreUnavailable(error)) throw error
      log('error', 'a sent mail was not recorded', { job: job.id, error: String(error) })
    }
    return true
  }

  async function fail(job: MailJob, error: unknown, turn: SendTurn) {
    if (isStoreUnavailable(error)) throw error
    if (turn.isStopping()) return outbox.release(job, now(), 'stopped')
    const reason = reasonOf(error)
    const level = reason === UNEXPECTED ? 'error' : 'warn'
    log(level, String(error), { job: job.id, kind: job.kind, reason })
    await events.failed(job, reason)
    const retryAt = new Date(now().getTime() + backoffMs(job.attempts))
    if (!isPermanent(error) && retryAt < job.expiresAt) return outbox.release(job, retryAt, reason)
    await resolution.giveUp(job, reason)
  }

  async function isSent(job: MailJob, turn: SendTurn): Promise<boolean> {
    try {
      const recipient = await resolution.recipientOf(job)
      if (typeof recipient === 'string') {
        await resolution.end(job, recipient)
        return false
      }
      const outcome = await turn.take((signal, isFlowing) =>
        send(job, recipient, signal, isFlowing),
      )
      if (outcome === undefined) await outbox.release(job, job.notBefore)
      return outcome === 'sent'
    } catch (error) {
      await fail(job, error, turn)
      return false
    }
  }

  return async (job, turn) => {
    if (await isSent(job, turn)) await settle(job, turn)
  }
}

const UNEXPECTED = 'unexpected_error'

function reasonOf(error: unknown): ErrorCode | typeof UNEXPECTED {
  return error instanceof AccountFlowsError ? error.code : UNEXPECTED
}

function isPermanent(error: unknown): boolean {
  const reason = reasonOf(error)
  return reason === 'ERR_MAIL_REFUSED' || reason === 'ERR_MAIL_ADDRESS'
}

function backoffMs(attempts: number): number {
  const longest = Math.min(FIRST_RETRY_MS * 2 ** (attempts - 1), LAST_RETRY_MS)
  return longest / 2 + Math.random() * (longest / 2)
}
