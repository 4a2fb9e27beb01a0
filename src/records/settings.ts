/** The settings (2.5): one record, which people may edit by hand. */
import type { SettingsStore, SettingsVersion } from '../ports/index.ts'
import { kindOf } from './kind.ts'
import type { Records } from './records.ts'
import { tableOf } from './table.ts'

interface SettingsRecord {
  id: string
  version: number
  values: Record<string, string>
  history: HistoryRecord[] | undefined
}

type HistoryRecord = Omit<SettingsVersion, 'at'> & { at?: string }

export const SETTINGS = kindOf<SettingsRecord>({
  name: 'settings',
  fields: { version: 'number', values: 'json', history: 'json?' },
})

const ID = 'settings'

export function settingsStore(records: Records): SettingsStore {
  const settings = tableOf(records, SETTINGS)
  return {
    async read() {
      const stored = await records.get(SETTINGS, ID)
      if (!stored) return { version: 0, values: {} }
      if (!stored.fields) return { version: 0, values: {}, isUnreadable: true }
      const { version, values, history } = SETTINGS.toRecord(stored)
      return { version, values, ...(history && { history: history.map(versionOf) }) }
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

const historyOf = ({ at, ...version }: SettingsVersion): HistoryRecord => ({
  ...version,
  ...(at && { at: at.toISOString() }),
})

const versionOf = ({ at, ...version }: HistoryRecord): SettingsVersion => ({
  ...version,
  ...(at !== undefined && { at: new Date(at) }),
})
