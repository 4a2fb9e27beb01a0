import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
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
import { ROOT } from '../support/folders.ts'
import { startMailServer, type MailServer, type MailServerOptions } from '../support/mail-server.ts'
import type { Database } from '../support/harness.ts'
import {
  type FreshPostgresql,
  freshPostgresql,
  type PostgresServer,
} from '../support/postgresql.ts'
import { recordsIn } from '../support/records.ts'
import { startMongoProxy, type MongoProxy } from '../support/mongo-proxy.ts'
import { type FreshDatabase, freshDatabase, type Topology } from '../support/mongod.ts'
import { createRelyingParty, type RelyingParty } from '../support/relying-party.ts'
import { freePort } from '../support/serve.ts'
import { suiteOf } from '../support/suite.ts'

export const IS_SHORT = process.env['FAULTS'] === 'short'

/** `FAULTS=short` runs every fault test with the same assertions, only fewer rounds and shorter outages. */
export function scaled<T>({ full, short }: { full: T; short: T }): T {
  return IS_SHORT ? short : full
}

/** What MongoDB does that is gone. */
export const OUTAGES = {
  'refuses connections': (proxy: MongoProxy) => proxy.sever(),
  'accepts connections and is silent': (proxy: MongoProxy) => proxy.stall(),
}

/** The example server with its mails over a real SMTP server. Its process can be killed and started again. */
export interface Processes {
  database: Database
  mail: MailServer
  /** The process that was started last. */
  server: ExampleServer
  baseUrl: string
  /** Issuer, and where the endpoints are. */
  oauthUrl: string
  /** The demo client, as it is registered. */
  party: RelyingParty
  /** SIGKILL; answers once it is dead. */
  kill(): Promise<void>
  /** Starts it again, on the same port and database and with the same keys, while what the dead one held is still left to it. */
  start(): Promise<void>
  /** Likewise; in the short form when what the dead one held is free. The full form waits for that in real time, while it goes on. */
  restart(): Promise<void>
  /** Another process on the same database, without the proxy, with the same issuer unless the variables say otherwise. */
  another(variables?: Variables): Promise<ExampleServer>
  /** Kills all of its processes, and drops the database. */
  close(): Promise<void>
}

/** On a MongoDB of its own. */
export interface Service extends Processes {
  topology: Topology
  database: FreshDatabase
  /** Between the process and its database. */
  proxy: MongoProxy
}

/** On a PostgreSQL of its own. */
export interface PostgresqlService extends Processes {
  database: FreshPostgresql
}

interface ProcessOptions {
  settings?: Record<string, string>
  /** What it knows beside the demo client. */
  clients?: ClientMetadata[]
  variables?: Variables
  mail?: MailServerOptions
}

interface ServiceOptions extends ProcessOptions {
  topology?: Topology
  /** In place of a new one. */
  database?: FreshDatabase
  /** The proxy is left out. */
  isDirect?: boolean
}

/** @param service - what it becomes, for a suite that has it before it runs. */
export async function startService(
  options: ServiceOptions = {},
  service = {} as Service,
): Promise<Service> {
  const { topology = 'standalone' } = options
  const database = options.database ?? (await freshDatabase(topology))
  const proxy = await startMongoProxy(database)
  const uri = options.isDirect ? database.uri : proxy.uri
  const of = { MONGODB_URI: uri }
  Object.assign(service, { topology, database, proxy })
  await startProcesses(service, options, of, { MONGODB_URI: database.uri })
  const { close } = service
  return Object.assign(service, {
    async close() {
      await proxy.restore()
      await close()
      await proxy.close()
    },
  })
}

async function startOnPostgresql(
  options: ProcessOptions & { server?: PostgresServer } = {},
  service = {} as PostgresqlService,
): Promise<PostgresqlService> {
  Object.assign(service, { database: await freshPostgresql(options.server) })
  return startProcesses(service, options, { DATABASE_URL: service.database.url })
}

