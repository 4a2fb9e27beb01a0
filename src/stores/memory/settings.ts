import type { SettingsStore, StoredSettings } from '../../ports/index.ts'

export function memorySettings(): SettingsStore {
  let stored: StoredSettings = { version: 0, values: {} }
  return {
    async read() {
      return structuredClone(stored)
    },
    async write(values, expectedVersion, history = stored.history) {
      if (stored.version !== expectedVersion) return false
      stored = structuredClone({
        version: expectedVersion + 1,
        values,
        ...(history && { history: [...history] }),
      })
      return true
    },
  }
}
