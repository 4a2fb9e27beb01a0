/**
 * A TCP proxy between one process and MongoDB that understands the wire protocol: it sees every command before it is
 * forwarded and every reply before it is handed back, so that a test can act between two steps, or take the database away.
 *
 * @example
 * const proxy = await startMongoProxy(await freshDatabase('replica set'))
 * const server = await startExampleServer({ MONGODB_URI: proxy.uri })
 * const killed = proxy.interrupt({ matches: isUsersUpdate, when: 'after' }, () => server.kill())
 * await proxy.sever() // ECONNREFUSED …
 * await proxy.restore() // … until here
 *
 * @module
 */
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { BSON, type Document, MongoClient, type MongoClientOptions } from 'mongodb'
import { type FreshDatabase, freshDatabase } from './mongod.ts'
import { freePort } from './serve.ts'
import { suiteHarness, type Harness, type HarnessOptions } from './harness.ts'
import { suiteOf } from './suite.ts'

export interface MongoCommand {
  /** As on the wire: `findAndModify`, `insert`, `hello`, … */
  name: string
  database: string
  /** `undefined`: a command about no collection, such as `hello` or `ping`. */
  collection: string | undefined
  body: Document
}

/** A moment in the life of one command; it comes once. */
export interface Moment {
  matches(command: MongoCommand): boolean
  /** Which of the commands that match, from 1. */
  nth?: number
  /** `before`: MongoDB never gets the command. `after`: MongoDB has executed it, and the client never gets the reply. */
  when: 'before' | 'after'
}

/** Whether a command writes to this collection, or records of this model of the provider. */
export const isWriteOf =
  (which: string) =>
  ({ name, collection, body }: MongoCommand): boolean => {
    const isOfModel = collection === 'oidc_records' && JSON.stringify(body).includes(`"${which}:`)
    const isWrite = ['insert', 'update', 'delete', 'findAndModify'].includes(name)
    return isWrite && (collection === which || isOfModel)
  }

interface Watcher {
  command?(command: MongoCommand): void
  reply?(command: MongoCommand, reply: Document): void
}

export interface MongoProxy extends Awaited<ReturnType<typeof startMongoProxy>> {}

interface Armed {
  moment: Moment
  left: number
  strike(command: MongoCommand): Promise<void>
}

const OP_MSG = 2013
const HEADER_BYTES = 16

export async function startMongoProxy({ db, uri }: FreshDatabase) {
  const target = await primaryOf(db, uri)
  const connections = new Set<Socket>()
  const watchers = new Set<Watcher>()
  const armed = new Set<Armed>()
  let held: Gate | undefined

  const server = createServer({ noDelay: true }, (client) => {
    serve(client).catch(() => client.destroy())
  })

  async function serve(client: Socket) {
    keep(client)
    await held?.passed
    if (client.destroyed) return
    const mongod = connect({ ...target, noDelay: true })
    keep(mongod)
    client.once('close', () => mongod.destroy())
    mongod.once('close', () => client.destroy())
    const drop = () => void client.destroy()
    const awaited = new Map<number, MongoCommand>()

    async function forward(message: Buffer): Promise<void> {
      const command = isWatched() ? commandOf(message) : undefined
      if (command) {
        awaited.set(message.readInt32LE(4), command)
        for (const watcher of watchers) watcher.command?.(command)
        if (await isInterrupted('before', command)) return drop()
      }
      mongod.write(message)
    }

    async function handBack(message: Buffer): Promise<void> {
      const requestId = message.readInt32LE(8)
      const command = awaited.get(requestId)
      awaited.delete(requestId)
      const reply = command && bodyOf(message)
      if (reply) {
        for (const watcher of watchers) watcher.reply?.(command, reply)
        if (await isInterrupted('after', command)) return drop()
      }
      client.write(message)
    }

    await Promise.race([relay(client, forward), relay(mongod, handBack)])
  }

  function keep(socket: Socket) {
    connections.add(socket)
    socket.once('close', () => connections.delete(socket))
    // The other side hears of it by the close that follows.
    socket.on('error', () => {})
  }

  async function relay(from: Socket, pass: (message: Buffer) => unknown) {
    for await (const message of messagesOf(from)) {
      await held?.passed
      if (from.destroyed) return
      await pass(message)
    }
  }

  const isWatched = () => watchers.size > 0 || armed.size > 0

  async function isInterrupted(when: Moment['when'], command: MongoCommand) {
    const matching = [...armed].filter(
      ({ moment }) => moment.when === when && moment.matches(command),
    )
    for (const each of matching) each.left -= 1
    const reached = matching.filter(({ left }) => left === 0)
    for (const each of reached) armed.delete(each)
    for (const { strike } of reached) await strike(command)
    return reached.length > 0
  }

  /** Refuses new connections, and drops those that are. */
  async function stop() {
    const closed = new Promise((resolve) => server.close(resolve))
    for (const socket of connections) socket.destroy()
    await closed
  }

  function letGo() {
    held?.open()
    held = undefined
  }

  const port = await freePort()
  await once(server.listen(port, '127.0.0.1'), 'listening')

  return {
    /** Of the database, by way of this proxy; as it is for a child process. */
    uri: through(uri, port),

    /** Shows every command and every reply from now on. Answers how to stop it. */
    watch(watcher: Watcher): () => void {
      watchers.add(watcher)
      return () => void watchers.delete(watcher)
    },

    /**
     * When the moment comes, does `act`, then drops the connection. Commands on other connections go on meanwhile. `happened`: the
     * command that was interrupted, once `act` is over. `undefined`: cancelled before it came.
     */
    interrupt(moment: Moment, act: () => Promise<unknown>) {
      let cancel = () => {}
      const happened = new Promise<MongoCommand | undefined>((resolve, reject) => {
        const strike = (command: MongoCommand) => act().then(() => resolve(command), reject)
        const entry: Armed = { moment, left: moment.nth ?? 1, strike }
        armed.add(entry)
        cancel = () => {
          if (armed.delete(entry)) resolve(undefined)
        }
      })
      return { happened, cancel }
    },

    /** Drops all connections and refuses new ones with ECONNREFUSED, until `restore`. */
    sever: stop,

    /** Accepts connections and forwards nothing, either way, until `restore` lets go of what was held up. */
    stall() {
      held ??= closedGate()
    },

    async restore() {
      letGo()
      if (server.listening) return
      await once(server.listen(port, '127.0.0.1'), 'listening')
    },

    async close() {
      letGo()
      await stop()
    },
  }
}