/** @param uri - names the database to the process, and `uriOfOthers` to others. */
async function startProcesses<At extends Processes>(
  service: At,
  { settings, clients = [], variables, ...options }: ProcessOptions,
  uri: Variables,
  uriOfOthers = uri,
): Promise<At> {
  const mail = await startMailServer({ port: await freePort(), ...options.mail })
  const folder = await mkdtemp(join(tmpdir(), 'account-flows-'))
  const seedFile = join(folder, 'seed.json')
  const seed = JSON.parse(await readFile(`${ROOT}examples/seed.json`, 'utf8'))
  seed.clients.push(...clients)
  await writeFile(seedFile, JSON.stringify(seed))
  const shared = { SEED_FILE: seedFile, ...variables }
  const own = { PORT: String(await freePort()), ...shared }
  const others: ExampleServer[] = []

  const server = await startExampleServer({ ...uri, ...own })
  await putSettings(server, { ...smtpSettings(mail.port), ...settings })
  const { baseUrl } = server
  const oauthUrl = `${baseUrl}/oauth2`
  const client = { clientId: 'demo', redirectUri: `${baseUrl}/demo/callback` }
  const processes: Omit<Processes, 'database'> = {
    mail,
    server,
    baseUrl,
    oauthUrl,
    party: await createRelyingParty(oauthUrl, client),
    kill: () => service.server.kill(),

    async start() {
      service.server = await startExampleServer({ ...uri, ...own })
    },

    async restart() {
      if (IS_SHORT) await endLeases(service)
      await service.start()
    },

    async another(more: Variables = {}) {
      const own = { ...uriOfOthers, ...shared, BASE_URL: baseUrl, ...more }
      const other = await startExampleServer(own)
      others.push(other)
      return { ...other, baseUrl: `http://localhost:${other.port}` }
    },

    async close() {
      for (const each of [service.server, ...others]) await each.kill()
      await service.mail.close()
      await service.database.drop()
      await rm(folder, { recursive: true, force: true })
    },
  }
  return Object.assign(service, processes)
}

/** That of the suite that asks for it, from its first hook to its end. Options that a hook makes are given as a function. */
export function suiteService(
  options: ServiceOptions | (() => Promise<ServiceOptions>) = {},
): Service {
  return suiteOf<Service>(
    async (service) =>
      startService(typeof options === 'function' ? await options() : options, service),
    ({ close }) => close(),
  )
}

export function suiteOnPostgresql(
  options: () => Promise<Parameters<typeof startOnPostgresql>[0]> = async () => ({}),
): PostgresqlService {
  return suiteOf<PostgresqlService>(
    async (service) => startOnPostgresql(await options(), service),
    ({ close }) => close(),
  )
}

/** No job, mail, logout or reset is left to anybody, or waits for its next attempt, for longer. */
const LONGEST_MS = 60_000

/** The database as it is a minute later, while no process runs: what they held is free. Throws where it would not be by then. */
export async function endLeases(at: Pick<Processes, 'database'>): Promise<void> {
  await free(at.database, 'mail_outbox', 'available_at')
  await free(at.database, 'client_logouts', 'available_at')
  await endResetLeases(at)
}

/** Likewise of the resets alone, which may be finished twice, so that a process may run. */
export async function endResetLeases({ database }: Pick<Processes, 'database'>): Promise<void> {
  await free(database, 'password_reset_tokens', 'lease_until')
}

async function free(database: Database, name: string, field: string): Promise<void> {
  const now = new Date()
  const held = (await recordsIn(database, name)).filter(
    (record) => Number(record[field]) > Number(now),
  )
  const tooLong = held.find((record) => Number(record[field]) > Number(now) + LONGEST_MS)
  if (tooLong) throw new Error(`held for too long: ${JSON.stringify(tooLong)}`)
  await database.db
    ?.collection(name)
    .updateMany({ [field]: { $gt: now } }, { $set: { [field]: now } })
  await database.pool?.query(`UPDATE ${name} SET ${field} = $1 WHERE ${field} > $1`, [now])
}
