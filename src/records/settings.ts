/** The settings (2.5): one record, which people may edit by hand. */
import { z } from 'zod'
import type { SettingsStore, SettingsVersion } from '../ports/index.ts'
import { kindOf } from './kind.ts'
import type { Records } from './records.ts'
import { tableOf } from './table.ts'

type Json = string | number | boolean | object | null

interface SettingsRecord {
  id: string
  version: number
  /** Texts, unless somebody wrote them by hand. */
  values: Record<string, Json>
  history: object | undefined
}

const History = z.object({
  version: z.int().min(0),
  secrets: z.array(z.string()).catch([]),
  values: z.record(z.string(), z.json().transform(textOf)),
  at: z.iso
    .datetime()
    .transform((at) => new Date(at))
    .optional()
    .catch(undefined),
  actor: z.string().optional().catch(undefined),
})

export const SETTINGS = kindOf<SettingsRecord>({
  name: 'settings',
  fields: { version: 'number', values: 'json', history: 'json?' },
  isWhole: ({ version, values }) =>
    Number.isSafeInteger(version) && version >= 0 && isObject(values),
  damagedIsNone: true,
})

const ID = 'settings'

export function settingsStore(records: Records): SettingsStore {
  const settings = tableOf(records, SETTINGS)
  return {
    async read() {
      const stored = await records.get(SETTINGS, ID)
      if (!stored) return { version: 0, values: {} }
      const record = SETTINGS.read(stored)
      if (!record) return { version: 0, values: {}, isUnreadable: true }
      const { version, history } = record
      const values = Object.entries(record.values).map(([key, value]) => [key, textOf(value)])
      return {
        version,
        values: Object.fromEntries(values),
        ...(Array.isArray(history) && { history: history.flatMap(versionOf) }),
      }
    },

    async write(values, expectedVersion, history) {
      const kept = history?.map(historyOf)
      return settings.change(ID, (before) => {
        if ((before?.version ?? 0) !== expectedVersion) return { next: before, answer: false }
        const version = expectedVersion + 1
        return { next: { id: ID, version, values, history: kept ?? before?.history }, answer: true }
      })
    },
  }
}

const historyOf = ({ at, ...version }: SettingsVersion) => ({
  ...version,
  ...(at && { at: at.toISOString() }),
})

/** None where somebody damaged it. */
function versionOf(kept: unknown): SettingsVersion[] {
  const { data } = History.safeParse(kept)
  if (!data) return []
  const { at, actor, ...version } = data
  return [{ ...version, ...(at && { at }), ...(actor !== undefined && { actor }) }]
}

const isObject = (value: unknown) =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function textOf(value: Json): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}
