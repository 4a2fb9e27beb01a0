import type { Db } from 'mongodb'
import { systemClock } from '../../clock.ts'
import type { AccountFlowsStore } from '../../ports/index.ts'
import { flowsStore } from '../../records/store.ts'
import type { MongoOptions } from './collection.ts'
import { mongoRecords } from './records.ts'

/**
 * Keeps everything in one MongoDB database; a standalone server is enough. Several processes of one issuer may share it; each issuer
 * needs a database or a prefix of its own.
 *
 * @throws TypeError naming the option that is not acceptable.
 */
export function mongoStore(
  db: Db,
  { now = systemClock.now, prefix }: MongoOptions = {},
): AccountFlowsStore {
  return flowsStore(mongoRecords(db, { prefix }), { ...systemClock, now })
}
