import { later, type Clock } from '../clock.ts'
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
import { createLane, createLanes } from './lane.ts'

const POLL_MS = 1_000
const AT_ONCE = 100
/** Of the slow ones. */
const SLOW_AT_ONCE = 20
const ATTEMPT_MS = 5_000
/** Longer than an attempt, and what is written down of it. */
const LEASE_MS = 20_000
const LAST_RETRY_MS = 15 * 60_000

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
        const signal = together.giveBack()
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
  const together = createLanes(clock, lanes, AT_ONCE + SLOW_AT_ONCE)

  return {
    start() {
      if (parts.isOn()) together.start()
    },

    stop: together.stop,

    /** There is somebody to be told. */
    ring,
  }
}

async function attempt(parts: ClientLogoutParts, job: ClientLogoutJob, tell: () => Promise<Told>) {
  const { logouts, clock } = parts
  if (clock.now() >= job.expiresAt) return giveUp(parts, job, job.reason)
  const failure = await tell()
  const at = clock.now()
  if (failure === 'stopped') return logouts.settle(job, { retryAt: at })
  if (!failure) {
    // First: a process that takes it over does not record it again.
    const id = `client_logout_sent:${job.id}`
    await parts.audit({ ...about(job), id, type: 'client_logout_sent', at })
    return logouts.settle(job, { state: 'sent', at })
  }
  const { reason, isFinal } = failure
  if (job.reason === undefined) await recordFailed(parts, job, reason)
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
  await recordFailed(parts, job, 'gave_up', reason)
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
  last?: string,
) {
  const kind = reason === 'gave_up' ? reason : 'first'
  const { details, ...whose } = about(job)
  const client = job.clientId
  log('warn', 'a client was not told that an account is ended', { client, reason })
  await audit({
    id: `client_logout_failed:${kind}:${job.id}`,
    type: 'client_logout_failed',
    at: clock.now(),
    ...whose,
    reason,
    details: { ...details, ...(last && { last }) },
  })
}
