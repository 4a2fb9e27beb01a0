import type { Db } from 'mongodb'
import type { AuditEvent, AuditEventType, AuditLog } from '../ports.ts'
import { openCollection } from './mongodb-collection.ts'
import { text, time } from './mongodb-conditions.ts'
import { isDuplicateKey } from './mongodb-errors.ts'
import { createIndexes } from './mongodb-indexes.ts'
import { type RequesterFields, toRequesterFields } from './mongodb-requester.ts'

interface AuditDocument extends RequesterFields {
  _id: string
  type: AuditEventType
  at: Date
  account_id?: string
  client_id?: string
  reason?: string
  details?: NonNullable<AuditEvent['details']>
}

/** `audit_events` on MongoDB (D33). */
export function mongoAudit(db: Db): AuditLog & { start(): Promise<void> } {
  const collection = openCollection<AuditDocument>(db, 'audit_events')
  return {
    async start() {
      await createIndexes(collection, [
        { name: 'at', key: { at: 1 } },
        { name: 'account_id', key: { account_id: 1, at: 1 } },
      ])
    },

    async record(event) {
      try {
        await collection.insertOne(toAuditDocument(event))
        return true
      } catch (error) {
        if (isDuplicateKey(error)) return false
        throw error
      }
    },

    async has(id) {
      return (await collection.findOne({ _id: text(id) }, { projection: { _id: 1 } })) !== null
    },
  }
}

function toAuditDocument(event: AuditEvent): AuditDocument {
  const { id, type, at, accountId, clientId, reason, details } = event
  return {
    _id: id,
    type,
    at: time(at),
    ...(accountId !== undefined && { account_id: accountId }),
    ...toRequesterFields(event),
    ...(clientId !== undefined && { client_id: clientId }),
    ...(reason !== undefined && { reason }),
    ...(details !== undefined && { details }),
  }
}