interface Gate {
  passed: Promise<void>
  open(): void
}

function closedGate(): Gate {
  let open = () => {}
  const passed = new Promise<void>((resolve) => (open = resolve))
  return { passed, open }
}

/** A member of a replica set says who can write; a server of its own is the one that the URI names. */
async function primaryOf(db: FreshDatabase['db'], uri: string) {
  const hello = await db.command({ hello: 1 })
  const named = /^mongodb:\/\/(?:[^/@]*@)?(?<host>[^,/?]+)/.exec(uri)?.groups?.['host']
  const primary: unknown = hello['primary']
  const address = typeof primary === 'string' ? primary : named
  if (address === undefined) throw new TypeError(`no plain address of a MongoDB: ${uri}`)
  const [, host = 'localhost', port = '27017'] = /^(.*?)(?::(\d+))?$/.exec(address) ?? []
  return { host, port: Number(port) }
}

/** Drivers find the members of a replica set by their own addresses, past any proxy, unless told to connect directly. */
function through(uri: string, port: number): string {
  const url = new URL(uri.replace(/^(mongodb:\/\/(?:[^/@]*@)?)[^/?]*/, `$1127.0.0.1:${port}`))
  url.searchParams.delete('replicaSet')
  url.searchParams.set('directConnection', 'true')
  return url.href
}

async function* messagesOf(socket: Socket): AsyncGenerator<Buffer> {
  let pending = Buffer.alloc(0)
  for await (const chunk of socket) {
    pending = Buffer.concat([pending, chunk as Buffer])
    while (pending.length >= HEADER_BYTES && pending.length >= pending.readInt32LE(0)) {
      const length = pending.readInt32LE(0)
      yield pending.subarray(0, length)
      pending = pending.subarray(length)
    }
  }
}

function commandOf(message: Buffer): MongoCommand | undefined {
  const body = bodyOf(message)
  const name = Object.keys(body ?? {})[0]
  if (!body || name === undefined) return undefined
  const [about, more]: unknown[] = [body[name], body['collection']]
  const collection = [about, more].find((each) => typeof each === 'string')
  return { name, database: String(body['$db']), collection, body }
}

/** The document of an OP_MSG, with its sequences of documents in their places. `undefined`: another kind of message. */
function bodyOf(message: Buffer): Document | undefined {
  if (message.readInt32LE(12) !== OP_MSG) return undefined
  const hasChecksum = (message.readUInt32LE(HEADER_BYTES) & 1) === 1
  const end = message.length - (hasChecksum ? 4 : 0)
  const body: Document = {}
  let at = HEADER_BYTES + 4
  while (at < end) {
    const kind = message.readUInt8(at)
    const length = message.readInt32LE(at + 1)
    const section = message.subarray(at + 1, at + 1 + length)
    Object.assign(body, kind === 0 ? BSON.deserialize(section) : sequenceOf(section))
    at += 1 + length
  }
  return body
}

function sequenceOf(section: Buffer): Document {
  const nameEnd = section.indexOf(0, 4)
  const documents: Document[] = []
  for (let at = nameEnd + 1; at < section.length; at += section.readInt32LE(at)) {
    documents.push(BSON.deserialize(section.subarray(at, at + section.readInt32LE(at))))
  }
  return { [section.toString('utf8', 4, nameEnd)]: documents }
}

/** For a database that is taken away: seconds, as a busy machine is late by one. */
export const SHORT_WAITS = {
  serverSelectionTimeoutMS: 2_000,
  connectTimeoutMS: 2_000,
  socketTimeoutMS: 2_000,
  heartbeatFrequencyMS: 500,
}

/** The harness of the suite that asks for it, on a MongoDB that its tests can take away. */
export function suiteHarnessBehindProxy(
  limits: MongoClientOptions,
  options: HarnessOptions = {},
): { h: Harness; proxy: MongoProxy } {
  let fresh: FreshDatabase
  const proxy = suiteOf<MongoProxy>(
    async () => startMongoProxy((fresh = await freshDatabase())),
    ({ restore }) => restore(),
  )
  const h = suiteHarness(async () => {
    const client = await MongoClient.connect(proxy.uri, limits)
    return { ...options, database: { db: client.db(), drop: () => client.close() } }
  })
  after(async () => {
    await proxy.close?.()
    await fresh?.drop()
  })
  return { h, proxy }
}
