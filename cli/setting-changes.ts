import {
  AdminApiError,
  type SettingsInForce,
  type SettingsOptions,
  type Tagged,
} from '../src/admin/client.ts'
import type { Connection } from './connection.ts'
import type { Output } from './output.ts'

const TRIES = 3
const HIDDEN = '***'

interface SettingChange {
  key: string
  /** `null`: none. A secret is never told. */
  before: string | null
  after: string | null
}

export interface ChangeOptions {
  dryRun?: boolean
  ifMatch?: string
}

/**
 * Changes settings that nobody else changes meanwhile, and tells the difference.
 *
 * @param given - values by key; `undefined` is given where the setting is unset.
 */
export async function changeSettings(
  { admin }: Connection,
  given: { [key: string]: string | undefined },
  {
    options,
    output,
    change,
  }: {
    options: ChangeOptions
    output: Output
    change(options: SettingsOptions, before: SettingsInForce): Promise<Tagged<SettingsInForce>>
  },
): Promise<void> {
  const { dryRun = false } = options
  for (let tries = 1; ; tries++) {
    const { answer: before, etag } = await admin.getSettings()
    try {
      const ifMatch = options.ifMatch ?? etag
      const { answer: after } = await change({ dryRun, ifMatch }, before)
      return tell(changesOf(before, after, given), {
        warnings: after.warnings ?? [],
        dryRun,
        output,
      })
    } catch (error) {
      const isStale = error instanceof AdminApiError && error.status === 412
      if (!isStale || options.ifMatch !== undefined || tries === TRIES) throw error
    }
  }
}

function changesOf(
  before: SettingsInForce,
  after: SettingsInForce,
  given: { [key: string]: string | undefined },
): SettingChange[] {
  const old = new Map(valuesOf(before))
  const now = new Map(valuesOf(after))
  return [...new Set([...old.keys(), ...now.keys()])].flatMap((key) => {
    const change = { key, before: old.get(key) || null, after: now.get(key) || null }
    const isReplaced = change.after === HIDDEN && (given[key] ?? HIDDEN) !== HIDDEN
    return change.before === change.after && !isReplaced ? [] : [change]
  })
}

/** The settings by name, without what is said beside them. */
export function valuesOf(settings: SettingsInForce): [string, string][] {
  return Object.entries(settings).flatMap(([key, value]) =>
    typeof value === 'string' ? [[key, value]] : [],
  )
}

function tell(
  changes: SettingChange[],
  { warnings, dryRun, output }: { warnings: string[]; dryRun: boolean; output: Output },
): void {
  for (const warning of warnings) output.note(`Warning: ${warning}`)
  output.answer({ dry_run: dryRun, changes, warnings }, ({ changes }) => {
    if (changes.length === 0) return dryRun ? 'Nothing would change.' : 'Nothing changed.'
    const lines = changes.map(lineOf)
    return [...(dryRun ? ['Nothing is changed yet; this would be:'] : []), ...lines].join('\n')
  })
}

function lineOf({ key, before, after }: SettingChange): string {
  if (after === HIDDEN) return `${key}: set`
  if (before === HIDDEN) return `${key}: forgotten`
  return `${key}: ${before ?? 'none'} -> ${after ?? 'none'}`
}
