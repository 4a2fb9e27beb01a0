import { within, type Clock } from '../clock.ts'
import type { OwnKeyRing } from '../crypto/keys.ts'
import type { Log } from '../contract/index.ts'
import type { SettingsKeeper } from '../settings/settings.ts'
import type { AccountFlowsStore } from '../store/index.ts'

/** Every process follows new settings within two seconds. */
const FOLLOW_SETTINGS_MS = 1_900
const TIDY_MS = 10_000
/** For databases that do not purge by themselves. */
const PURGE_MS = 60_000
const NOTE_KEYS_MS = 60_000
const CLOCK_TOLERANCE_MS = 1_000
const HEALTH_MS = 2_000

/** Whether this process can answer requests. `not_started`: also while it stops. `database`: the database does not answer. */
export type Health = { isReady: true } | { isReady: false; reason: 'not_started' | 'database' }

/** Finishes what a dead process left. `settled` resolves once the work of this process is done. */
interface Unfinished {
  finishUnfinished(): Promise<void>
  settled(): Promise<unknown>
}

interface MaintenanceParts {
  /** By their names in the log. */
  unfinished: Record<string, Unfinished>
  settingsKeeper: SettingsKeeper
  keyRing: OwnKeyRing
  store: Pick<AccountFlowsStore, 'now' | 'purge'>
  mailQueue: { tidy(): Promise<void> }
  clock: Clock
  log: Log
}

/** Background work: follows the settings, and finishes what a dead process left. */
export function createMaintenance(parts: MaintenanceParts) {
  const { settingsKeeper, unfinished, mailQueue, keyRing, store, clock, log } = parts
  let stopping = new AbortController()
  let loops: Promise<void>[] = []

  async function repeat(what: string, everyMs: number, work: () => Promise<void>) {
    const { signal } = stopping
    while (!signal.aborted) {
      try {
        await work()
      } catch (error) {
        log('error', `${what} failed`, { error: String(error) })
      }
      await clock.sleep(everyMs, { signal, ref: false })
    }
  }

  return {
    /** @param hasWorkers - whether this process also finishes the work of dead processes. */
    async start(initialSettings: Record<string, string>, hasWorkers: boolean) {
      stopping.abort()
      stopping = new AbortController()
      const by = { actor: 'initialSettings', at: clock.now() }
      const outcome = await settingsKeeper.changeUnset(initialSettings, by)
      if (Array.isArray(outcome)) {
        const wrong = outcome.map(({ key, expected }) => `${key} must be ${expected}`).join('; ')
        throw new TypeError(`initialSettings: ${wrong}`)
      }
      // Cut-offs and expiry compare the times of several processes.
      const skewMs = clock.now().getTime() - (await store.now()).getTime()
      if (Math.abs(skewMs) > CLOCK_TOLERANCE_MS)
        log('warn', 'this clock and that of the database differ: use NTP on both', { skewMs })
      // Only a warning: a service may move to another address process by process.
      if (await keyRing.isShared())
        log('warn', 'another issuer uses this store: each needs a database or a prefix of its own')
      loops = [
        repeat('following the settings', FOLLOW_SETTINGS_MS, settingsKeeper.refresh),
        repeat('noting the keys', NOTE_KEYS_MS, keyRing.note),
      ]
      if (!hasWorkers) return
      loops.push(
        ...Object.entries(unfinished).map(([what, { finishUnfinished }]) =>
          repeat(`finishing ${what}`, TIDY_MS, finishUnfinished),
        ),
        repeat('tidying the mail outbox', TIDY_MS, mailQueue.tidy),
        repeat('removing what is over', PURGE_MS, store.purge),
      )
    },

    async stop(withinMs: number) {
      stopping.abort()
      if (loops.length === 0) return
      // If this fails, the note expires by itself.
      const forget = () => keyRing.forget().catch(() => {})
      const settled = Object.values(unfinished).map((flow) => flow.settled())
      await within(clock, withinMs, Promise.all([...loops, ...settled]).then(forget))
    },

    async health(): Promise<Health> {
      const isStarted = loops.length > 0 && !stopping.signal.aborted
      if (!isStarted) return { isReady: false, reason: 'not_started' }
      const answer = await within(clock, HEALTH_MS, store.now()).catch(() => 'late' as const)
      return answer === 'late' ? { isReady: false, reason: 'database' } : { isReady: true }
    },
  }
}
