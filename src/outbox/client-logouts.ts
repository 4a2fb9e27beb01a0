import { setMaxListeners } from 'node:events'
import { later, within, type Clock } from '../clock.ts'
import { isStoreUnavailable } from '../errors.ts'
import type {
  AuditEvent,
  ClientLogoutJob,
  ClientLogoutStore,
  Log,
  TellClient,
  WhichClients,
} from '../ports/index.ts'
import { backoffMs } from './backoff.ts'
import { createClientPlaces, type Told } from './client-places.ts'
import { createLane } from './lane.ts'

const POLL_MS = 1_000
const AT_ONCE = 100
/** Of the slow ones. */
const SLOW_AT_ONCE = 20
const ATTEMPT_MS = 5_000
/** Longer than an attempt, and what is written down of it. */
const LEASE_MS = 20_000
const LAST_RETRY_MS = 15 * 60_000
/** Of the time to stop, what is under way has to end by itself before it is given back. */
const GRACE = 0.5

export interface ClientLogoutParts {
  /** Whether there are clients that can be told. */
  isOn(): boolean
  logouts: Pick<ClientLogoutStore, 'claim' | 'settle'>
  tell: TellClient
  audit(event: AuditEvent): Promise<void>
  clock: Clock
  log: Log
}

/** Tells clients that accounts are ended, in any number of processes. */
export function createClientLogouts(parts: ClientLogoutParts) {
  const { logouts, clock, log } = parts
  let giveBack = new AbortController()
  const after = (ms: number) => new Date(clock.now().getTime() + ms)

  const of = ({ isForgotten }: ClientLogoutJob) =>
    isForgotten ? { ...parts, audit: async () => {} } : parts
  const laneOf = (atOnce: number, clients: () => WhichClients) =>
    createLane<ClientLogoutJob>({
      name: 'client logout',
      atOnce,
      wave: 1,
      pollMs: POLL_MS,
      claim: (most) => logouts.claim(most, clock.now(), after(LEASE_MS), clients()),
      work: (job) => {
        const { signal } = giveBack
        return attempt(of(job), job, () =>
          places.during(job.clientId, () => tried(parts, job, signal)),
        )
      },
      clock,
      log,
    })
  const lanes = [
    laneOf(AT_ONCE, () => ({ except: places.taken() })),
    laneOf(SLOW_AT_ONCE, () => ({ only: places.slow() })),
  ]
  const ring = () => lanes.forEach((lane) => lane.ring())
  const places = createClientPlaces(ring)

  return {
    start() {
      if (!parts.isOn()) return
      giveBack = new AbortController()
      setMaxListeners(2 * (AT_ONCE + SLOW_AT_ONCE), giveBack.signal)
      for (const lane of lanes) lane.start()
    },

    /** There is somebody to be told. */
    ring,

    /** Takes no more, waits for those under way, and gives back what does not end in time: all within `withinMs`. */
    async stop(withinMs: number) {
      const finished = Promise.all(lanes.map((lane) => lane.stop()))
      await within(clock, withinMs * GRACE, finished)
      giveBack.abort()
      await within(clock, withinMs * (1 - GRACE), finished)
    },
  }
}

async function attempt(parts: ClientLogoutParts, job: ClientLogoutJob, tell: () => Promise<Told>) {
  const { logouts, clock } = parts
  if (clock.now() >= job.expiresAt) return giveUp(parts, job, job.reason)
  const failure = await tell()
  const at = clock.now()
  if (failure === 'stopped') return logouts.settle(job, { retryAt: at })
  if (!failure) {
    // First: whoever takes it over once more does not record it again.
    const id = `client_logout_sent:${job.id}`
    await parts.audit({ ...about(job), id, type: 'client_logout_sent', at })
    return logouts.settle(job, { state: 'sent', at })
  }
  const { reason, isFinal } = failure
  if (job.reason === undefined) await recordFailed(parts, job, reason, about(job).details)
  const retryAt = new Date(at.getTime() + backoffMs(job.attempts, LAST_RETRY_MS))
  if (isFinal || retryAt >= job.expiresAt) return giveUp(parts, job, reason)
  return logouts.settle(job, { retryAt, reason })
}

async function tried(
  { tell, clock, log }: ClientLogoutParts,
  job: ClientLogoutJob,
  stop: AbortSignal,
): Promise<Told> {
  const trying = new AbortController()
  const { signal } = trying
  const ended = new Promise<Told>((resolve) => {
    const end = (outcome: Told) => () => {
      resolve(outcome)
      trying.abort('ended')
    }
    const cancel = later(clock, ATTEMPT_MS, end({ reason: 'timeout', isFinal: false }))
    signal.addEventListener('abort', cancel)
    stop.addEventListener('abort', end('stopped'), { signal })
    if (stop.aborted) end('stopped')()
  })
  try {
    return await Promise.race([tell(job, signal), ended])
  } catch (error) {
    if (isStoreUnavailable(error)) throw error
    log('error', 'a client could not be told', { client: job.clientId, error: String(error) })
    return { reason: 'unexpected_error', isFinal: false }
  } finally {
    trying.abort('over')
  }
}

async function giveUp(parts: ClientLogoutParts, job: ClientLogoutJob, reason?: string) {
  const { details } = about(job)
  await recordFailed(parts, job, 'gave_up', { ...details, ...(reason && { last: reason }) })
  const at = parts.clock.now()
  return parts.logouts.settle(job, { state: 'dead', at, ...(reason && { reason }) })
}

function about({ accountId, clientId, attempts }: ClientLogoutJob) {
  return { accountId, clientId, details: { attempts } }
}

/** Of a client that is down, the first failure and the end: each attempt would fill the log. */
async function recordFailed(
  { audit, clock, log }: ClientLogoutParts,
  job: ClientLogoutJob,
  reason: string,
  details: { attempts: number; last?: string },
) {
  const kind = reason === 'gave_up' ? reason : 'first'
  const { accountId, clientId } = job
  log('warn', 'a client was not told that an account is ended', { client: clientId, reason })
  await audit({
    id: `client_logout_failed:${kind}:${job.id}`,
    type: 'client_logout_failed',
    at: clock.now(),
    accountId,
    clientId,
    reason,
    details,
  })
}
