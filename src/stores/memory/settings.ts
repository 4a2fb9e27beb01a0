import type { SettingsStore, StoredSettings } from '../../ports/index.ts'

/** `settings` in memory. */
export function memorySettings(): SettingsStore {
  let stored: StoredSettings = { version: 0, values: {} }
  return {
    async read() {
      return structuredClone(stored)
    },
    async write(values, expectedVersion) {
      if (stored.version !== expectedVersion) return false
      stored = { version: expectedVersion + 1, values: { ...values } }
      return true
    },
  }
}
