import { MongoClient, type Db } from 'mongodb'
import { freshDatabase, stopMongo } from './support/mongod.ts'
const mode = process.argv[2]
const act: Record<string, (db: Db, i: number) => Promise<unknown>> = {
  insert: async (db, i) => db.collection<{_id: string}>('lock').insertOne({ _id: 'x' }).catch((e) => { if (e.code !== 11000) throw e }),
  create: async (db) => db.createCollection('lock').catch((e) => { if (e.code !== 48) throw e }),
  indexes: async (db) => db.collection('lock').createIndexes([{ key: { a: 1 }, name: 'a', unique: true }, { key: { b: 1 }, name: 'b', expireAfterSeconds: 0 }]),
  createthenindex: async (db) => { await db.createCollection('lock').catch((e) => { if (e.code !== 48) throw e }); await db.collection('lock').createIndexes([{ key: { a: 1 }, name: 'a', unique: true }, { key: { b: 1 }, name: 'b', expireAfterSeconds: 0 }]) },
}
for (let i = 0; i < 15; i++) {
  const fresh = await freshDatabase()
  const t = Date.now()
  const clients = await Promise.all([1,2,3,4,5].map(() => MongoClient.connect(fresh.uri)))
  const r = await Promise.race([
    Promise.all(clients.map((c, k) => act[mode!]!(c.db(), k))).then(() => 'ok', (e) => String(e)),
    new Promise((res) => setTimeout(res, 15000, 'HANG')),
  ])
  console.log(mode, i, r, Date.now() - t)
  if (r !== 'ok') { break }
  await Promise.all(clients.map((c) => c.close()))
  await fresh.drop()
}
await stopMongo()
process.exit()
