import { createHash } from 'node:crypto'
import { AccountFlowsError } from '../errors.ts'
import type { SecretBox } from '../crypto/secret-box.ts'
import type { Log, SettingsStore, StoredSettings } from '../ports/index.ts'
import { applied } from './change.ts'
import type { Report, SettingProblem } from './kinds.ts'
import { failClosed, parseAll, strictestValues } from './parse-all.ts'
import {
  MASK,
  toSeal,
  unset,
  usable,
  withoutContradiction,
  type OpenedSettings,
  type WantedSettings,
} from './rules.ts'
import { isSealed, openAll, sealAll } from './sealing.ts'
import { allSettings, settingNamed, type Settings } from './table.ts'

export type { SettingProblem } from './kinds.ts'

const MAX_ATTEMPTS = 10
const UNREADABLE =
  'the stored settings cannot be read, and nothing is written over them: repair the record, or delete it; until then what was in force stays, and a start takes the strictest'

/** The settings in force, as sent over the wire: secrets masked, those without a value left out. */
export interface ShownSettings {
  settings: Record<string, string>
  /** Another one whenever anything stored is another one (RFC 9110, 8.8.3). */
  etag: string
}

export interface SettingsChange extends ShownSettings {
  /** Names of the settings whose value is another one now. */
  changed: string[]
  warnings: string[]
}

/**
 * `stale`: the settings have none of the ETags of `ifMatch`. `unreadable`: the record cannot be read, and is not written over.
 * Nothing was changed.
 */
export type SettingsOutcome = SettingsChange | SettingProblem[] | 'stale' | 'unreadable'

export interface ChangeConditions {
  /** ETags, one of which the settings must have. `undefined`: whatever they have. */
  ifMatch?: readonly string[] | undefined
  /** Everything is checked, nothing applied; the answer is what would be. */
  isDryRun?: boolean
  /** Called with the keys just before they are changed, once more where somebody else was first. If it throws, nothing is changed. */
  announce?(keys: string[]): Promise<void>
}

/** What was done about keys that are not the first of the ring. */
export interface Resealed {
  /** Names of the settings that another key had sealed. */
  resealed: string[]
  /** Names of those that no key of the ring opens. */
  unreadable: string[]
}

/** Something wrong with what is stored; never the value. */
export interface SettingFault {
  key: string
  problem: string
}

export interface SettingsKeeper {
  /** The settings in force: held in memory, no round trip. */
  current(): Settings
  /** As `current`, as sent over the wire. */
  shown(): Record<string, string>
  /** What is wrong with what is stored, as of the last look. */
  faults(): SettingFault[]
  /** Takes over what is stored, and shows it: one read. */
  read(): Promise<ShownSettings>
  /** Takes over what is stored, if it is anything else: one read. */
  refresh(): Promise<void>
  /** All keys are checked, then all are applied, or none. Effective at once in this process. */
  change(wanted: WantedSettings, conditions?: ChangeConditions): Promise<SettingsOutcome>
  /** Changes those of `wanted` that have no stored value. */
  changeUnset(wanted: WantedSettings): Promise<SettingsOutcome>
  /** Seals every secret with the first key of the ring; with `isDryRun`, tells what that would do. */
  reseal(options?: { isDryRun?: boolean }): Promise<Resealed | 'unreadable'>
}

type Outcome = Omit<SettingsChange, 'etag'> | SettingProblem[] | 'stale'

/** One version of the settings, as stored and as opened, without the secrets that no key opens. */
type Held = StoredSettings & OpenedSettings

