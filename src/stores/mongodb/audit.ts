import type { Clock } from '../../clock.ts'
import type { AuditLog, AuditQuery } from '../../ports/index.ts'
import {
  type AuditDocument,
  fromAuditDocument,
  isEvent,
  toAuditDocument,
} from './audit-document.ts'
import { AUDIT_DAYS } from '../../settings/table.ts'
import { firstReadable, type OpenCollection } from './collection.ts'
import { atMost, text, time } from './conditions.ts'
import { duplicatesIn } from './errors.ts'
import type { AccountPart } from './forget.ts'
import { type NamedIndex, purgeIndex, storedPart } from './indexes.ts'
import { together } from './together.ts'

const indexes: NamedIndex[] = [
  { name: 'newest', key: { recorded_at: 1 } },
  { name: 'newest_of_type', key: { type: 1, recorded_at: 1 } },
  { name: 'newest_of_account', key: { account_id: 1, recorded_at: 1 } },
  {
    name: 'newest_of_identifier',
    key: { 'details.identifier_hash': 1, recorded_at: 1 },
    partialFilterExpression: { 'details.identifier_hash': { $exists: true } },
  },
  purgeIndex,
  // What a version records that does not write when to remove it.
  {
    name: 'at_ttl',
    key: { at: 1 },
    expireAfterSeconds: AUDIT_DAYS * 86_400,
    partialFilterExpression: { purge_at: null },
  },
]

export function mongoAudit(
  open: OpenCollection,
  { now }: Pick<Clock, 'now'>,
): AuditLog & AccountPart {
  const collection = open<AuditDocument>('audit_events')

  /** Whether each was inserted, or was there before. */
  const inserted = together(async (documents: AuditDocument[]) => {
    const before = await duplicatesIn(collection.insertMany(documents, { ordered: false }))
    return documents.map((_document, index) => !before.has(index))
  })

  return {
    ...storedPart(collection, indexes),

    record: (event, keepMs) => inserted(toAuditDocument(event, now(), keepMs)),

    async list(query) {
      // Events of a version that did not write the time come last.
      const newestFirst = query.id === undefined ? ({ recorded_at: -1 } as const) : {}
      const found = collection.find(isAskedFor(query)).sort(newestFirst)
      const events = await firstReadable(found, isEvent, atMost(query.limit))
      return events.map(fromAuditDocument)
    },

    // An action that is recorded meanwhile is not erased either.
    async forget(accountId, _at, accountHash) {
      const ofAccount = { account_id: text(accountId) }
      const others = { ...ofAccount, type: { $ne: 'admin_action' as const } }
      const { deletedCount: erased } = await collection.deleteMany(others)
      await collection.updateMany({ ...ofAccount, type: 'admin_action' }, [
        { $set: { 'details.account_hash': { $literal: accountHash } } },
        { $unset: 'account_id' },
      ])
      return { erased, left: 0 }
    },
  }
}

function isAskedFor({ id, accountId, identifierHash, types, recordedFrom }: AuditQuery) {
  return {
    ...(id !== undefined && { _id: text(id) }),
    ...(accountId !== undefined && { account_id: text(accountId) }),
    ...(identifierHash !== undefined && { 'details.identifier_hash': text(identifierHash) }),
    ...(types && { type: { $in: types.map((type) => text(type)) } }),
    ...(recordedFrom && {
      $or: [
        { recorded_at: { $gte: time(recordedFrom) } },
        { recorded_at: { $exists: false }, at: { $gte: recordedFrom } },
      ],
    }),
  }
}
