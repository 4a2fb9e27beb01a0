import { once } from 'node:events'
import { Agent, request } from 'node:http'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { eventually } from '../support/eventually.ts'
import { type ExampleServer, putSettings, type Variables } from '../support/example-server.ts'
import { freePort } from '../support/free-port.ts'
import { startMailServer, type MailServer } from '../support/mail-server.ts'
import { startMongoProxy, type MongoCommand, type MongoProxy } from '../support/mongo-proxy.ts'
import { describeWithMongo, freshDatabase, type FreshDatabase } from '../support/mongod.ts'
import { tokenOf } from '../support/observe.ts'
import {
  endLeases,
  scaled,
  postForgot,
  postReset,
  signIn,
  startSeededServer,
  userNamed,
} from './servers.ts'

/** What the specification of the example server promises. */
const EXIT_LIMIT_MS = 10_000
/** Shorter than a lease: what arrives within it was given back. */
const AT_ONCE_MS = 30_000
const CROWD = scaled({ full: 100, short: 20 })
const ROUNDS = scaled({ full: 5, short: 1 })

describeWithMongo('The example server on SIGTERM', () => {
  let fresh: FreshDatabase
  let proxy: MongoProxy
  let mail: MailServer
  let variables: Variables
  let server: ExampleServer

  const crowd = Array.from({ length: CROWD * ROUNDS }, (_, index) => userNamed(`one-${index}`))
  const users = [...'abcdefghijk'].map((letter) => userNamed(`user-${letter}`))

  before(async function () {
    this.timeout(180_000)
    fresh = await freshDatabase()
    proxy = await startMongoProxy(fresh)
    mail = await startMailServer()
    variables = {
      PORT: String(await freePort()),
      BCRYPT_COST: '10',
      RESPONSE_DELAY_FLOOR_MS: '1500',
    }
    server = await start()
  })

  after(async function () {
    this.timeout(60_000)
    await proxy?.restore()
    await server?.kill()
    await proxy?.close()
    await mail?.close()
    await fresh?.drop()
  })

  const start = () =>
    startSeededServer({
      uri: proxy.uri,
      smtpPort: mail.port,
      users: [...users, ...crowd],
      variables,
    })

  async function linkFor(username: string): Promise<string> {
    expect((await postForgot(server, username)).mode).to.equal('sent')
    return (await mail.mailTo(`${username}@users.example`)).link
  }

  async function arrivesAtOnce(username: string): Promise<string> {
    const isTheirs = ({ to }: { to: string[] }) => to.includes(`${username}@users.example`)
    const find = () => mail.mails.find(isTheirs)
    return (await eventually(`the mail to ${username}`, find, AT_ONCE_MS)).link
  }

  it('answers what is in flight, also in the middle of bcrypt, takes nothing new, and exits with 0 (FLT-08)', async function () {
    this.timeout(120_000)
    const token = tokenOf(await linkFor('user-a'))
    const hashing = nextReply(
      proxy,
      ({ name, collection }) => name === 'find' && collection === 'password_reset_tokens',
    )
    const forgot = postForgot(server, 'user-b')
    const reset = postReset(server, token, 'a brand new password')
    await hashing
    const exited = exitCodeOf(server)
    await takesNothingNew(server)
    const [asked, done] = await Promise.all([forgot, reset])
    expect([asked.status, asked.mode]).to.deep.equal([200, 'sent'])
    expect([done.status, done.mode]).to.deep.equal([200, 'done'])
    expect(await exited).to.equal(0)

    server = await start()
    expect((await signIn(server, 'user-a', 'a brand new password')).mode).to.equal('signed_in')
    expect((await signIn(server, 'user-a', 'user-a-password')).status).to.equal(401)
    expect(await arrivesAtOnce('user-b')).to.include('/reset-password?token=')
  })

  it('exits with 0 while connections are kept alive, busy or silent, and answers every request on them', async function () {
    this.timeout(120_000)
    const agent = new Agent({ keepAlive: true, maxSockets: 8 })
    const url = `${server.baseUrl}/oauth2/forgot-password`
    await Promise.all(Array.from({ length: 8 }, () => send(agent, url)))
    const silent = [connect(server.port), connect(server.port)]
    for (const socket of silent) socket.on('error', () => {})
    await Promise.all(silent.map((socket) => once(socket, 'connect')))
    silent[1]?.write('GET / HTTP/1.1\r\nHost: loc')

    const inFlight = Array.from({ length: 4 }, () => send(agent, url, 'identifier=nobody'))
    let isOver = false
    let answered = 0
    const failures: unknown[] = []
    async function keepBusy() {
      while (!isOver) {
        expect(await send(agent, url)).to.equal(200)
        answered += 1
      }
    }
    const busy = Array.from({ length: 4 }, () =>
      keepBusy().catch((error: unknown) => failures.push(error)),
    )
    await eventually('the connections are busy', () => answered > 20)
    const exitCode = await exitCodeOf(server)
    isOver = true
    await Promise.all(busy)
    agent.destroy()
    for (const socket of silent) socket.destroy()
    expect(await Promise.all(inFlight)).to.deep.equal([200, 200, 200, 200])
    expect(exitCode).to.equal(0)
    for (const failure of failures) expect(failure).to.include({ isTaken: false })

    server = await start()
    expect((await postForgot(server, 'nobody')).mode).to.equal('sent')
  })

  it('gives back the mail that is under way to a stalled SMTP server, so that another process sends it at once', async function () {
    this.timeout(120_000)
    const stalled = await startStalledServer()
    try {
      await putSettings(server, { smtp_port: String(stalled.port) })
      expect((await postForgot(server, 'user-c')).mode).to.equal('sent')
      await stalled.reached()
      expect(await exitCodeOf(server)).to.equal(0)
    } finally {
      await stalled.close()
    }
    await storeMailPort(fresh, mail.port)
    server = await start()
    const token = tokenOf(await arrivesAtOnce('user-c'))
    expect((await postReset(server, token, 'a brand new password')).mode).to.equal('done')
  })

  it('is not hurried by a second SIGTERM, nor by SIGINT', async function () {
    this.timeout(120_000)
    const stored = nextReply(proxy, isJobStored)
    const forgot = postForgot(server, 'user-d')
    await stored
    const exited = exitCodeOf(server)
    await takesNothingNew(server)
    server.signal('SIGTERM')
    server.signal('SIGINT')
    expect((await forgot).mode).to.equal('sent')
    expect(await exited).to.equal(0)

    server = await start()
    expect(await arrivesAtOnce('user-d')).to.include('/reset-password?token=')
  })

  for (const [kind, takeAway, waiting, inFlight] of [
    ['refuses connections', (gone: MongoProxy) => gone.sever(), 'user-e', 'user-f'],
    ['is silent', (gone: MongoProxy) => gone.stall(), 'user-g', 'user-h'],
  ] as const) {
    it(`answers what is in flight and exits with 0 also while MongoDB ${kind}, and loses no job`, async function () {
      this.timeout(120_000)
      const stalled = await startStalledServer()
      try {
        await putSettings(server, { smtp_port: String(stalled.port) })
        expect((await postForgot(server, waiting)).mode).to.equal('sent')
        await stalled.reached()
        await takeAway(proxy)
        const answers = [
          postForgot(server, inFlight),
          postReset(server, 'x'.repeat(43), 'a brand new password'),
        ]
        // What was sent before has arrived too.
        await fetch(server.baseUrl)
        expect(await exitCodeOf(server)).to.equal(0)
        for (const answer of await Promise.all(answers)) {
          expect([answer.status, answer.mode]).to.deep.equal([503, 'unavailable'])
        }
      } finally {
        await stalled.close()
      }
      await proxy.restore()
      // A process that cannot reach the database gives nothing back.
      await endLeases(fresh)
      await storeMailPort(fresh, mail.port)
      server = await start()
      const token = tokenOf(await arrivesAtOnce(waiting))
      expect((await postReset(server, token, 'a brand new password')).mode).to.equal('done')
    })
  }

  it('loses no job that was accepted, however many come in while it stops', async function () {
    this.timeout(ROUNDS * 120_000)
    for (let round = 0; round < ROUNDS; round += 1) {
      const accepted: string[] = []
      const stored = nextReply(proxy, isJobStored)
      const asking = crowd
        .slice(round * CROWD, (round + 1) * CROWD)
        .map(async ({ username }, index) => {
          await sleep(index * 5)
          const answer = await postForgot(server, username).catch(() => undefined)
          if (answer?.mode === 'sent') accepted.push(username)
        })
      await stored
      const exited = exitCodeOf(server)
      await Promise.all(asking)
      expect(await exited).to.equal(0)
      expect(accepted).to.not.have.length(0)

      server = await start()
      for (const username of accepted) await arrivesAtOnce(username)
    }
  })
})