export function createSettingsKeeper(
  store: SettingsStore,
  box: SecretBox,
  log: Log,
): SettingsKeeper {
  let held: Held = { version: -1, values: {}, plain: {}, inForce: strictestValues }
  let current = parseAll(held.inForce)
  let reported = new Map<string, { value: string; problem: string }>()
  let last: Promise<unknown> = Promise.resolve()
  let waiting: Promise<void> | undefined

  // One look or change after the other: none sees half of another, or takes back a newer one.
  function inTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = last.then(work, work)
    last = turn.catch(() => {})
    return turn
  }

  // Whoever asks while others wait for their turn gets what they get: in an outage nobody waits for more than two reads.
  function follow(): Promise<void> {
    waiting ??= inTurn(async () => {
      waiting = undefined
      const stored = await store.read()
      if (etagOf(stored) !== etagOf(held)) await hold(stored)
    })
    return waiting
  }

  // Whatever the version says: a record edited by hand keeps its own.
  async function takeOver(): Promise<void> {
    await hold(await store.read())
  }

  // What is wrong with it is told once.
  async function hold(stored: StoredSettings): Promise<void> {
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
      held = { ...stored, plain, inForce: failClosed(plain, held.inForce, report) }
      current = parseAll(usable(held), report)
    }
    reported = wrong
  }

  /** Writes what `next` makes of what is stored, if it can be read, and again where somebody else wrote meanwhile. */
  async function write<T>(
    next: () => Promise<{ stored?: Record<string, string>; outcome: T }>,
  ): Promise<T | 'unreadable'> {
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
      await takeOver()
      if (held.isUnreadable) return 'unreadable'
      const { version } = held
      const { stored: values, outcome } = await next()
      if (!values) return outcome
      if (await store.write(values, version)) {
        // Not read again: by then somebody else may have written, or the database be gone, and this is done.
        await hold({ version: version + 1, values })
        return outcome
      }
    }
    throw new AccountFlowsError('ERR_SETTINGS_CONFLICT', 'Too many changes at the same time')
  }

  async function change(
    wantedOf: (held: Held) => WantedSettings,
    { ifMatch, isDryRun = false, announce }: ChangeConditions,
  ): Promise<SettingsOutcome> {
    const outcome = await write<Outcome>(async () => {
      if (ifMatch && !ifMatch.some((etag) => etag === '*' || etag === etagOf(held))) {
        return { outcome: 'stale' }
      }
      const wanted = wantedOf(held)
      const next = applied(held, wanted)
      if ('problems' in next) return { outcome: next.problems }
      const { values, inForce, warnings } = next
      const changed = changedBy(next.wanted, values)
      const outcome = { changed, warnings, settings: shownOf(inForce) }
      if (changed.length === 0 || isDryRun) return { outcome }
      await announce?.(changed)
      const kept = Object.entries(held.values).filter(([name]) => !changed.includes(name))
      const sealed = sealAll(toSeal(changed, values), values, box)
      return { stored: { ...Object.fromEntries(kept), ...sealed }, outcome }
    })
    if (Array.isArray(outcome) || typeof outcome === 'string') return outcome
    return { ...outcome, etag: etagOf(held) }
  }

  function changedBy(wanted: WantedSettings, values: Record<string, string>): string[] {
    const names = [...new Set([...Object.keys(values), ...Object.keys(wanted)])]
    return names.filter((name) => {
      // What no key opens can be taken away too.
      if (!(name in held.plain || name in values)) {
        return name in held.values && wanted[name] === undefined
      }
      // A default that is shown, and sent back, stays a default.
      const isDefault = !(name in held.values) && values[name] === settingNamed(name)?.default
      return values[name] !== held.plain[name] && !isDefault
    })
  }

  return {
    current: () => current,
    shown: () => shownOf(held.inForce),
    faults: () => [...reported].map(([key, { problem }]) => ({ key, problem })),
    change: (wanted, conditions = {}) => inTurn(() => change(() => wanted, conditions)),
    changeUnset: (wanted) => inTurn(() => change(({ values }) => unset(wanted, values), {})),

    read: async () => {
      await follow()
      return { settings: shownOf(held.inForce), etag: etagOf(held) }
    },

    refresh: follow,

    reseal: ({ isDryRun = false } = {}) =>
      inTurn(() =>
        write(async () => {
          const sealed = Object.entries(held.values).filter((entry) => isSealed(...entry))
          const unreadable = sealed.map(([name]) => name).filter((name) => !(name in held.plain))
          const resealed = sealed
            .filter(([name, value]) => name in held.plain && !box.isCurrent(value))
            .map(([name]) => name)
          const outcome = { resealed, unreadable }
          if (resealed.length === 0 || isDryRun) return { outcome }
          return {
            stored: { ...held.values, ...sealAll(resealed, held.plain, box) },
            outcome,
          }
        }),
      ),
  }
}

function shownOf(stored: Record<string, string>): Record<string, string> {
  const values = withoutContradiction(stored)
  const shown: Record<string, string> = {}
  for (const { name, default: byDefault, secret, parse } of allSettings) {
    const stored = values[name]
    const value = stored !== undefined && parse(stored) !== undefined ? stored : byDefault
    if (value) shown[name] = secret ? MASK : value
  }
  return shown
}

// Not the version alone: a record that was edited by hand keeps its own.
function etagOf({ version, values, isUnreadable = false }: StoredSettings): string {
  const entries = Object.entries(values).sort(([a], [b]) => (a < b ? -1 : 1))
  const digest = createHash('sha256').update(JSON.stringify([isUnreadable, entries]))
  return `"${version}-${digest.digest('base64url').slice(0, 16)}"`
}
