import type { AccountFlowsStore, Log } from './ports.ts'
import type { SettingsKeeper } from './settings/settings.ts'

const FOLLOW_SETTINGS_MS = 1_000
const SWEEP_MS = 5_000
const CLOCK_TOLERANCE_MS = 1_000

/** What goes on beside the requests: following the settings, and finishing what a dead process left. */
export interface Upkeep {
  /** @param sweeps - whether this process finishes resets that another one left. */
  start(initialSettings: Record<string, string>, sweeps: boolean): Promise<void>
  stop(): void
}

export interface UpkeepParts {
  settings: SettingsKeeper
  passwordReset: { sweep(): Promise<void> }
  store: Pick<AccountFlowsStore, 'now'>
  log: Log
}

export function createUpkeep({ settings, passwordReset, store, log }: UpkeepParts): Upkeep {
  const timers = new Set<NodeJS.Timeout>()
  let stopped = false

  function repeat(what: string, everyMs: number, work: () => Promise<void>) {
    const run = async () => {
      timers.delete(timer)
      try {
        await work()
      } catch (error) {
        log('error', `${what} failed`, { error: String(error) })
      }
      if (!stopped) repeat(what, everyMs, work)
    }
    const timer = setTimeout(() => void run(), everyMs)
    timer.unref()
    timers.add(timer)
  }

  // Cut-offs and expiry compare times of several processes (D9).
  async function checkClock() {
    const skewMs = Date.now() - (await store.now()).getTime()
    if (Math.abs(skewMs) > CLOCK_TOLERANCE_MS) {
      log('warn', 'the clock of this process differs from that of the database', { skewMs })
    }
  }

  return {
    async start(initialSettings, sweeps) {
      stopped = false
      await settings.refresh()
      const outcome = await settings.changeUnset(initialSettings)
      if (Array.isArray(outcome)) {
        const wrong = outcome.map(({ key, expected }) => `${key} must be ${expected}`).join('; ')
        throw new TypeError(`initialSettings: ${wrong}`)
      }
      await checkClock()
      repeat('following the settings', FOLLOW_SETTINGS_MS, settings.refresh)
      if (!sweeps) return
      await passwordReset.sweep()
      repeat('finishing resets', SWEEP_MS, passwordReset.sweep)
    },

    stop() {
      stopped = true
      for (const timer of timers) clearTimeout(timer)
    },
  }
}
