import type { Db } from 'mongodb'
import type { SettingsStore } from '../ports.ts'
import { openCollection } from './mongodb-collection.ts'
import { isDuplicateKey } from './mongodb-errors.ts'
import { storedPart, type StoredPart } from './mongodb-indexes.ts'

/** People edit it by hand, so that nothing is taken for granted when it is read. */
interface SettingsDocument {
  _id: 'settings'
  version?: unknown
  values?: unknown
}

const theOne = { _id: 'settings' } as const

/** `settings` on MongoDB (2.5). */
export function mongoSettings(db: Db): SettingsStore & StoredPart {
  const collection = openCollection<SettingsDocument>(db, 'settings')
  return {
    ...storedPart(collection),

    async read() {
      const document = await collection.findOne(theOne)
      const values = toValues(document?.values)
      return {
        version: toVersion(document?.version),
        values: values ?? {},
        ...(document && !values && { isUnreadable: true }),
      }
    },

    async version() {
      const document = await collection.findOne(theOne, { projection: { version: 1 } })
      return toVersion(document?.version)
    },

    async write(values, expectedVersion) {
      // What `toVersion` reads as 0 is replaced like a document that does not exist.
      const isExpected = expectedVersion === 0 ? { $not: { $gte: 1 } } : { $eq: expectedVersion }
      try {
        const { matchedCount, upsertedCount } = await collection.updateOne(
          { ...theOne, version: isExpected },
          { $set: { version: expectedVersion + 1, values } },
          { upsert: expectedVersion === 0 },
        )
        return matchedCount + upsertedCount === 1
      } catch (error) {
        if (isDuplicateKey(error)) return false
        throw error
      }
    },
  }
}

function toVersion(stored: unknown): number {
  return typeof stored === 'number' && stored >= 1 ? stored : 0
}

// What is no string was written by hand; as JSON it is either what was meant, or refused with its name.
function toValues(stored: unknown): Record<string, string> | undefined {
  if (typeof stored !== 'object' || stored === null || Array.isArray(stored)) return undefined
  return Object.fromEntries(
    Object.entries(stored).map(([name, value]: [string, unknown]) => [
      name,
      typeof value === 'string' ? value : JSON.stringify(value),
    ]),
  )
}
