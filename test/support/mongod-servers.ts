import type { ChildProcess } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { mkdtemp, statfs } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { MongoClient, type Document } from 'mongodb'
import { MongoMemoryReplSet, MongoMemoryServer } from 'mongodb-memory-server-core'
import { systemClock, within } from '../../src/clock.ts'
import { removeAbandoned } from './abandoned.ts'
import { atEndOfRun } from './end-of-run.ts'
import { freePort } from './free-port.ts'
import { mongodSources } from './mongod-sources.ts'

/** A real MongoDB for the tests: one server, and where asked for one replica set of one, per test process. */
export interface MongoServer {
  uri: string
  /** Where it is from, in words. */
  origin: string
  /** Its path. `undefined` where it was running before. */
  mongod?: string
  stop(): Promise<void>
}

export type Topology = 'standalone' | 'replica set'

const LAUNCH_LIMIT = 60_000
const ANSWER_LIMIT = 10_000
const TTL_EVERY_SECOND = ['--setParameter', 'ttlMonitorSleepSecs=1']
const MEMORY_FOLDER = '/dev/shm'
const MISSING = 'ACCOUNT_FLOWS_TESTS_NO_MONGODB'
const DATA_OF_PROCESS = 'mongo-of-tests-'
/** More than all servers of a test run need. */
const ROOM = 2 ** 30
const NAMED = ['MONGODB_URI', 'MONGOMS_SYSTEM_BINARY']
const HOW_TO_GET_ONE =
  'run the tests as root on Debian or Ubuntu, put mongod on the PATH, or set MONGODB_URI'

const servers = new Map<Topology, Promise<MongoServer | undefined>>()
const running = new Set<MongoMemoryServer>()
const unavailable = new Map<Topology, string>()

/** The server that all suites share; a new one if it has hung or died. `undefined`: `mongoUnavailable` says why. */
export function startMongo(topology: Topology = 'standalone'): Promise<MongoServer | undefined> {
  if (servers.size === 0) atEndOfRun(stopMongo)
  const server = keepOrReplace(topology, servers.get(topology))
  servers.set(topology, server)
  return server
}

/** Likewise a replica set of one, for transactions and change streams. */
export function startReplicaSet(): Promise<MongoServer | undefined> {
  return startMongo('replica set')
}

export interface ThreeMembers {
  uri: string
  /** SIGKILL for the member that listens on that port; it does not come back. */
  kill(port: number): Promise<void>
  stop(): Promise<void>
}

/** A replica set of three for a suite that takes its members away. `undefined`: `mongoUnavailable` says why. */
export async function startThreeMembers(): Promise<ThreeMembers | undefined> {
  const mongod = (await startReplicaSet())?.mongod
  if (mongod === undefined) return undefined
  const { uri, members } = await replicaSet(mongod, 3)
  for (const member of members) running.add(member)
  return {
    uri,
    async kill(port) {
      const member = members.find(({ instanceInfo }) => instanceInfo?.port === port)
      if (member) await killed(member)
    },
    stop: () => stop(members),
  }
}

/** Stops every server of this process. */
export async function stopMongo(): Promise<void> {
  const started = [...servers.values()]
  servers.clear()
  for (const server of started) await (await server)?.stop()
}

/** One sentence: why no MongoDB could be had, and how to get one. */
export function mongoUnavailable(topology: Topology): string | undefined {
  return process.env[MISSING] ?? unavailable.get(topology)
}

/** Starts the shared one, and tells where it is from. What one process has found is not looked for again by those that it starts. */
export async function setUpMongo(topology: Topology): Promise<string> {
  const server = await startMongo(topology)
  const missing = unavailable.get(topology)
  if (server?.mongod) process.env['MONGOMS_SYSTEM_BINARY'] = server.mongod
  else if (missing && topology === 'standalone') process.env[MISSING] = missing
  if (!server) return `${missing}`
  return `MongoDB (${topology}): ${server.mongod ?? 'a running one'}, from ${server.origin}.`
}

/** Whether it still creates collections: under Wine a storm of write conflicts may end that, while a ping is answered. */
export async function isAnswering(server: MongoServer): Promise<boolean> {
  const client = new MongoClient(server.uri, {
    serverSelectionTimeoutMS: ANSWER_LIMIT,
    connectTimeoutMS: ANSWER_LIMIT,
    socketTimeoutMS: ANSWER_LIMIT,
    retryWrites: false,
  })
  const isAnswered = await createAndDrop(client).catch(() => false)
  await within(systemClock, 1_000, client.close())
  return isAnswered
}

export function randomDatabaseName(): string {
  return `test_${randomBytes(8).toString('hex')}`
}

async function createAndDrop(client: MongoClient): Promise<boolean> {
  const collection = await client.db(randomDatabaseName()).createCollection('answering')
  return collection.drop()
}

