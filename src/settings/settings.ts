/** The one keeper that holds, shows and changes the settings (2.5). It knows neither their readers nor how an admin asks for a change. */
import type { SecretBox } from '../crypto/secret-box.ts'
import type { Log } from '../contract/index.ts'
import type { AccountFlowsStore } from '../store/index.ts'
import { applied, openedSettings, unset } from './change.ts'
import { createHeldSettings, etagOf, type Held } from './in-force.ts'
import { historyOf, type Author } from './history.ts'
import type { SettingProblem, Values } from './kinds.ts'
import { missingForLogin, shownOf, type WantedSettings } from './rules.ts'
import { isOfLogin, isSealed, sealAll } from './secrets.ts'
import { settingNamed } from './table.ts'

interface ChangeConditions {
  /** For the history. */
  by?: Author | undefined
  /** The settings must have one of these ETags. `undefined`: any ETag will do. */
  ifMatch?: readonly string[] | undefined
  /** Applies nothing. The answer is that of a change. */
  isDryRun?: boolean
  /** Called with the keys just before they are changed, and again if another change came first. If it throws, nothing is changed. */
  announce?(keys: string[]): Promise<void>
}

/** With problems, or `stale` (none of the ETags of `ifMatch`), nothing was changed. */
type Outcome =
  { settings: Values; changed: string[]; warnings: string[] } | SettingProblem[] | 'stale'

export type SettingsKeeper = ReturnType<typeof createSettingsKeeper>

export function createSettingsKeeper(
  store: AccountFlowsStore['settings'],
  box: SecretBox,
  log: Log,
  hasTransport = false,
) {
  const held = createHeldSettings(store, box, log)
  const { current, faults, inTurn, follow } = held

  async function change(
    wantedOf: (held: Held) => WantedSettings,
    { by, ifMatch, isDryRun = false, announce }: ChangeConditions,
  ) {
    const outcome = await held.write<Outcome>(async (held) => {
      if (ifMatch && !ifMatch.some((etag) => etag === '*' || etag === etagOf(held))) {
        return { outcome: 'stale' }
      }
      const next = applied(held, wantedOf(held), hasTransport)
      if ('problems' in next) return { outcome: next.problems }
      const { values, inForce, warnings } = next
      const changed = changedBy(held, next.wanted, values)
      const outcome = { changed, warnings, settings: shownOf(inForce) }
      if (changed.length === 0 || isDryRun) return { outcome }
      await announce?.(changed)
      const kept = Object.entries(held.values).filter(([name]) => !changed.includes(name))
      const sealed = sealAll(changed, held.plain, values, box)
      return { values: { ...Object.fromEntries(kept), ...sealed }, changed, by, outcome }
    })
    if (Array.isArray(outcome) || typeof outcome === 'string') return outcome
    return { ...outcome, etag: etagOf(held.now()) }
  }

  return {
    /** The settings in force, from memory. */
    current,
    /** What is wrong with the stored settings, as of the last read. */
    faults,
    /** Takes over the stored settings if they changed: one read. */
    refresh: follow,

    /** The kept versions, newest first, and the ETag of the first: one read. */
    async history() {
      const stored = await store.read()
      if (stored.isUnreadable) return 'unreadable'
      return { versions: historyOf(stored), etag: etagOf(stored) }
    },

    /** Takes over the stored settings, and shows them: one read. */
    async read() {
      await follow()
      return { settings: shownOf(held.now().inForce), etag: etagOf(held.now()) }
    },

    /** The settings as they would be with `wanted`. `secretsLeft` names the secrets of the login that are for another server. */
    tried: (wanted: WantedSettings) => triedOn(held.now(), wanted, hasTransport),

    /** Applies all or none. This process uses them at once. */
    change: (wanted: WantedSettings, conditions: ChangeConditions = {}) =>
      inTurn(() => change(() => wanted, conditions)),

    /** Changes those of `wanted` that have no stored value. */
    changeUnset: (wanted: WantedSettings, by?: Author) =>
      inTurn(() => change(({ values }) => unset(wanted, values), { by })),

    /** Seals every secret with the first key of the ring; with `isDryRun`, only answers what that would do. */
    reseal: ({ isDryRun = false, by }: Pick<ChangeConditions, 'isDryRun' | 'by'> = {}) =>
      inTurn(() =>
        held.write(async ({ values, plain }) => {
          const outcome = toReseal({ values, plain }, box)
          if (outcome.resealed.length === 0 || isDryRun) return { outcome }
          const sealed = sealAll(outcome.resealed, plain, plain, box)
          return { values: { ...values, ...sealed }, changed: [], by, outcome }
        }),
      ),
  }
}

function triedOn(held: Held, wanted: WantedSettings, hasTransport: boolean) {
  const next = applied(held, wanted, hasTransport)
  if ('problems' in next) return next.problems
  const settings = openedSettings({ ...held, inForce: next.inForce })
  const isSecret = (name: string) => settingNamed(name)?.secret === true
  // If something else is missing too, that is what the admin needs to know.
  const secretsLeft = missingForLogin(settings).every(isSecret)
    ? next.forgotten.filter((secret) => isOfLogin(secret, next.inForce))
    : []
  return { settings, secretsLeft }
}

function changedBy(held: Held, wanted: WantedSettings, values: Values): string[] {
  const names = [...new Set([...Object.keys(values), ...Object.keys(wanted)])]
  return names.filter((name) => {
    // A secret that no key opens can be removed too.
    if (!(name in held.plain || name in values)) {
      return name in held.values && wanted[name] === undefined
    }
    // A default that a client reads and sends back stays a default.
    const isDefault = !(name in held.values) && values[name] === settingNamed(name)?.default
    return values[name] !== held.plain[name] && !isDefault
  })
}

function toReseal({ values, plain }: Pick<Held, 'values' | 'plain'>, box: SecretBox) {
  const sealed = Object.entries(values).filter((entry) => isSealed(...entry))
  const opened = sealed.filter(([name]) => name in plain)
  return {
    resealed: opened.filter(([, value]) => !box.isCurrent(value)).map(([name]) => name),
    unreadable: sealed.map(([name]) => name).filter((name) => !(name in plain)),
  }
}
