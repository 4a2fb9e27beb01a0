import type { Db } from 'mongodb'

let last: Promise<unknown> = Promise.resolve()

/**
 * The MongoDB for Windows that Wine runs hangs for ever where two create the same collection at the same moment: there
 * the processes of a test take turns. Every other MongoDB gets all at once.
 */
export async function createdInTurn(db: Db): Promise<Db> {
  const { buildEnvironment } = await db.command({ buildInfo: 1 })
  if (buildEnvironment?.target_os !== 'windows') return db
  const create = db.createCollection.bind(db)
  db.createCollection = ((...args: Parameters<Db['createCollection']>) => {
    const created = last.then(() => create(...args))
    last = created.catch(() => {})
    return created
  }) as Db['createCollection']
  return db
}