async function keepOrReplace(
  topology: Topology,
  current: Promise<MongoServer | undefined> | undefined,
): Promise<MongoServer | undefined> {
  const server = await current
  if (current && !server) return undefined
  if (server && (await isAnswering(server))) return server
  await server?.stop()
  return start(topology)
}

/** Every failure becomes a reason, because the next way may still be open. */
async function start(topology: Topology): Promise<MongoServer | undefined> {
  if (process.env[MISSING]) return undefined
  const reasons: string[] = []
  for (const attempt of waysToStart(topology)) {
    try {
      const server = await attempt()
      if (server) return server
    } catch (error) {
      reasons.push(error instanceof Error ? error.message : String(error))
    }
  }
  const why = reasons.length > 0 ? ` (${reasons.join('; ')})` : ''
  const named = NAMED.find((name) => process.env[name])
  const how = named ? `correct ${named} or unset it` : HOW_TO_GET_ONE
  unavailable.set(topology, `No MongoDB${why}: ${how}.`)
  return undefined
}

type WayToStart = () => Promise<MongoServer | undefined>

function waysToStart(topology: Topology): WayToStart[] {
  const uri = process.env['MONGODB_URI']
  if (uri) return [() => useGiven(uri, topology)]
  return mongodSources().map(({ origin, find }) => async () => {
    const mongod = await find()
    return mongod ? launch(topology, mongod, origin) : undefined
  })
}

async function useGiven(uri: string, topology: Topology): Promise<MongoServer> {
  const { setName } = await hello(uri)
  if (topology === 'replica set' && !setName) throw new Error('MONGODB_URI is no replica set')
  return { uri, origin: 'MONGODB_URI', stop: async () => {} }
}

async function hello(uri: string): Promise<Document> {
  try {
    const client = await MongoClient.connect(uri, { serverSelectionTimeoutMS: ANSWER_LIMIT })
    const answer = await client.db().command({ hello: 1 })
    await client.close()
    return answer
  } catch (error) {
    throw new Error('the server at MONGODB_URI does not answer', { cause: error })
  }
}

async function launch(topology: Topology, mongod: string, origin: string): Promise<MongoServer> {
  const launched = topology === 'standalone' ? standalone(mongod) : replicaSet(mongod)
  const { uri, members } = await launched.catch((error: unknown) => {
    throw new Error(`${mongod} does not start`, { cause: error })
  })
  for (const member of members) running.add(member)
  return { uri, origin, mongod, stop: () => stop(members) }
}

async function standalone(systemBinary: string) {
  const server = await MongoMemoryServer.create({
    binary: { systemBinary },
    instance: await instanceOptions(),
  })
  return { uri: server.getUri(), members: [server] }
}

async function replicaSet(systemBinary: string, count = 1) {
  const instanceOpts = await Promise.all(Array.from({ length: count }, instanceOptions))
  const set = await MongoMemoryReplSet.create({
    binary: { systemBinary },
    instanceOpts,
    replSet: { count },
  })
  return { uri: set.getUri(), members: set.servers }
}

async function instanceOptions() {
  return {
    args: TTL_EVERY_SECOND,
    launchTimeout: LAUNCH_LIMIT,
    port: await freePort(),
    dbPath: await newDataFolder(),
  }
}

/** In memory where there is room: most of what it takes to create a collection is to wait for a disk. */
async function newDataFolder(): Promise<string> {
  const { bavail, bsize } = await statfs(MEMORY_FOLDER).catch(() => ({ bavail: 0, bsize: 0 }))
  const isRoomy = Math.min(bavail * bsize, process.availableMemory()) > ROOM
  const folder = isRoomy ? MEMORY_FOLDER : tmpdir()
  await removeAbandoned(folder, DATA_OF_PROCESS)
  return mkdtemp(path.join(folder, `${DATA_OF_PROCESS}${process.pid}-`))
}

/** Kills first: nobody needs the data any more, and a server that hangs does not hear the polite way. */
async function stop(members: MongoMemoryServer[]): Promise<void> {
  for (const member of members) {
    await killed(member)
    running.delete(member)
    await member.stop({ doCleanup: true, force: true })
  }
}

async function killed(member: MongoMemoryServer): Promise<void> {
  const mongod = kill(member)
  if (mongod && mongod.exitCode === null && mongod.signalCode === null) await once(mongod, 'exit')
}

function kill(member: MongoMemoryServer): ChildProcess | undefined {
  const mongod = member.instanceInfo?.instance.mongodProcess
  mongod?.kill('SIGKILL')
  return mongod
}

/** The last thing a process does that did not get to `stopMongo`. */
function abandon(): void {
  for (const member of running) {
    kill(member)
    const folder = member.instanceInfo?.dbPath
    if (folder) rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
  }
  running.clear()
}

process.on('exit', abandon)
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.once(signal, () => {
    abandon()
    process.kill(process.pid, signal)
  })
}

// The library would run the binary once more to compare its version with the one it would have downloaded.
process.env['MONGOMS_SYSTEM_BINARY_VERSION_CHECK'] ??= 'false'
