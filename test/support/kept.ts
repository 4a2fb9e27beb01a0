import type { Db } from 'mongodb'
import { systemClock, type Clock } from '../../src/clock.ts'
import type { AccountFlowsStore } from '../../src/ports/index.ts'
import { AUDIT_EVENTS, toldEvent } from '../../src/records/audit.ts'
import { flowsStore } from '../../src/records/store.ts'
import { memoryStore } from '../../src/stores/memory/store.ts'
import { mongoStore } from '../../src/stores/mongodb/store.ts'

/** What flows keep in memory, the `records` that they are given for that, and the events that are recorded by now. */
export function keptInMemory(
  clock: Clock = systemClock,
  changes: (store: AccountFlowsStore) => Partial<AccountFlowsStore> = () => ({}),
) {
  const records = memoryStore(clock)
  const store = flowsStore(records, clock)
  const recorded = () => records.all(AUDIT_EVENTS).flatMap(toldEvent)
  return Object.assign(store, changes({ ...store }), { records, recorded })
}

/** What flows keep in a database, as another process sees it. */
export const keptOn = (db: Db, clock: Clock = systemClock) => flowsStore(mongoStore(db), clock)
