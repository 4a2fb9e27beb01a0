import { readFile } from 'node:fs/promises'
import bcrypt from 'bcrypt'
import type { Adapter, AdapterPayload, Provider } from 'oidc-provider'
import { reasonOf, StartRefused } from './environment.ts'
import type { Storage } from './storage.ts'

interface SeedUser {
  username: string
  email: string | undefined
  emailVerified: boolean
  /** `undefined`: the user has no password. */
  password: { plain: string } | { hash: string } | undefined
  disabled: boolean
  mayReplaceEmail: boolean
}

export interface Seed {
  users: SeedUser[]
  /** Metadata as oidc-provider takes it. */
  clients: (AdapterPayload & { client_id: string })[]
}

/** Reads users and clients; `{base_url}` in a client's metadata stands for the base URL. */
export async function readSeed(file: string, baseUrl: string): Promise<Seed> {
  const { users, clients } = await readJson('SEED_FILE', file)
  return {
    users: arrayOf('users', users).map((user, index) => userOf(user, `users[${index}]`)),
    clients: arrayOf('clients', clients).map((client, index) => {
      const metadata = withBaseUrl(client, baseUrl)
      if (hasClientId(metadata)) return metadata
      throw wrong(`clients[${index}].client_id must be a string`)
    }),
  }
}

/** Settings to put where unset, as text by their names on the wire. */
export async function readSettings(file: string): Promise<Record<string, string>> {
  const settings: Record<string, string> = {}
  for (const [name, value] of Object.entries(await readJson('SETTINGS_FILE', file))) {
    if (typeof value !== 'string')
      throw new StartRefused(`SETTINGS_FILE: ${name} must be a string.`)
    settings[name] = value
  }
  return settings
}

interface SeedTarget {
  storage: Pick<Storage, 'users' | 'addUser'>
  clients: Adapter
  provider: Provider
  bcryptCost: number
}

/** Inserts what is absent, and leaves alone what is there. */
export async function insertSeed(
  seed: Seed,
  { storage, clients, provider, bcryptCost }: SeedTarget,
): Promise<void> {
  for (const { password, ...user } of seed.users) {
    if (await storage.users.findByUsername(user.username)) continue
    const plain = password && 'plain' in password ? password.plain : undefined
    const hash = password && 'hash' in password ? password.hash : undefined
    await storage.addUser({
      ...user,
      passwordHash: plain === undefined ? hash : await bcrypt.hash(plain, bcryptCost),
    })
  }
  for (const client of seed.clients) {
    const { client_id: id } = client
    if (!(await clients.find(id))) await clients.upsert(id, client)
    await provider.Client.find(id).catch((error: unknown) => {
      const reason = Reflect.get(Object(error), 'error_description') ?? reasonOf(error)
      throw wrong(`client ${id}: ${reason}`)
    })
  }
}

type Json = Record<string, unknown>

async function readJson(variable: string, file: string): Promise<Json> {
  try {
    const parsed: unknown = JSON.parse(await readFile(file, 'utf8'))
    if (isObject(parsed)) return parsed
  } catch (error) {
    throw new StartRefused(`${variable} cannot be read: ${reasonOf(error)}`, { cause: error })
  }
  throw new StartRefused(`${variable} must hold a JSON object.`)
}

function arrayOf(name: string, value: unknown): Json[] {
  if (value === undefined) return []
  if (Array.isArray(value) && value.every(isObject)) return value
  throw wrong(`${name} must be an array of objects`)
}

function userOf(user: Json, place: string): SeedUser {
  const { username, email, email_verified, password, password_hash, disabled } = user
  const { may_replace_email } = user
  if (typeof username !== 'string' || username === '') {
    throw wrong(`${place}.username must be a string`)
  }
  if (email !== undefined && typeof email !== 'string') {
    throw wrong(`${place}.email must be a string`)
  }
  return {
    username,
    email,
    emailVerified: flagOf(email_verified, `${place}.email_verified`),
    password: passwordOf(password, password_hash, place),
    disabled: flagOf(disabled, `${place}.disabled`),
    mayReplaceEmail: flagOf(may_replace_email, `${place}.may_replace_email`),
  }
}

function flagOf(value: unknown, place: string): boolean {
  if (value === undefined || typeof value === 'boolean') return value ?? false
  throw wrong(`${place} must be true or false`)
}

function passwordOf(plain: unknown, hash: unknown, place: string): SeedUser['password'] {
  if (plain !== undefined && hash !== undefined) {
    throw wrong(`${place} must have a password or a password_hash, not both`)
  }
  if (typeof plain === 'string') return { plain }
  if (typeof hash === 'string' && /^\$2[aby]\$\d\d\$[./A-Za-z0-9]{53}$/.test(hash)) return { hash }
  if (plain === undefined && hash === undefined) return undefined
  throw wrong(`${place} must have a password in text, or a bcrypt password_hash`)
}

function hasClientId(metadata: Json): metadata is Json & { client_id: string } {
  return typeof metadata['client_id'] === 'string' && metadata['client_id'] !== ''
}

function withBaseUrl(client: Json, baseUrl: string): Json {
  return JSON.parse(JSON.stringify(client), (_key, value: unknown) =>
    typeof value === 'string' ? value.replaceAll('{base_url}', baseUrl) : value,
  )
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function wrong(what: string): StartRefused {
  return new StartRefused(`SEED_FILE: ${what}.`)
}
