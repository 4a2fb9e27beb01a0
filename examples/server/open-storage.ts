import type { Environment } from './environment.ts'
import { memoryStorage, mongoStorage, type Storage } from './storage.ts'

/** The database that the environment names, or none. */
export async function openStorage(
  { mongodbUri, databaseUrl }: Pick<Environment, 'mongodbUri' | 'databaseUrl'>,
  signingKeys: string[],
): Promise<Storage> {
  if (mongodbUri) return mongoStorage(mongodbUri, signingKeys)
  if (!databaseUrl) return memoryStorage()
  // Loaded here alone: `pg` is for those who have PostgreSQL.
  const { postgresStorage } = await import('./postgresql.ts')
  return postgresStorage(databaseUrl, signingKeys)
}
