import { MongoClient, type MongoClientOptions } from 'mongodb'
import { startHarness, type Harness, type HarnessOptions } from './harness.ts'
import { startMongoProxy, type MongoProxy } from './mongo-proxy.ts'
import { freshDatabase } from './mongod.ts'

/** For whoever waits for a database that is gone, and sees soon that it is back. */
export const SHORT_WAITS = {
  serverSelectionTimeoutMS: 1_000,
  connectTimeoutMS: 1_000,
  socketTimeoutMS: 1_000,
  heartbeatFrequencyMS: 500,
}

/** The harness of the suite that asks for it, on a MongoDB that its tests can take away. */
export function suiteHarnessBehindProxy(
  limits: MongoClientOptions,
  options: HarnessOptions = {},
): { h: Harness; proxy: MongoProxy } {
  const h = {} as Harness
  const proxy = {} as MongoProxy
  const ends: (() => Promise<void>)[] = []

  before('the harness runs behind a proxy', async function () {
    this.timeout(120_000)
    const fresh = await freshDatabase()
    ends.unshift(fresh.drop)
    Object.assign(proxy, await startMongoProxy(fresh))
    ends.unshift(proxy.close)
    const client = await MongoClient.connect(proxy.uri, limits)
    const database = { db: client.db(), drop: () => client.close() }
    Object.assign(h, await startHarness({ ...options, database }))
    ends.unshift(proxy.restore, h.close)
  })

  after(async () => {
    for (const end of ends) await end()
  })

  return { h, proxy }
}
