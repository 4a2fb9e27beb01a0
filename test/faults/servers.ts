import {
  describeWithMongo,
  describeWithReplicaSet,
  type FreshDatabase,
  freshDatabase,
  type Topology,
} from '../support/mongod.ts'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ClientMetadata } from 'oidc-provider'
import {
  type ExampleServer,
  putSettings,
  smtpSettings,
  startExampleServer,
  type Variables,
} from '../support/example-server.ts'
import { startMongoProxy, type MongoProxy } from '../support/mongo-proxy.ts'
import { createRelyingParty, type RelyingParty } from '../support/relying-party.ts'
import bcrypt from 'bcrypt'
import { createBrowser } from '../support/browser.ts'
import type { Answer } from '../support/user-agent.ts'
import { freePort } from '../support/free-port.ts'
import { startMailServer, type MailServer, type MailServerOptions } from '../support/mail-server.ts'

export const IS_SHORT = process.env['FAULTS'] === 'short'

/** `FAULTS=short` runs every fault test with the same assertions, only fewer rounds and shorter outages. */
export function scaled<T>({ full, short }: { full: T; short: T }): T {
  return IS_SHORT ? short : full
}

export const TOPOLOGIES: Topology[] = ['standalone', 'replica set']

/** One suite that works with both, side by side. */
export function describeOnBothTopologies(title: string, body: () => void): void {
  describeWithMongo(title, () => describeWithReplicaSet('and side by side with it', body))
}

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

/** A process of the example server that can be killed and started again, with a proxy between it and its database. */
export interface KillableServer {
  topology: Topology
  database: FreshDatabase
  proxy: MongoProxy
  /** Users and clients of the server; for another process on the same database. */
  seedFile: string
  /** Issuer, and where the endpoints are. */
  oauthUrl: string
  party: RelyingParty
  /** SIGKILL; answers once it is dead. */
  kill(): Promise<void>
  /**
   * Starts it again, on the same port and database and with the same keys. It must be dead. In the short form that is when what
   * the dead one held is free; the full form waits for that in real time, while it goes on.
   */
  restart(): Promise<void>
  /** Likewise, while what the dead one held is still left to it. */
  restartAtOnce(): Promise<void>
  /** Kills it, and drops the database. */
  close(): Promise<void>
}

export const CLIENT_ID = 'app'
const REDIRECT_URI = 'https://app.example/callback'

const CLIENT = {
  client_id: CLIENT_ID,
  client_name: 'The App',
  redirect_uris: [REDIRECT_URI],
  token_endpoint_auth_method: 'none',
  grant_types: ['authorization_code', 'refresh_token'],
}