/** SIGTERM. `undefined`: the process did not exit in time. */
function exitCodeOf(server: ExampleServer): Promise<number | null | undefined> {
  return Promise.race([server.stop(), sleep(EXIT_LIMIT_MS, undefined, { ref: false })])
}

const isJobStored = ({ name, collection }: MongoCommand) =>
  name === 'update' && collection === 'mail_outbox'

/** Until SIGTERM has come through. */
async function takesNothingNew({ baseUrl }: ExampleServer): Promise<void> {
  const refused = await eventually('nothing new is taken', () =>
    fetch(baseUrl).then(
      () => false,
      (error: Error) => error.message,
    ),
  )
  expect(refused).to.equal('fetch failed')
}

/** The moment that MongoDB has answered such a command. */
function nextReply(proxy: MongoProxy, matches: (command: MongoCommand) => boolean): Promise<void> {
  return new Promise((resolve) => {
    const stop = proxy.watch({
      reply(command) {
        if (!matches(command)) return
        stop()
        resolve()
      },
    })
  })
}

/**
 * GET, or POST where there is a form. Answers the status; throws with `isTaken: false` where the server took no such request:
 * it listens no more, or it closed the idle connection at the moment when the client used it again.
 */
function send(agent: Agent, url: string, form?: string): Promise<number | undefined> {
  const method = form === undefined ? 'GET' : 'POST'
  const headers = { 'content-type': 'application/x-www-form-urlencoded' }
  return new Promise((resolve, reject) => {
    const sent = request(url, { agent, method, headers }, (response) => {
      response.on('error', reject)
      response.on('end', () => resolve(response.statusCode))
      response.resume()
    })
    sent.on('error', (error) => {
      const code: unknown = Reflect.get(error, 'code')
      const isTaken = code !== 'ECONNREFUSED' && !(code === 'ECONNRESET' && sent.reusedSocket)
      reject(Object.assign(error, { isTaken }))
    })
    sent.end(form)
  })
}

/** While no server runs. */
async function storeMailPort({ db }: FreshDatabase, port: number): Promise<void> {
  const changes = { $set: { 'values.smtp_port': String(port) }, $inc: { version: 1 } }
  await db.collection('settings').updateOne({}, changes)
}

/** Accepts connections, and never says a word. */
async function startStalledServer() {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    /** A mail is under way. */
    reached: () => eventually('somebody connects', () => sockets.size > 0),
    async close() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
