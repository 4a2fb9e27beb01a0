import type { Filter } from 'mongodb'
import type { SettingsStore, SettingsVersion } from '../../ports/index.ts'
import type { OpenCollection } from './collection.ts'
import { isDuplicateKey } from './errors.ts'
import { fromDocument, hasTypes } from './fields.ts'
import { storedPart, type StoredPart } from './indexes.ts'
import { isObject } from './values.ts'

/** People edit it by hand, so that nothing is taken for granted when it is read. */
interface SettingsDocument {
  _id: 'settings'
  version?: unknown
  values?: unknown
  history?: unknown
}

const theOne = { _id: 'settings' } as const

/** `settings` on MongoDB (2.5). */
export function mongoSettings(open: OpenCollection): SettingsStore & StoredPart {
  const collection = open<SettingsDocument>('settings')
  return {
    ...storedPart(collection),

    async read() {
      const document = await collection.findOne(theOne)
      const values = toValues(document?.values)
      return {
        version: toVersion(document?.version),
        values: values ?? {},
        ...(document && !values && { isUnreadable: true }),
        ...(Array.isArray(document?.history) && { history: document.history.flatMap(toHistory) }),
      }
    },

    async write(values, expectedVersion, history) {
      try {
        const { matchedCount, upsertedCount } = await collection.updateOne(
          { ...theOne, ...(expectedVersion === 0 ? hasNoVersion : { version: expectedVersion }) },
          { $set: { version: expectedVersion + 1, values, ...(history && { history }) } },
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

/** Beyond it, one more is the same number. */
const MAX_VERSION = Number.MAX_SAFE_INTEGER - 1

function toVersion(stored: unknown): number {
  return typeof stored === 'number' && stored >= 1 && stored <= MAX_VERSION ? stored : 0
}

/** What `toVersion` reads as 0 is replaced like a document that does not exist; a query looks into lists. */
const hasNoVersion: Filter<SettingsDocument> = {
  $or: [
    { version: { $not: { $type: ['int', 'long', 'double'], $gte: 1, $lte: MAX_VERSION } } },
    { version: { $type: 'array' } },
  ],
}

// What is no string was written by hand; as JSON it is either what was meant, or refused with its name.
function toValues(stored: unknown): Record<string, string> | undefined {
  if (typeof stored !== 'object' || stored === null) return undefined
  if (Object.getPrototypeOf(stored) !== Object.prototype) return undefined
  return Object.fromEntries(
    Object.entries(stored).map(([name, value]: [string, unknown]) => [
      name,
      typeof value === 'string' ? value : JSON.stringify(value),
    ]),
  )
}

const versionTypes = { version: 'int', at: 'date?', actor: 'string?' } as const

/** One version, or none where it was damaged. */
function toHistory(stored: unknown): SettingsVersion[] {
  const { secrets, values, ...version }: { [K in keyof SettingsVersion]?: unknown } = isObject(
    stored,
  )
    ? stored
    : {}
  const told = toValues(values)
  if (!hasTypes(version, { version: 'int' }) || !told) return []
  const names = Array.isArray(secrets) ? secrets.filter((one) => typeof one === 'string') : []
  return [{ ...fromDocument(version, versionTypes), secrets: names, values: told }]
}
