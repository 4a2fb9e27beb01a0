import { randomUUID } from 'node:crypto'
import pg from 'pg'
import {
  AccountFlowsError,
  postgresStore,
  type PostgresPool,
  type User,
  type UserStore,
} from '../../src/index.ts'
import { reasonOf, StartRefused } from './environment.ts'
import { sharedProviderKeys, type KeyPlace } from './keys.ts'
import type { Storage } from './storage.ts'

/** Together they bound how long a request waits for a database that is gone. */
const LIMITS_MS = { connectionTimeoutMillis: 5_000, query_timeout: 5_000 }

const TABLES = `
  CREATE TABLE IF NOT EXISTS users (
    id text PRIMARY KEY,
    username text NOT NULL UNIQUE,
    email text,
    email_verified boolean NOT NULL DEFAULT false,
    password_hash text,
    password_changed_at timestamptz,
    disabled boolean NOT NULL DEFAULT false,
    may_replace_email boolean
  );
  CREATE TABLE IF NOT EXISTS provider_jwks (id text PRIMARY KEY, jwe text NOT NULL, jwes_of_others jsonb NOT NULL)`

const INDEXES = {
  users_username_in_any_case: 'users (lower(username COLLATE "C"))',
  users_email_in_any_case: 'users (lower(email COLLATE "C"))',
}

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

/** @param pool - the `Pool` of `pg`, or PGlite. */
export async function storageIn(
  pool: PostgresPool,
  signingKeys: string[],
): Promise<Omit<Storage, 'close'>> {
  // In one transaction, under a lock: two processes that make the same table at once would fail.
  const create = TABLES.split(';').map((text) => `EXECUTE $text$${text}$text$`)
  // IF NOT EXISTS would wait for all who write to the table.
  for (const [name, on] of Object.entries(INDEXES))
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

/** A recipe for a `UserStore` over a table of one's own. Each write is one statement, which does all or nothing. */
export function postgresUsers(pool: PostgresPool): UserStore {
  async function ask(text: string, ...values: string[]): Promise<User[]> {
    // PostgreSQL refuses such texts, and no user has one.
    if (values.some((value) => /[\0\p{Surrogate}]/u.test(value))) return []
    const { rows } = await pool.query(text, values).catch((error: unknown) => {
      // If your addresses are unique, another user has this one.
      if (codeOf(error) === '23505') return { rows: [] }
      throw isOutOfReach(error)
        ? new AccountFlowsError('ERR_STORE_UNAVAILABLE', 'users cannot be reached', {
            cause: error,
          })
        : error
    })
    return (rows as Row[]).map(toUser)
  }
  const all = (where: string, value: string) => ask(`SELECT * FROM users WHERE ${where}`, value)
  const isChanged = async (set: string, where: string, ...values: string[]) =>
    (await ask(`UPDATE users SET ${set} WHERE id = $1 AND ${where} RETURNING *`, ...values))
      .length === 1
  const hashed = 'password_changed_at = now(), password_hash'

  return {
    findById: async (id) => (await all('id = $1', id))[0],
    findByUsername: async (username) => (await all('username = $1', username))[0],
    // `COLLATE "C"`: of ASCII letters alone, and of no others.
    findByUsernameInAnyCase: (name) =>
      all('lower(username COLLATE "C") = lower($1 COLLATE "C")', name),
    findByEmail: (email) => all('lower(email COLLATE "C") = lower($1 COLLATE "C")', email),
    findByVerifiedEmail: (email) =>
      all('email_verified AND lower(email COLLATE "C") = lower($1 COLLATE "C")', email),

    replacePasswordHash: (id, expected, next) =>
      isChanged(`${hashed} = $3`, 'password_hash = $2', id, expected, next),
    setFirstPassword: (id, email, hash) =>
      isChanged(
        `${hashed} = $3, email_verified = true`,
        `email = $2 AND NOT disabled AND coalesce(password_hash, '') = ''`,
        id,
        email,
        hash,
      ),
    markEmailVerified: (id, email) =>
      isChanged(
        'email_verified = true',
        'email = $2 AND NOT disabled AND NOT email_verified',
        id,
        email,
      ),
    markEmailUnverified: (id, email) =>
      isChanged('email_verified = false', 'email = $2 AND email_verified', id, email),
    replaceEmail: (id, expected, next) =>
      isChanged(
        'email = $3, email_verified = true',
        'email = $2 AND NOT disabled AND NOT email_verified',
        id,
        expected,
        next,
      ),
  }
}

interface Row {
  id: string
  username: string
  email: string | null
  email_verified: boolean
  password_hash: string | null
  disabled: boolean
  may_replace_email: boolean | null
}

const toUser = ({ email, email_verified, password_hash, ...row }: Row): User => ({
  id: row.id,
  username: row.username,
  email: email ?? undefined,
  emailVerified: email_verified,
  passwordHash: password_hash || undefined,
  disabled: row.disabled,
  ...(row.may_replace_email && { mayReplaceEmail: true }),
})

const codeOf = (error: unknown): unknown => Reflect.get(Object(error), 'code')

/** The database told no reason of its own (SQLSTATE), or one of its connection, its resources or its operator. */
function isOutOfReach(error: unknown): boolean {
  const code = codeOf(error)
  const isState = typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code)
  return !isState || /^(?:08|53|57|58|25006)/.test(code)
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
