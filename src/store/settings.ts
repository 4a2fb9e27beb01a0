/** The settings (2.5): one record, which an admin may edit by hand. */
import { z } from 'zod'
import { defined, kindOf } from './kind.ts'
import type { Records } from './records.ts'
import { tableOf } from './table.ts'

/** A hand-edited record may hold values that are no texts. */
const Whole = z.object({
  version: z.int().min(0),
  values: z.record(z.string(), z.json().transform(textOf)),
})

export const SETTINGS = kindOf({
  name: 'settings',
  fields: {
    version: 'number',
    values: 'json',
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

const Version = Whole.extend({
  /** Names of those that changed in this version. `values` has all others. */
  secrets: z.array(z.string()).catch([]),
  /** By the clock of the writer. `undefined`: time and author are unknown, because the record was edited by hand. */
  at: z.iso.datetime().pipe(z.coerce.date()).optional().catch(undefined),
  actor: z.string().optional().catch(undefined),
})

/** To show what changed, and to go back to it. It holds no secret, not even an encrypted one. */
export type SettingsVersion = z.output<typeof Version>

const ID = 'settings'

export function settingsStore(records: Records) {
  const settings = tableOf(records, SETTINGS)
  return {
    async read(): Promise<StoredSettings> {
      const stored = await records.get(SETTINGS, ID)
      const record = stored && SETTINGS.read(stored)
      if (!record) return { version: 0, values: {}, ...(stored && { isUnreadable: true }) }
      const { history } = record
      const versions = Array.isArray(history) && { history: history.flatMap(versionOf) }
      return { ...Whole.parse(record), ...versions }
    },

    /** Replaces all values, and the history if one is given, atomically. `false`: the version is another one, and nothing changed. */
    async write(
      values: Record<string, string>,
      expectedVersion: number,
      history?: readonly SettingsVersion[],
    ): Promise<boolean> {
      // With its times as texts.
      const kept: object | undefined = history && JSON.parse(JSON.stringify(history))
      return settings.change(ID, (before) => {
        if ((before?.version ?? 0) !== expectedVersion) return { next: before, answer: false }
        const version = expectedVersion + 1
        return { next: { id: ID, version, values, history: kept ?? before?.history }, answer: true }
      })
    },
  }
}

/** An empty list: it was damaged by hand. */
function versionOf(kept: unknown): SettingsVersion[] {
  const { data } = Version.safeParse(kept)
  if (!data) return []
  const { at, actor, ...version } = data
  return [{ ...version, ...defined({ at, actor }) }]
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}
