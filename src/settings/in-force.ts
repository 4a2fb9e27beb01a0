import { createHash } from 'node:crypto'
import { oneAtATime } from '../clock.ts'
import type { SecretBox } from '../crypto/secret-box.ts'
import { AccountFlowsError } from '../errors.ts'
import { nextVersion, type Change } from './history.ts'
import type { Log } from '../contract/index.ts'
import type { AccountFlowsStore, StoredSettings } from '../store/index.ts'
import type { Report } from './kinds.ts'
import {
  failClosed,
  parseAll,
  strictestValues,
  withoutContradiction,
  type OpenedSettings,
} from './rules.ts'
import { openedSettings } from './change.ts'
import { openAll } from './secrets.ts'
import type { Settings } from './table.ts'

const MAX_ATTEMPTS = 10
const UNREADABLE =
  'the stored settings cannot be read. Repair the record, or delete it. Until then no change is stored. ' +
  'A running process keeps its settings; a new process uses the strictest values'
export type Held = StoredSettings & OpenedSettings

/** Holds the stored settings in memory, follows their changes, and writes them. */
export function createHeldSettings(store: AccountFlowsStore['settings'], box: SecretBox, log: Log) {
  let held: Held = { version: -1, values: {}, plain: {}, inForce: strictestValues }
  const smtpFault = 'The stored settings were not read'
  let current: Settings = { ...parseAll(strictestValues), smtpFault }
  let reported = new Map<string, { value: string; problem: string }>()
  let waiting: Promise<void> | undefined

  // Each fault is logged once.
  function hold(stored: StoredSettings): void {
    const wrong: typeof reported = new Map()
    const report: Report = (key, value, problem) => {
      wrong.set(key, { value, problem })
      if (reported.get(key)?.value !== value) log('error', problem, { key })
    }
    if (stored.isUnreadable) {
      report('values', '', UNREADABLE)
      held = { ...held, ...stored }
    } else {
      const plain = openAll(stored.values, box, report)
      const closed = failClosed(plain, held.inForce, report)
      held = { ...stored, plain, inForce: withoutContradiction(closed, report) }
      current = openedSettings(held, report)
    }
    reported = wrong
  }

  const ofAll = oneAtATime()
  // One after the other: no read or change sees half of another, or undoes a newer one.
  const inTurn = <T>(work: () => Promise<T>) => ofAll('settings', work)

  // Callers that wait for their turn share one read. So in an outage no caller waits for more than two reads.
  function follow(): Promise<void> {
    waiting ??= inTurn(async () => {
      waiting = undefined
      const stored = await store.read()
      if (etagOf(stored) !== etagOf(held)) hold(stored)
    })
    return waiting
  }

  /** Writes what `next` makes of the stored settings. If another process writes meanwhile, it tries again. */
  async function write<T>(
    next: (held: Held) => Promise<{ outcome: T } | (Change & { outcome: T })>,
  ): Promise<T | 'unreadable'> {
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
      // Also if the version is the same: a record edited by hand keeps its version.
      hold(await store.read())
      if (held.isUnreadable) return 'unreadable'
      const change = await next(held)
      if (!('values' in change)) return change.outcome
      const stored = nextVersion(held, change)
      if (await store.write(stored.values, held.version, stored.history)) {
        // Not read again: this change is done, even if another change came since, or the database is gone.
        hold(stored)
        return change.outcome
      }
    }
    throw new AccountFlowsError('ERR_SETTINGS_CONFLICT', 'Too many changes at the same time')
  }

  return {
    now: () => held,
    current: () => current,
    faults: () => [...reported].map(([key, { problem }]) => ({ key, problem })),
    inTurn,
    follow,
    write,
  }
}

// Not the version alone: a record edited by hand keeps its version.
export function etagOf({ version, values, isUnreadable = false }: StoredSettings): string {
  const entries = Object.entries(values).sort(([a], [b]) => (a < b ? -1 : 1))
  const digest = createHash('sha256').update(JSON.stringify([isUnreadable, entries]))
  return `"${version}-${digest.digest('base64url').slice(0, 16)}"`
}
