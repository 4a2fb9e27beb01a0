import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { postgresStore, type PostgresPool } from '../../src/index.ts'
import { postgresUsers, USERS_INDEXES, USERS_TABLE } from '../stores/postgresql-users.ts'
import { reasonOf, StartRefused } from './environment.ts'
import { sharedProviderKeys, type KeyPlace } from './keys.ts'
import type { Storage } from './storage.ts'

/** Together they bound how long a request waits for a database that is gone. */
const LIMITS_MS = { connectionTimeoutMillis: 5_000, query_timeout: 5_000 }

const TABLES = `${USERS_TABLE};
  CREATE TABLE IF NOT EXISTS provider_jwks (id text PRIMARY KEY, jwe text NOT NULL, jwes_of_others jsonb NOT NULL)`

export async function postgresStorage(url: string, signingKeys: string[]): Promise<Storage> {
  const pool = new pg.Pool({ connectionString: url, ...LIMITS_MS })
  // A connection that is lost while nobody uses it; the next query opens another.
  pool.on('error', () => {})
  try {
    return { ...(await storageIn(pool, signingKeys)), close: () => pool.end() }
  } catch (error) {
    await pool.end()
    if (error instanceof StartRefused) throw error
    throw new StartRefused(`DATABASE_URL cannot be used: ${reasonOf(error)}`, { cause: error })
  }
}

export async function storageIn(
  pool: PostgresPool,
  signingKeys: string[],
): Promise<Omit<Storage, 'close'>> {
  // In one transaction, under a lock: two processes that make the same table at once would fail.
  const create = TABLES.split(';').map((text) => `EXECUTE $text$${text}$text$`)
  // IF NOT EXISTS would wait for all who write to the table.
  for (const [name, on] of Object.entries(USERS_INDEXES))
    create.push(`IF to_regclass('${name}') IS NULL THEN CREATE INDEX ${name} ON ${on}; END IF`)
  await pool.query(
    `DO $$ BEGIN PERFORM pg_advisory_xact_lock(314159265); ${create.join(';')}; END $$`,
  )
  return {
    store: postgresStore(pool),
    users: postgresUsers(pool),
    providerKeys: await sharedProviderKeys(keysIn(pool), signingKeys),

    async addUser({ username, email, emailVerified, passwordHash, disabled, mayReplaceEmail }) {
      await pool.query(
        `INSERT INTO users (id, username, email, email_verified, password_hash, disabled, may_replace_email)
         VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING`,
        [randomUUID(), username, email, emailVerified, passwordHash, disabled, mayReplaceEmail],
      )
    },
  }
}

function keysIn(pool: PostgresPool): KeyPlace {
  const read = async () => {
    const { rows } = await pool.query('SELECT jwe, jwes_of_others FROM provider_jwks')
    return (rows as Awaited<ReturnType<KeyPlace['insert']>>[])[0]
  }
  return {
    read,
    async insert({ jwe, jwes_of_others: others = [] }) {
      await pool.query(`INSERT INTO provider_jwks VALUES ('jwks', $1, $2) ON CONFLICT DO NOTHING`, [
        jwe,
        JSON.stringify(others),
      ])
      const keys = await read()
      if (!keys) throw new Error('the keys are gone')
      return keys
    },
    replace: (before, { jwe, jwes_of_others: others = [] }) =>
      pool.query('UPDATE provider_jwks SET jwe = $2, jwes_of_others = $3 WHERE jwe = $1', [
        before.jwe,
        jwe,
        JSON.stringify(others),
      ]),
  }
}