/** On a database of its own. Mails go to a server at `smtpPort` of this machine. `clients`: what it knows beside the one of `party`. */
export async function startKillableServer(
  topology: Topology,
  smtpPort: number,
  settings: Record<string, string> = {},
  clients: ClientMetadata[] = [],
): Promise<KillableServer> {
  const database = await freshDatabase(topology)
  const proxy = await startMongoProxy(database)
  const folder = await mkdtemp(join(tmpdir(), 'account-flows-'))
  const seedFile = join(folder, 'seed.json')
  await writeFile(seedFile, JSON.stringify({ users: [], clients: [CLIENT, ...clients] }))
  const variables = { MONGODB_URI: proxy.uri, SEED_FILE: seedFile }
  let server = await startExampleServer(variables)
  const { baseUrl, port } = server
  await putSettings(server, { ...smtpSettings(smtpPort), ...settings })
  const oauthUrl = `${baseUrl}/oauth2`
  const party = await createRelyingParty(oauthUrl, {
    clientId: CLIENT_ID,
    redirectUri: REDIRECT_URI,
  })

  async function restartAtOnce() {
    server = await startExampleServer({ ...variables, PORT: String(port) })
  }

  return {
    topology,
    database,
    proxy,
    seedFile,
    oauthUrl,
    party,
    kill: () => server.kill(),
    async restart() {
      if (IS_SHORT) await endLeases(database)
      await restartAtOnce()
    },
    restartAtOnce,
    async close() {
      await server.kill()
      await proxy.close()
      await database.drop()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

export interface SeededUser {
  username: string
  email: string
  email_verified: boolean
  password: string
  disabled?: boolean
}

export interface SeededServerOptions {
  /** By way of a proxy, or not. */
  uri: string
  smtpPort: number
  users: SeededUser[]
  variables?: Variables
}

/** Verified, with an address and a password made of the name. */
export function userNamed(username: string, more: Partial<SeededUser> = {}): SeededUser {
  return {
    username,
    email: `${username}@users.example`,
    email_verified: true,
    password: `${username}-password`,
    ...more,
  }
}

/** The example server on MongoDB, with users of the test, its mails over a real SMTP server, and verification required. */
export async function startSeededServer(options: SeededServerOptions): Promise<ExampleServer> {
  const folder = await mkdtemp(join(tmpdir(), 'account-flows-faults-'))
  const [seedFile, settingsFile] = [join(folder, 'seed.json'), join(folder, 'settings.json')]
  const users = options.users.map(({ password, ...user }) => ({
    ...user,
    // Whatever the cost of new hashes is.
    password_hash: bcrypt.hashSync(password, 4),
  }))
  const seed = { users, clients: [DEMO_CLIENT] }
  const settings = { ...smtpSettings(options.smtpPort), require_email_verification: 'true' }
  try {
    await writeFile(seedFile, JSON.stringify(seed))
    await writeFile(settingsFile, JSON.stringify(settings))
    return await startExampleServer({
      MONGODB_URI: options.uri,
      SEED_FILE: seedFile,
      SETTINGS_FILE: settingsFile,
      ...options.variables,
    })
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

export function postForgot(server: ExampleServer, identifier: string): Promise<Answer> {
  return createBrowser(server.baseUrl).postForm('/oauth2/forgot-password', { identifier })
}

export function postReset(server: ExampleServer, token: string, password: string): Promise<Answer> {
  const fields = { token, password, confirm_password: password }
  return createBrowser(server.baseUrl).postForm('/oauth2/reset-password', fields)
}

/** From the demo client to the answer of the login, or back at the client. */
export async function signIn(
  server: ExampleServer,
  username: string,
  password: string,
): Promise<Answer> {
  const browser = createBrowser(server.baseUrl)
  const { hidden } = await browser.visit('/demo/start')
  return browser.submit('/oauth2/login', { ...hidden, username, password })
}

const DEMO_CLIENT = {
  client_id: 'demo',
  client_name: 'Demo client',
  redirect_uris: ['{base_url}/demo/callback'],
  response_types: ['code'],
  token_endpoint_auth_method: 'none',
}

export interface SuiteService {
  database: FreshDatabase
  mail: MailServer
  server: ExampleServer
}

/** The example server of the suite that asks for it, on a database of its own, with its mails over a real SMTP server. */
export function suiteService(
  settings: Record<string, string> = {},
  answer?: MailServerOptions['answer'],
): SuiteService {
  const service = { database: {}, mail: {}, server: {} } as SuiteService
  const { database, mail, server } = service
  const ends: (() => Promise<unknown>)[] = []

  before('the service runs', async function () {
    this.timeout(180_000)
    Object.assign(database, await freshDatabase())
    ends.unshift(database.drop)
    Object.assign(
      mail,
      await startMailServer({ port: await freePort(), ...(answer && { answer }) }),
    )
    ends.unshift(() => mail.close())
    Object.assign(server, await startExampleServer({ MONGODB_URI: database.uri }))
    ends.unshift(server.kill)
    await putSettings(server, { ...smtpSettings(mail.port), ...settings })
  })

  after(async () => {
    for (const end of ends) await end()
  })

  return service
}
