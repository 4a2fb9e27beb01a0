import { fork } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import bcrypt from 'bcrypt'
import {
  outboxIsQuiet,
  putSettings,
  smtpSettings,
  startExampleServer,
} from '../../test/support/example-server.ts'
import { freePort } from '../../test/support/serve.ts'
import { freshDatabase } from '../../test/support/mongod.ts'
import { createUserAgent, followWithin } from '../../test/support/user-agent.ts'
import type { Random } from './statistics.ts'
import { startRelay } from './wire.ts'

/** What a contrast is measured on; those with the same one share a server. */
export interface Setup {
  /** With the random delay as it is shipped; none by default. */
  isDelayed?: boolean
  /** What becomes of mails; `taken` by default. */
  mail?: 'refused' | 'silent' | 'unreachable'
  /** Each answer of MongoDB comes 100 ms later. */
  isFar?: boolean
  /** An account gets one mail in an hour. */
  isCapped?: boolean
}

export interface Person {
  username: string
  email: string
}

export interface Service extends Awaited<ReturnType<typeof startService>> {}

/** Low, so that a contrast of logins ends within a minute. */
const BCRYPT_COST = 8
export const CHEAP_HASH = bcrypt.hashSync('a password of the proof', 4)
/** The highest cost that everybody pays for. */
export const DEAR_HASH = bcrypt.hashSync('a password of the proof', BCRYPT_COST + 2)
const HASH = bcrypt.hashSync('a password of the proof', BCRYPT_COST)
const FAR_MS = 100
const REST_LIMIT_MS = 20_000

const SHIPPED = { RESPONSE_DELAY_FLOOR_MS: undefined, RESPONSE_DELAY_JITTER_MS: undefined }

/** Starts the example server as a process, with a database, a mail server and people of its own. */
export async function startService(
  { isDelayed, mail: mailMode, isFar, isCapped }: Setup,
  random: Random,
) {
  const database = await freshDatabase()
  const { relay, uri } = await wayTo(database.uri, isFar)
  const server = await startExampleServer({
    MONGODB_URI: uri,
    BCRYPT_COST: String(BCRYPT_COST),
    ...(isDelayed && SHIPPED),
  })
  const mail = await startMail(mailMode)
  await putSettings(server, {
    ...smtpSettings(mail.port),
    require_email_verification: 'true',
    email_link_confirmation: 'other_browser',
    password_blocklist: 'common',
    ...(isCapped && { mails_per_account_per_hour: '1' }),
  })

  const service = {
    /** Below it are the endpoints; ends with a slash. */
    oauthUrl: new URL(`${server.baseUrl}/oauth2/`),
    db: database.db,

    /** People that nobody else is; of all classes the names look the same. */
    strangers: (count: number): Person[] =>
      Array.from({ length: count }, () => {
        const username = Array.from({ length: 12 }, () => random.below(36).toString(36)).join('')
        return { username, email: `${username}@example.com` }
      }),

    /** Strangers who then have an account. */
    async accounts(count: number, document: object = {}) {
      const people = service.strangers(count)
      await service.add(people, document)
      return people
    },

    async add(people: Person[], document: object = {}) {
      const fields = { email_verified: true, password_hash: HASH, password_changed_at: null }
      const documents = people.map((person) => {
        return { _id: randomUUID(), ...person, ...fields, disabled: false, ...document }
      })
      const users = database.db.collection<{ _id: string }>('users')
      await users.insertMany(documents, { ignoreUndefined: true })
    },

    /** What a browser at the login page would send besides username and password. */
    async loginPage() {
      const agent = createUserAgent()
      const { origin } = service.oauthUrl
      const start = await agent.get(`${origin}/demo/start`)
      const { hidden } = await followWithin(agent, origin, start)
      const cookie = agent.cookiesFor(new URL('login', service.oauthUrl))
      return { cookie, interaction: hidden['interaction'] ?? '' }
    },

    /** Waits until the mails are out; those that cannot leave are dropped. */
    async rest() {
      await outboxIsQuiet(database, mailMode ? 1_000 : REST_LIMIT_MS).catch(() => {})
      await database.db.collection('mail_outbox').deleteMany({})
      await sleep(500)
    },

    async stop() {
      await server.kill()
      mail.stop()
      relay?.close()
      await database.drop()
    },
  }
  return service
}

async function wayTo(databaseUri: string, isFar = false) {
  if (!isFar) return { uri: databaseUri, relay: undefined }
  const { hostname, port } = new URL(databaseUri.replace(/^mongodb:/, 'http:'))
  const relay = await startRelay({ host: hostname, port: Number(port) }, FAR_MS)
  const address = `${relay.host}:${relay.port}`
  return { uri: databaseUri.replace(`${hostname}:${port}`, address), relay }
}

async function startMail(
  mode: Setup['mail'] | 'taken' = 'taken',
): Promise<{ port: number; stop(): void }> {
  if (mode === 'unreachable') return { port: await freePort(), stop() {} }
  const child = fork(fileURLToPath(new URL('../mail-sink.ts', import.meta.url)), [mode])
  const [told]: { port: number }[] = await once(child, 'message')
  return { port: told?.port ?? NaN, stop: () => child.disconnect() }
}
