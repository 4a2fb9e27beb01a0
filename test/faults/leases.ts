import type { FreshDatabase } from '../support/mongod.ts'

/** No job, mail, logout or reset is left to anybody, or waits for its next attempt, for longer. */
const LONGEST_MS = 60_000

/** The database as it is a minute later, while no process runs: what they held is free. Throws where it would not be by then. */
export async function endLeases(database: FreshDatabase): Promise<void> {
  await free(database, 'mail_outbox', 'available_at')
  await free(database, 'client_logouts', 'available_at')
  await endResetLeases(database)
}

/** Likewise of the resets alone, which may be finished twice, so that a process may run. */
export async function endResetLeases(database: FreshDatabase): Promise<void> {
  await free(database, 'password_reset_tokens', 'lease_until')
}

async function free({ db }: FreshDatabase, name: string, field: string): Promise<void> {
  const now = new Date()
  const collection = db.collection(name)
  const tooLong = { [field]: { $gt: new Date(now.getTime() + LONGEST_MS) } }
  const held = await collection.findOne(tooLong)
  if (held) throw new Error(`held for too long: ${JSON.stringify(held)}`)
  await collection.updateMany({ [field]: { $gt: now } }, { $set: { [field]: now } })
}
