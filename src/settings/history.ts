import { isDeepStrictEqual } from 'node:util'
import type { SettingsVersion, StoredSettings } from '../store/index.ts'
import type { Values } from './kinds.ts'
import { settingNamed } from './table.ts'

const KEPT = 20

export type Author = Required<Pick<SettingsVersion, 'at' | 'actor'>>

/** What the settings become. `changed`: names of the settings with a new value. */
export interface Change {
  values: Values
  changed: string[]
  by: Author | undefined
}

/**
 * The kept versions, newest first, each with what it changed. The first is the present one. Of `changes`, a secret has neither `before` nor
 * `after`. `undefined`: the version before is not kept.
 */
export function historyOf(stored: StoredSettings) {
  const versions = versionsOf(stored).flat()
  const told = versions.map(({ secrets, ...version }, index) => {
    const before = versions[index - 1]?.values
    const changes = before && changesOf(before, version.values, secrets)
    return Object.assign(version, { changes })
  })
  return told.toReversed()
}

export function nextVersion(stored: StoredSettings, { values, changed, by }: Change) {
  const version = stored.version + 1
  const [earlier, present] = versionsOf(stored)
  const secrets = changed.filter((name) => settingNamed(name)?.secret)
  // A refresh token that replaces another has no author, and pushes no version out of the history.
  const isRotation = by === undefined && changed.length > 0 && secrets.length === changed.length
  const history = isRotation
    ? [...earlier, { ...present, version }]
    : [...earlier, present, { version, ...by, secrets, values: withoutSecrets(values) }]
  return { version, values, history: history.slice(-KEPT) }
}

/** The earlier versions, oldest first, and the present one. If the record was edited by hand, the present version has no author. */
function versionsOf({
  version,
  values,
  history = [],
}: StoredSettings): [earlier: SettingsVersion[], present: SettingsVersion] {
  const open = withoutSecrets(values)
  // The history may hold a secret that was written into it by hand.
  const kept = history.map((one) => ({ ...one, values: withoutSecrets(one.values) }))
  const present = kept.find((one) => one.version === version)
  const isAsWritten = present && isDeepStrictEqual(present.values, open)
  return [
    kept.filter((one) => one.version < version),
    isAsWritten ? present : { version, secrets: [], values: open },
  ]
}

/** Unknown names go too: they may be misspelled secrets. */
function withoutSecrets(values: Values): Values {
  const open = Object.entries(values).filter(([name]) => settingNamed(name)?.secret === false)
  return Object.fromEntries(open)
}

function changesOf(before: Values, after: Values, secrets: string[]) {
  const keys = [...new Set([...Object.keys(before), ...Object.keys(after)])].toSorted()
  const changed = keys.filter((key) => before[key] !== after[key])
  return [
    ...changed.map((key) => ({ key, before: before[key], after: after[key] })),
    ...secrets.map((key) => ({ key })),
  ]
}
