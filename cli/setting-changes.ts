import {
  AdminApiError,
  type Settings,
  type SettingsInForce,
  type SettingsOptions,
  type Tagged,
} from '../src/admin/client.ts'
import type { Connection } from './connection.ts'
import type { Output } from './output.ts'
import { linesOf } from './table.ts'

const TRIES = 3
const HIDDEN = '***'

interface SettingChange {
  key: string
  /** `null`: there is no value. A secret is never shown. */
  before: string | null
  after: string | null
}

/** What a change did, or would do. */
export interface ToldChange {
  dry_run: boolean
  changes: SettingChange[]
  warnings: string[]
  /** Versions that a rollback undoes. */
  takes_back?: number[]
}

export interface ChangeOptions {
  dryRun?: boolean
  ifMatch?: string | undefined
}

/**
 * Changes settings, prints warnings, and answers the difference. If another admin changes them meanwhile, it tries again: three tries in
 * all, or one with `ifMatch`.
 *
 * @param given - the new values by key, if the change has some.
 */
export async function changeSettings(
  { admin, output }: Connection,
  { dryRun = false, ifMatch }: ChangeOptions,
  change: (options: SettingsOptions, before: SettingsInForce) => Promise<Tagged<SettingsInForce>>,
  given?: Settings,
): Promise<ToldChange> {
  for (let tries = 1; ; tries++) {
    const { answer: before, etag } = await admin.getSettings()
    try {
      const { answer: after } = await change({ dryRun, ifMatch: ifMatch ?? etag }, before)
      tellWarnings(after, output)
      return changed(before, after, dryRun, given)
    } catch (error) {
      const isStale = error instanceof AdminApiError && error.status === 412
      if (!isStale || ifMatch !== undefined || tries === TRIES) throw error
    }
  }
}

export function changed(
  before: SettingsInForce,
  after: SettingsInForce,
  isDryRun: boolean,
  given: { [key: string]: string | undefined } = {},
): ToldChange {
  const old = new Map(valuesOf(before))
  const now = new Map(valuesOf(after))
  const changes = [...new Set([...old.keys(), ...now.keys()])].flatMap((key) => {
    const change = { key, before: old.get(key) || null, after: now.get(key) || null }
    const isReplaced = change.after === HIDDEN && (given[key] ?? HIDDEN) !== HIDDEN
    return change.before === change.after && !isReplaced ? [] : [change]
  })
  return { dry_run: isDryRun, changes, warnings: after.warnings ?? [] }
}

/** The settings by name, without their warnings. */
export function valuesOf(settings: SettingsInForce): [string, string][] {
  return Object.entries(settings).flatMap(([key, value]) =>
    typeof value === 'string' ? [[key, value]] : [],
  )
}

export function changeText({ changes, dry_run: dryRun }: ToldChange): string {
  if (changes.length === 0) return dryRun ? 'Nothing would change.' : 'Nothing changed.'
  const begin = dryRun && 'Nothing was changed. These are the changes:'
  return linesOf(begin, ...changes.map(lineOf))
}

export function tellWarnings({ warnings = [] }: { warnings?: string[] }, output: Output): void {
  for (const warning of warnings) output.note(`Warning: ${warning}`)
}

export function lineOf({ key, before, after }: SettingChange): string {
  if (after === HIDDEN) return `${key}: set`
  if (before === HIDDEN) return `${key}: forgotten`
  return `${key}: ${before ?? 'none'} -> ${after ?? 'none'}`
}
