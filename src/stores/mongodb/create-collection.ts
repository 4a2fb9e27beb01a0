import { randomUUID } from 'node:crypto'
import type { Db } from 'mongodb'
import { openCollection } from './collection.ts'
import { serverErrorCode } from './errors.ts'

const NAMESPACE_EXISTS = 48

/**
 * Creates a collection unless it exists, safe when several processes do so at once (FLT-13): each creates one of its own and
 * gives it the name, which the server lets one of them do. To create the same one at once is a storm of write conflicts,
 * from which MongoDB under Wine does not recover.
 */
export async function createCollection(db: Db, name: string): Promise<void> {
  const found = await db.listCollections({ name }, { nameOnly: true }).toArray()
  if (found.length > 0) return
  const temporary = `${name}_${randomUUID()}`
  await db.createCollection(temporary, { writeConcern: { w: 'majority' } })
  try {
    await openCollection(db, temporary).rename(name)
  } catch (error) {
    await openCollection(db, temporary).drop()
    if (serverErrorCode(error) !== NAMESPACE_EXISTS) throw error
  }
}
