/**
 * A real MongoDB for the tests: one server, and where asked for one replica set of one, per process. They end with it.
 *
 * @module
 */
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Suite } from 'mocha'
import { type CommandStartedEvent, MongoClient } from 'mongodb'
import { MongoMemoryReplSet, MongoMemoryServer } from 'mongodb-memory-server'
import { systemClock, within } from '../../src/clock.ts'
import { mongo } from './find-mongo.ts'
import { folderForData } from './folders.ts'
import { describeWith } from './missing.ts'
import { freePort } from './serve.ts'
import { suiteOf } from './suite.ts'

export type Topology = 'standalone' | 'replica set'

export interface MongoServer {
  uri: string
  /** Those that are ours to kill. */
  members: MongoMemoryServer[]
}

export interface FreshDatabase extends Awaited<ReturnType<typeof freshDatabase>> {}

const LAUNCH_LIMIT = 60_000
const ANSWER_LIMIT = 60_000
const DATA = 'mongo-of-tests-'

/** A suite that needs MongoDB: pending where there is none, and under `CI=true` a failure. */
export function describeWithMongo(title: string, body: (this: Suite) => void): void {
  describeOn('standalone', title, body)
}

/** Likewise for a suite that needs a replica set: `freshDatabase('replica set')`. */
export function describeWithReplicaSet(title: string, body: (this: Suite) => void): void {
  describeOn('replica set', title, body)
}

function describeOn(topology: Topology, title: string, body: (this: Suite) => void): void {
  const start = () => startMongo(topology)
  describeWith(`${mongo.title} (${topology})`, start, title, function () {
    afterEach('MongoDB still answers', async function () {
      const server = await servers.get(topology)
      if (this.currentTest?.state !== 'failed' || (await startMongo(topology)) === server) return
      throw new Error('MongoDB hung or died; the next suite has a new one')
    })

    body.call(this)
  })
}

/**
 * A new, empty database with a random name. Throws where no MongoDB can be had.
 *
 * @param onCommand - is told each command that goes over its client.
 */
export async function freshDatabase(
  topology: Topology = 'standalone',
  onCommand?: (event: CommandStartedEvent) => void,
) {
  const server = await startMongo(topology)
  const uri = withDatabase(server.uri, randomDatabaseName())
  const client = await MongoClient.connect(uri, { monitorCommands: onCommand !== undefined })
  if (onCommand) client.on('commandStarted', onCommand)
  return {
    db: client.db(),
    client,
    /** With the database's name, so that a child process can be given it as it is. */
    uri,
    /** Drops the database and closes the client. A server that hangs is left as it is: the next suite notices. */
    async drop(): Promise<void> {
      await within(systemClock, ANSWER_LIMIT, client.db().dropDatabase())
      await within(systemClock, ANSWER_LIMIT, client.close())
    },
  }
}

const servers = new Map<Topology, Promise<MongoServer>>()

/** The server that all suites share; a new one if it has hung or died. What stands in the way is thrown as one sentence. */
export function startMongo(topology: Topology = 'standalone'): Promise<MongoServer> {
  const server = keepOrReplace(topology, servers.get(topology))
  servers.set(topology, server)
  return server
}

/** Ends all that this process has started, as its own end does. */
export function stopMongo(): void {
  servers.clear()
  running.forEach(kill)
  if (dataFolder) rmSync(dataFolder, { recursive: true, force: true, maxRetries: 5 })
  dataFolder = undefined
}

/** Nobody needs the data any more, and a server that hangs does not hear the polite way. */
export function kill(member: MongoMemoryServer): void {
  member.instanceInfo?.instance.mongodProcess?.kill('SIGKILL')
}

async function keepOrReplace(
  topology: Topology,
  current: Promise<MongoServer> | undefined,
): Promise<MongoServer> {
  const server = await current
  if (server && (await isAnswering(server))) return server
  server?.members.forEach(kill)
  return newServer(topology)
}

/** Whether it still creates collections: under Wine a storm of write conflicts may end that, while a ping is answered. */
async function isAnswering({ uri }: MongoServer): Promise<boolean> {
  const client = new MongoClient(uri, {
    serverSelectionTimeoutMS: ANSWER_LIMIT,
    connectTimeoutMS: ANSWER_LIMIT,
    socketTimeoutMS: ANSWER_LIMIT,
    retryWrites: false,
  })
  const createAndDrop = async () => {
    const collection = await client.db(randomDatabaseName()).createCollection('answering')
    return collection.drop()
  }
  const isAnswered = await createAndDrop().catch(() => false)
  await within(systemClock, 1_000, client.close())
  return isAnswered
}

function randomDatabaseName(): string {
  return `test_${randomBytes(8).toString('hex')}`
}

const running: MongoMemoryServer[] = []

/** One of its own for the caller, unless it was given by its address. */
export async function newServer(topology: Topology, count = 1): Promise<MongoServer> {
  const found = await mongo.find()
  if ('uri' in found) {
    if (topology === 'standalone' || found.isReplicaSet) return { uri: found.uri, members: [] }
    throw new Error('The server at MONGODB_URI is no replica set.')
  }
  const binary = { systemBinary: found.path }
  if (topology === 'standalone') {
    const server = await MongoMemoryServer.create({ binary, instance: await instanceOptions() })
    running.push(server)
    return { uri: server.getUri(), members: [server] }
  }
  const instanceOpts = await Promise.all(Array.from({ length: count }, instanceOptions))
  const set = await MongoMemoryReplSet.create({ binary, instanceOpts, replSet: { count } })
  running.push(...set.servers)
  return { uri: set.getUri(), members: set.servers }
}

async function instanceOptions() {
  return {
    args: ['--setParameter', 'ttlMonitorSleepSecs=1'],
    launchTimeout: LAUNCH_LIMIT,
    port: await freePort(),
    dbPath: newDataFolder(),
  }
}

let dataFolder: string | undefined

function newDataFolder(): string {
  dataFolder ??= mkdtempSync(join(folderForData(DATA), `${DATA}${process.pid}-`))
  return mkdtempSync(join(dataFolder, 'server-'))
}

/** Credentials belong to the database that the URI named before, unless it says otherwise. */
function withDatabase(uri: string, name: string): string {
  const [, server = uri, database, query] = /^([^/]+\/\/[^/?]+)\/?([^?]*)(.*)$/.exec(uri) ?? []
  const options = new URLSearchParams(query)
  if (server.includes('@') && !options.has('authSource'))
    options.set('authSource', database || 'admin')
  return `${server}/${name}?${options}`
}

process.on('exit', stopMongo)
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.once(signal, () => process.exit(1))
}

// The library would run the binary once more to compare its version with the one it would have downloaded.
process.env['MONGOMS_SYSTEM_BINARY_VERSION_CHECK'] ??= 'false'

/** The database of the suite that asks for it, from its first hook to its end. */
export const suiteDatabase = (topology?: Topology) =>
  suiteOf<FreshDatabase>(
    () => freshDatabase(topology),
    ({ drop }) => drop(),
  )
