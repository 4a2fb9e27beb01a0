import { type CommandStartedEvent, MongoClient, type Db } from 'mongodb'
import { systemClock, within } from '../../src/clock.ts'
import {
  isAnswering,
  mongoUnavailable,
  randomDatabaseName,
  startMongo,
  type MongoServer,
  type Topology,
} from './mongod-servers.ts'
import { leaveOut } from './setup-advice.ts'

export { mongoUnavailable, startMongo, startReplicaSet, stopMongo } from './mongod-servers.ts'

export interface FreshDatabase {
  db: Db
  client: MongoClient
  /** With the database's name, so that a child process can be given it as it is. */
  uri: string
  /** Drops the database and closes the client. */
  drop(): Promise<void>
}

/** The very first start on a machine fetches and prepares MongoDB. */
const FIRST_START_LIMIT = 600_000
const DROP_LIMIT = 10_000

/**
 * A new, empty database with a random name. Throws where no MongoDB can be had.
 *
 * @param onCommand - is told each command that goes over its client.
 */
export async function freshDatabase(
  topology: Topology = 'standalone',
  onCommand?: (event: CommandStartedEvent) => void,
): Promise<FreshDatabase> {
  const server = await startMongo(topology)
  if (!server) throw new Error(mongoUnavailable(topology))
  const uri = withDatabase(server.uri, randomDatabaseName())
  const client = await MongoClient.connect(uri, { monitorCommands: onCommand !== undefined })
  if (onCommand) client.on('commandStarted', onCommand)
  return { db: client.db(), client, uri, drop: () => drop(client) }
}

/** A suite that needs MongoDB: pending where there is none, and under `CI=true` a failure. */
export function describeWithMongo(title: string, body: () => void): void {
  describeWith('standalone', title, body)
}

/** Likewise for a suite that needs a replica set: `freshDatabase('replica set')`. */
export function describeWithReplicaSet(title: string, body: () => void): void {
  describeWith('replica set', title, body)
}

/** By these the set-up knows what a run needs. */
export const TITLES: Record<Topology, string> = {
  standalone: 'with a MongoDB (standalone)',
  'replica set': 'with a MongoDB (replica set)',
}

/** The suite is one level down, where mocha skips its hooks together with its tests. */
function describeWith(topology: Topology, title: string, body: () => void): void {
  describe(TITLES[topology], function () {
    let server: MongoServer | undefined

    before('MongoDB runs', async function () {
      this.timeout(FIRST_START_LIMIT)
      server = await startMongo(topology)
      if (server) return
      leaveOut(this, `${mongoUnavailable(topology)}`)
    })

    afterEach('MongoDB still answers', async function () {
      if (!server || this.currentTest?.state !== 'failed' || (await isAnswering(server))) return
      await server.stop()
      throw new Error('MongoDB hung or died; the next suite gets a new one')
    })

    describe(title, body)
  })
}

/** A server that hangs is left as it is: the next suite notices. */
async function drop(client: MongoClient): Promise<void> {
  await within(systemClock, DROP_LIMIT, client.db().dropDatabase())
  await within(systemClock, DROP_LIMIT, client.close())
}

/** Credentials belong to the database that the URI named before, unless it says otherwise. */
function withDatabase(uri: string, name: string): string {
  const parts = /^(?<server>mongodb(?:\+srv)?:\/\/[^/?]+)\/?(?<database>[^?]*)\??(?<query>.*)$/
  const { server = uri, database = '', query = '' } = parts.exec(uri)?.groups ?? {}
  const options = new URLSearchParams(query)
  if (server.includes('@') && !options.has('authSource')) {
    options.set('authSource', database || 'admin')
  }
  return `${server}/${name}${options.size > 0 ? `?${options}` : ''}`
}
