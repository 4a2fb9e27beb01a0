import type { Db } from 'mongodb'
import type { Clock } from '../../clock.ts'
import type { AuditLog, AuditQuery } from '../../ports/index.ts'
import {
  type AuditDocument,
  fromAuditDocument,
  isEvent,
  toAuditDocument,
} from './audit-document.ts'
import type { Forgetful } from '../state/forget-account.ts'
import { openCollection } from './collection.ts'
import { atMost, text, time } from './conditions.ts'
import { isDuplicateKey } from './errors.ts'
import { forgetDocuments } from './forget.ts'
import { type NamedIndex, purgeIndex, storedPart, type StoredPart } from './indexes.ts'

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
  // What a version records that does not write when to remove it: 400 days, the default of `audit_retention`.
  {
    name: 'at_ttl',
    key: { at: 1 },
    expireAfterSeconds: 34_560_000,
    partialFilterExpression: { purge_at: null },
  },
]

/** `audit_events` on MongoDB. */
export function mongoAudit(db: Db, { now }: Clock): AuditLog & StoredPart & Forgetful {
  const collection = openCollection<AuditDocument>(db, 'audit_events')
  return {
    ...storedPart(collection, indexes),

    async record(event, keepMs) {
      try {
        await collection.insertOne(toAuditDocument(event, now(), keepMs))
        return true
      } catch (error) {
        if (isDuplicateKey(error)) return false
        throw error
      }
    },

    async has(id) {
      return (await collection.findOne({ _id: text(id) }, { projection: { _id: 1 } })) !== null
    },

    async list(query) {
      const documents = await collection
        .find({ ...isAskedFor(query), ...isEvent })
        // Events of a version that did not write the time come last.
        .sort({ recorded_at: -1 })
        .limit(atMost(query.limit))
        .toArray()
      return documents.map(fromAuditDocument)
    },

    // An action that is recorded meanwhile is not erased either.
    async forget(accountId, _at, accountHash) {
      const ofAccount = { account_id: text(accountId) }
      const erased = await forgetDocuments(collection, {
        ...ofAccount,
        type: { $ne: 'admin_action' },
      })
      await collection.updateMany({ ...ofAccount, type: 'admin_action' }, [
        { $set: { 'details.account_hash': { $literal: accountHash } } },
        { $unset: 'account_id' },
      ])
      return erased
    },

    async find(id) {
      const document = await collection.findOne({ _id: text(id), ...isEvent })
      return document ? fromAuditDocument(document) : undefined
    },
  }
}

function isAskedFor({ accountId, identifierHash, types, recordedFrom }: AuditQuery) {
  return {
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
