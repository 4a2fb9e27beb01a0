import { freshDatabase, type FreshDatabase } from './mongod.ts'

/** The database of the suite that asks for it, from its first hook to its end. */
export function suiteDatabase(): FreshDatabase {
  const fresh = {} as FreshDatabase
  let drop = async () => {}
  before('there is an empty database', async () => {
    Object.assign(fresh, await freshDatabase())
    drop = fresh.drop
  })
  after(() => drop())
  return fresh
}
