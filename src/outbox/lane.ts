import { setMaxListeners } from 'node:events'
import { within, type Clock } from '../clock.ts'
import type { Log } from '../ports/index.ts'

const AFTER_FAILURE_MS = 2_000
/** Of the time to stop, what is under way has to end by itself before it is given back. */
const GRACE = 0.5

/** What the log tells of a job. */
interface LaneJob {
  id: string
  kind?: string
}

export interface LaneParts<Job extends LaneJob> {
  /** For the log, such as `mail`. */
  name: string
  /** So many jobs are under way at most. */
  atOnce: number
  /** More are taken once so many may be: the steps of jobs that were claimed together are one command for all of them. */
  wave: number
  /** Without a ring, it looks so often at least. */
  pollMs: number
  claim(most: number): Promise<Job[]>
  /** What it throws is logged; the lease of the job runs out, and it is taken again. */
  work(job: Job): Promise<void>
  clock: Clock
  log: Log
}

/** Takes jobs of one stage, many at a time, until it is stopped. */
export function createLane<Job extends LaneJob>(parts: LaneParts<Job>) {
  const { name, atOnce, claim, work, clock, log } = parts
  const underWay = new Set<Promise<void>>()
  const bell = createBell(clock)
  let stopping = new AbortController()
  let running = Promise.resolve()
  let mayBeMore = false

  async function claimed(): Promise<Job[] | 'failed'> {
    const free = atOnce - underWay.size
    mayBeMore = free < parts.wave
    if (mayBeMore) return []
    try {
      const jobs = await claim(free)
      mayBeMore = jobs.length === free
      return jobs
    } catch (error) {
      log('error', `${name} outbox failed`, { error: String(error) })
      return 'failed'
    }
  }

  function begin(job: Job) {
    const failed = (error: unknown) =>
      log('error', `${name} job failed`, { ...toldOf(job), error: String(error) })
    const working = work(job)
      .catch(failed)
      .finally(() => {
        underWay.delete(working)
        if (mayBeMore) bell.ring()
      })
    underWay.add(working)
  }

  async function run({ signal }: AbortController) {
    while (!signal.aborted) {
      const jobs = await claimed()
      if (jobs === 'failed') {
        await clock.sleep(AFTER_FAILURE_MS, { signal, ref: false })
      } else if (jobs.length > 0) jobs.forEach(begin)
      else await bell.wait(parts.pollMs * (0.5 + Math.random() / 2))
    }
    await Promise.all(underWay)
  }

  return {
    start() {
      stopping.abort()
      stopping = new AbortController()
      running = run(stopping)
    },

    /** There may be something to do. */
    ring: bell.ring,

    /** Takes a job that somebody else claimed. `false`: there is no room. */
    accept(job: Job): boolean {
      const hasRoom = underWay.size < atOnce && !stopping.signal.aborted
      if (hasRoom) begin(job)
      return hasRoom
    },

    /** Takes no more jobs. Resolves when none is under way. */
    stop() {
      stopping.abort()
      bell.ring()
      return running
    },
  }
}

/** Lets one loop sleep until there is something to do. */
function createBell({ sleep }: Clock) {
  let rung = new AbortController()

  return {
    /** Ends the wait under way, or the next one. */
    ring: () => rung.abort('rung'),

    async wait(atMostMs: number): Promise<void> {
      await sleep(atMostMs, { signal: rung.signal, ref: false })
      rung = new AbortController()
    },
  }
}

type Lane = Pick<ReturnType<typeof createLane>, 'start' | 'stop'>

/** Lanes that start and stop together. @param atOnce - so many jobs are under way at most in those that hear `giveBack`. */
export function createLanes(clock: Clock, lanes: Lane[], atOnce: number) {
  let giving = new AbortController()

  return {
    /** Aborts where jobs under way are to be given back. */
    giveBack: (): AbortSignal => giving.signal,

    start() {
      giving = new AbortController()
      setMaxListeners(2 * atOnce, giving.signal)
      for (const lane of lanes) lane.start()
    },

    /** Takes no more, waits for those under way, and gives back what does not end in time: all within `withinMs`. */
    async stop(withinMs: number) {
      const finished = Promise.all(lanes.map((lane) => lane.stop()))
      await within(clock, withinMs * GRACE, finished)
      giving.abort()
      await within(clock, withinMs * (1 - GRACE), finished)
    },
  }
}

const toldOf = ({ id, kind }: LaneJob) => ({ job: id, ...(kind !== undefined && { kind }) })
