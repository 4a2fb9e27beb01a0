import { fork } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import bcrypt from 'bcrypt'
import type { Db } from 'mongodb'
import {
  outboxIsQuiet,
  putSettings,
  smtpSettings,
  startExampleServer,
} from '../../test/support/example-server.ts'
import { freePort } from '../../test/support/serve.ts'
import { freshDatabase } from '../../test/support/mongod.ts'
import { createUserAgent } from '../../test/support/user-agent.ts'
import type { Random } from './random.ts'
import { startRelay } from './relay.ts'

/** What a contrast is measured on; those with the same one share a server. */
export interface Setup {
  delay: 'none' | 'shipped'
  mail: 'taken' | 'refused' | 'silent' | 'unreachable'
  /** `far`: each answer of MongoDB comes 100 ms later. */
  database: 'near' | 'far'
  /** How many mails an account gets in an hour. */
  cap: 'none' | 'one'
}

export interface Person {
  username: string
  email: string
}

export interface Service {
  /** Below it are the endpoints; ends with a slash. */
  oauthUrl: URL
  db: Db
  /** People that nobody else is; of all classes the names look the same. */
  strangers(count: number): Person[]
  /** Strangers who then have an account. */
  accounts(count: number, document?: object): Promise<Person[]>
  /** Accounts for these people. */
  add(people: Person[], document?: object): Promise<void>
  /** What a browser at the login page would send besides username and password. */
  loginPage(): Promise<{ cookie: string; interaction: string }>
  /** Waits until the mails are out; those that cannot leave are dropped. */
  rest(): Promise<void>
  stop(): Promise<void>
}

/** Low, so that a contrast of logins ends within a minute. */
const BCRYPT_COST = 8
export const CHEAP_HASH = bcrypt.hashSync('a password of the proof', 4)
/** The highest cost that everybody pays for. */
export const DEAR_HASH = bcrypt.hashSync('a password of the proof', BCRYPT_COST + 2)
const HASH = bcrypt.hashSync('a password of the proof', BCRYPT_COST)
const FAR_MS = 100
const REST_LIMIT_MS = 20_000

const CLIENT = {
  client_id: 'app',
  client_secret: 'the secret of the client of the proof',
  redirect_uris: ['https://app.example/callback'],
}

const SHIPPED = { RESPONSE_DELAY_FLOOR_MS: undefined, RESPONSE_DELAY_JITTER_MS: undefined }

/** Starts the example server as a process, with a database, a mail server and people of its own. */
export async function startService(setup: Setup, random: Random): Promise<Service> {
  const database = await freshDatabase()
  const folder = await mkdtemp(join(tmpdir(), 'account-flows-secrecy-'))
  const seedFile = join(folder, 'seed.json')
  await writeFile(seedFile, JSON.stringify({ users: [], clients: [CLIENT] }))
  const { relay, uri } = await wayTo(database.uri, setup.database)
  const server = await startExampleServer({
    MONGODB_URI: uri,
    SEED_FILE: seedFile,
    BCRYPT_COST: String(BCRYPT_COST),
    ...(setup.delay === 'shipped' && SHIPPED),
  })
  const mail = await startMail(setup.mail)
  await putSettings(server, {
    ...smtpSettings(mail.port),
    require_email_verification: 'true',
    email_link_confirmation: 'other_browser',
    password_blocklist: 'common',
    ...(setup.cap === 'one' && { mails_per_account_per_hour: '1' }),
  })
  const oauthUrl = new URL(`${server.baseUrl}/oauth2/`)
  const users = database.db.collection<{ _id: string }>('users')

  function strangers(count: number): Person[] {
    return Array.from({ length: count }, () => {
      const username = Array.from({ length: 12 }, () => random.below(36).toString(36)).join('')
      return { username, email: `${username}@example.com` }
    })
  }

  async function add(people: Person[], document: object = {}) {
    await users.insertMany(
      people.map((person) => ({
        _id: randomUUID(),
        ...person,
        email_verified: true,
        password_hash: HASH,
        password_changed_at: null,
        disabled: false,
        ...document,
      })),
      { ignoreUndefined: true },
    )
  }

  return {
    oauthUrl,
    db: database.db,
    strangers,
    add,

    async accounts(count, document) {
      const people = strangers(count)
      await add(people, document)
      return people
    },

    async loginPage() {
      const agent = createUserAgent()
      const query = new URLSearchParams({
        response_type: 'code',
        client_id: CLIENT.client_id,
        redirect_uri: CLIENT.redirect_uris[0] ?? '',
        scope: 'openid',
      })
      const { location = '' } = await agent.get(new URL(`auth?${query}`, oauthUrl))
      const page = await agent.get(location)
      const interaction = page.hidden['interaction'] ?? ''
      return { cookie: agent.cookiesFor(new URL('login', oauthUrl)), interaction }
    },

    async rest() {
      const limit = setup.mail === 'taken' ? REST_LIMIT_MS : 1_000
      await outboxIsQuiet(database, limit).catch(() => {})
      await database.db.collection('mail_outbox').deleteMany({})
      await sleep(500)
    },

    async stop() {
      await server.kill()
      mail.stop()
      relay?.close()
      await rm(folder, { recursive: true, force: true })
      await database.drop()
    },
  }
}

async function wayTo(databaseUri: string, distance: Setup['database']) {
  if (distance === 'near') return { uri: databaseUri, relay: undefined }
  const { hostname, port } = new URL(databaseUri.replace(/^mongodb:/, 'http:'))
  const relay = await startRelay({ host: hostname, port: Number(port) }, FAR_MS)
  const address = `${relay.host}:${relay.port}`
  return { uri: databaseUri.replace(`${hostname}:${port}`, address), relay }
}

async function startMail(mode: Setup['mail']): Promise<{ port: number; stop(): void }> {
  if (mode === 'unreachable') return { port: await freePort(), stop() {} }
  const child = fork(fileURLToPath(new URL('../mail-sink.ts', import.meta.url)), [mode])
  const [told]: { port: number }[] = await once(child, 'message')
  return { port: told?.port ?? NaN, stop: () => child.disconnect() }
}
