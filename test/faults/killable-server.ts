import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ClientMetadata } from 'oidc-provider'
import { putSettings, smtpSettings } from '../support/example-requests.ts'
import { startExampleServer } from '../support/example-server.ts'
import { freshDatabase, type FreshDatabase, type Topology } from '../support/mongod.ts'
import { startMongoProxy, type MongoProxy } from '../support/mongo-proxy.ts'
import { createRelyingParty, type RelyingParty } from '../support/relying-party.ts'
import { endLeases } from './leases.ts'
import { IS_SHORT } from './scale.ts'

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
