import { randomBytes } from 'node:crypto'
import type { Db } from 'mongodb'
import { systemClock, type Clock } from '../../src/clock.ts'
import type { AuditEvent } from '../../src/contract/index.ts'
import { flowsStore, type AccountFlowsStore } from '../../src/store/index.ts'
import { AUDIT_LOG, eventOf } from '../../src/store/audit.ts'
import { createKeyRing } from '../../src/crypto/keys.ts'
import { createSecretBox } from '../../src/crypto/secret-box.ts'
import { createOwnAdapter } from '../../src/oidc/own-adapter.ts'
import { memoryStore } from '../../src/store/memory/store.ts'
import { mongoStore } from '../../src/store/mongodb/store.ts'

/** What flows keep in memory, the `records` that they are given for that, and the events that are recorded by now. */
export function keptInMemory(
  clock: Clock = systemClock,
  changes: (store: AccountFlowsStore) => Partial<AccountFlowsStore> = () => ({}),
) {
  const records = memoryStore(clock)
  const store = flowsStore(records, clock)
  const recorded = () =>
    records.all(AUDIT_LOG).map((stored) => {
      const { recordedAt: _recordedAt, ...event } = eventOf(AUDIT_LOG.toRecord(stored))
      return event as AuditEvent
    })
  return Object.assign(store, changes({ ...store }), { records, recorded })
}

/** An adapter that keeps its records there, sealed with these secrets. */
export function adapterOn(
  { providerRecords }: Pick<AccountFlowsStore, 'providerRecords'>,
  [first = randomBytes(32), ...others]: readonly Buffer[] = [],
  clock: Clock = systemClock,
) {
  return createOwnAdapter({
    providerRecords,
    box: createSecretBox(createKeyRing([first, ...others])),
    clock,
  })
}

/** What flows keep in a database, as another process sees it. */
export const keptOn = (db: Db, clock: Clock = systemClock) => flowsStore(mongoStore(db), clock)
