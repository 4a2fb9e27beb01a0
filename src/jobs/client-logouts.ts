import { timeout, unlessAborted, type Clock } from '../clock.ts'
import type { AuditEvent, Log } from '../contract/index.ts'
import { isStoreUnavailable } from '../errors.ts'
import { setNewest } from '../store/bounded-map.ts'
import type {
  AccountFlowsStore,
  ClientLogoutJob,
  LogoutFailure,
  NotifyClient,
} from '../store/index.ts'
import { backoffMs, createWorker } from './worker.ts'

const AT_ONCE = 100
const REST_MS = 60_000
const MAX_UNAVAILABLE = 1_000
const ATTEMPT_MS = 5_000
/** Longer than an attempt and the write of its outcome. */
const LEASE_MS = 20_000
const LAST_RETRY_MS = 15 * 60_000

interface ClientLogoutParts {
  /** Whether there are clients that can be notified. */
  isOn(): boolean
  logouts: Pick<AccountFlowsStore['clientLogouts'], 'claim' | 'settle'>
  notify: NotifyClient
  audit(event: AuditEvent): Promise<void>
  clock: Clock
  log: Log
}

/**
 * Notifies clients of ended accounts, in any number of processes. A client gets one logout at a time. After a timeout it rests for a
 * minute, so that no other client waits for it.
 */
export function createClientLogouts(parts: ClientLogoutParts) {
  const { isOn, logouts, clock, log } = parts
  const after = (ms: number) => new Date(clock.now().getTime() + ms)
  /** Clients that are being notified or that rest, each with the end of that time. */
  const unavailable = new Map<string, Date>()
  const keepFrom = (client: string, ms: number) =>
    setNewest(unavailable, client, after(ms), MAX_UNAVAILABLE)

  const worker = createWorker<ClientLogoutJob>({
    name: 'client logout',
    atOnce: AT_ONCE,
    minBatch: 1,
    claim(most) {
      const now = clock.now()
      for (const [client, until] of unavailable) if (until <= now) unavailable.delete(client)
      return logouts.claim(most, now, after(LEASE_MS), [...unavailable.keys()])
    },
    async work(job, stop) {
      const recording = job.isForgotten ? { ...parts, audit: async () => {} } : parts
      if (clock.now() >= job.expiresAt) return giveUp(recording, job, job.reason)
      const { clientId } = job
      keepFrom(clientId, LEASE_MS)
      const failure = await notify(parts, job, stop).finally(() => unavailable.delete(clientId))
      if (failure?.reason === 'timeout') keepFrom(clientId, REST_MS)
      worker.wake()
      return settle(recording, job, failure)
    },
    clock,
    log,
  })

  return {
    ...worker,
    start() {
      if (isOn()) worker.start()
    },
  }
}

/** It is unknown whether the client was notified. */
const STOPPED: LogoutFailure = { reason: 'stopped', isFinal: false }

/** `undefined`: the client was notified. */
async function notify(parts: ClientLogoutParts, job: ClientLogoutJob, stop: AbortSignal) {
  const { signal, cancel } = timeout(parts.clock, ATTEMPT_MS, stop)
  try {
    return await unlessAborted(signal, () => parts.notify(job, signal))
  } catch (error) {
    if (stop.aborted) return STOPPED
    if (signal.aborted) return { reason: 'timeout', isFinal: false }
    if (isStoreUnavailable(error)) throw error
    const about = { client: job.clientId, error: String(error) }
    parts.log('error', 'a client could not be notified', about)
    return { reason: 'unexpected_error', isFinal: false }
  } finally {
    cancel()
  }
}

async function settle(parts: ClientLogoutParts, job: ClientLogoutJob, failure?: LogoutFailure) {
  const { logouts, clock } = parts
  const at = clock.now()
  if (failure === STOPPED) return logouts.settle(job, { retryAt: at })
  if (!failure) {
    // The event comes first, under a fixed id: a process that takes the job over does not record it again.
    const id = `client_logout_sent:${job.id}`
    await parts.audit({ ...about(job), id, type: 'client_logout_sent', at })
    return logouts.settle(job, { state: 'sent', at })
  }
  const { reason, isFinal } = failure
  // For a client that is down, only the first failure and the end are recorded. Each attempt would fill the log.
  if (job.reason === undefined) await recordFailed(parts, job, reason)
  const retryAt = new Date(at.getTime() + backoffMs(job.attempts, LAST_RETRY_MS))
  if (isFinal || retryAt >= job.expiresAt) return giveUp(parts, job, reason)
  return logouts.settle(job, { retryAt, reason })
}

async function giveUp(parts: ClientLogoutParts, job: ClientLogoutJob, last?: string) {
  await recordFailed(parts, job, 'gave_up', last)
  const at = parts.clock.now()
  return parts.logouts.settle(job, { state: 'dead', at, ...(last && { reason: last }) })
}

async function recordFailed(
  { audit, clock, log }: ClientLogoutParts,
  job: ClientLogoutJob,
  reason: string,
  last?: string,
) {
  const which = reason === 'gave_up' ? reason : 'first'
  const message = 'a client was not notified of an ended account'
  log('warn', message, { client: job.clientId, reason })
  await audit({
    id: `client_logout_failed:${which}:${job.id}`,
    type: 'client_logout_failed',
    at: clock.now(),
    ...about(job, last),
    reason,
  })
}

function about({ accountId, clientId, attempts }: ClientLogoutJob, last?: string) {
  return { accountId, clientId, details: { attempts, ...(last && { last }) } }
}
