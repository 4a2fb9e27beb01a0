/** The settings (2.5): one record, which an admin may edit by hand. */
import { z } from 'zod'
import { defined, holds, kindOf } from './kind.ts'
import type { Records } from './records.ts'
import { tableOf } from './table.ts'

type Json = string | number | boolean | object | null

const Whole = z.object({ version: z.int().min(0), values: z.record(z.string(), z.unknown()) })

export const SETTINGS = kindOf({
  name: 'settings',
  fields: {
    version: 'number',
    /** Texts, unless a hand-edited record holds other values. */
    values: holds<Record<string, Json>>('json'),
    history: 'json?',
  },
  isWhole: (record) => Whole.safeParse(record).success,
  damagedIsNone: true,
})

export interface StoredSettings {
  /** Grows with each write; 0 before the first. */
  version: number
  /** In the form of the admin API; secrets are encrypted. */
  values: Record<string, string>
  /** A hand-edited record cannot be read. Nothing is written until it can be. */
  isUnreadable?: boolean
  /** `undefined`: it was removed by hand. */
  history?: SettingsVersion[]
}

const Version = z.object({
  version: z.int().min(0),
  /** Names of those that changed in this version. */
  secrets: z.array(z.string()).catch([]),
  /** The values that are not secret. */
  values: z.record(z.string(), z.json().transform(textOf)),
  /** By the clock of the writer. `undefined`: time and author are unknown, because the record was edited by hand. */
  at: z.iso
    .datetime()
    .transform((at) => new Date(at))
    .optional()
    .catch(undefined),
  actor: z.string().optional().catch(undefined),
})

/** One version of the settings, to show what changed and to go back to it. It holds no secret, not even an encrypted one. */
export type SettingsVersion = z.output<typeof Version>

const ID = 'settings'

export type SettingsStore = ReturnType<typeof settingsStore>

export function settingsStore(records: Records) {
  const settings = tableOf(records, SETTINGS)
  return {
    async read(): Promise<StoredSettings> {
      const stored = await records.get(SETTINGS, ID)
      const record = stored && SETTINGS.read(stored)
      if (!record) return { version: 0, values: {}, ...(stored && { isUnreadable: true }) }
      const { version, history } = record
      const values = Object.entries(record.values).map(([key, value]) => [key, textOf(value)])
      return {
        version,
        values: Object.fromEntries(values),
        ...(Array.isArray(history) && { history: history.flatMap(versionOf) }),
      }
    },

    /** Replaces all values, and the history if one is given, atomically. `false`: the version is another one, and nothing changed. */
    async write(
      values: Record<string, string>,
      expectedVersion: number,
      history?: readonly SettingsVersion[],
    ): Promise<boolean> {
      // Converts times to texts.
      const kept: object | undefined = history && JSON.parse(JSON.stringify(history))
      return settings.change(ID, (before) => {
        if ((before?.version ?? 0) !== expectedVersion) return { next: before, answer: false }
        const version = expectedVersion + 1
        return { next: { id: ID, version, values, history: kept ?? before?.history }, answer: true }
      })
    },
  }
}

/** Returns an empty list if the history was damaged by hand. */
function versionOf(kept: unknown): SettingsVersion[] {
  const { data } = Version.safeParse(kept)
  if (!data) return []
  const { at, actor, ...version } = data
  return [{ ...version, ...defined({ at, actor }) }]
}

function textOf(value: Json): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}
