/**
 * Users in a table of your own, in PostgreSQL. Copy this file, and import from `oidc-account-flows` there. Each write is one statement,
 * which does all or nothing.
 *
 * @module
 */
import { AccountFlowsError, type PostgresPool, type User, type UserStore } from '../../src/index.ts'

/** Run it before the first start. */
export const USERS_TABLE = `
  CREATE TABLE IF NOT EXISTS users (
    id text PRIMARY KEY,
    username text NOT NULL UNIQUE,
    email text,
    email_verified boolean NOT NULL DEFAULT false,
    password_hash text,
    password_changed_at timestamptz,
    disabled boolean NOT NULL DEFAULT false,
    may_replace_email boolean
  )`

/** By its name: what each index of the table is on. */
export const USERS_INDEXES = {
  users_username_in_any_case: 'users (lower(username COLLATE "C"))',
  users_email_in_any_case: 'users (lower(email COLLATE "C"))',
}

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
