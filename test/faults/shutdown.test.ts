import { once } from 'node:events'
import { Agent, request } from 'node:http'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { eventually } from '../support/eventually.ts'
import {
  type Account,
  addAccounts,
  type ExampleServer,
  forgot,
  PASSWORD,
} from '../support/example-server.ts'
import type { MongoCommand, MongoProxy } from '../support/mongo-proxy.ts'
import { describeWithMongo } from '../support/mongod.ts'
import { shownBy } from '../support/user-agent.ts'
import { resetForm } from '../support/person.ts'
import { addPerson, linkFor, opens, postForgot, postReset } from './people.ts'
import { endLeases, OUTAGES, type Processes, scaled, suiteService } from './servers.ts'

/** What the specification of the example server promises. */
const EXIT_LIMIT_MS = 10_000
/** Shorter than a lease: what arrives within it was given back. */
const AT_ONCE_MS = 50_000
const CROWD = scaled({ full: 100, short: 20 })
const ROUNDS = scaled({ full: 5, short: 1 })

describeWithMongo('The example server on SIGTERM', () => {
  const at = suiteService({ variables: { BCRYPT_COST: '10', RESPONSE_DELAY_FLOOR_MS: '1500' } })
  async function arrivesAtOnce({ username, email }: Account): Promise<string> {
    const find = () => at.mail.mails.find(({ to }) => to.includes(email))
    return (await eventually(`the mail to ${username}`, find, AT_ONCE_MS)).link
  }

  it('answers what is in flight, also in the middle of bcrypt, takes nothing new, and exits with 0 (FLT-08)', async () => {
    const [resetter, asker] = [await addPerson(at), await addPerson(at)]
    const link = await linkFor(at, resetter)
    const hashing = nextReply(
      at.proxy,
      ({ name, collection }) => name === 'find' && collection === 'password_reset_tokens',
    )
    const asking = await begin(at, 'forgot-password', { identifier: asker.username })
    const resetting = await begin(at, 'reset-password', resetForm(link, 'a brand new password'))
    await hashing
    const exited = exitCodeOf(at.server)
    await takesNothingNew(at.server)
    expect(await asking.answered).to.deep.equal([200, 'sent'])
    expect(await resetting.answered).to.deep.equal([200, 'done'])
    expect(await exited).to.equal(0)

    await at.start()
    expect(await opens(at, resetter, 'a brand new password')).to.equal(true)
    expect(await opens(at, resetter, PASSWORD)).to.equal(false)
    expect(await arrivesAtOnce(asker)).to.include('/reset-password?token=')
  })

  it('exits with 0 while connections are kept alive, busy or silent, and answers every request on them', async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 8 })
    const url = `${at.oauthUrl}/forgot-password`
    await Promise.all(Array.from({ length: 8 }, () => get(agent, url)))
    const silent = [connect(at.server.port), connect(at.server.port)]
    for (const socket of silent) socket.on('error', () => {})
    await Promise.all(silent.map((socket) => once(socket, 'connect')))
    silent[1]?.write('GET / HTTP/1.1\r\nHost: loc')

    const form = { identifier: 'nobody' }
    const posts = Array.from({ length: 4 }, () => begin(at, 'forgot-password', form, agent))
    const inFlight = await Promise.all(posts)
    let isOver = false
    let answered = 0
    const failures: unknown[] = []
    async function keepBusy() {
      while (!isOver) {
        expect(await get(agent, url)).to.equal(200)
        answered += 1
      }
    }
    const busy = Array.from({ length: 4 }, () =>
      keepBusy().catch((error: unknown) => failures.push(error)),
    )
    await eventually('the connections are busy', () => answered > 20)
    const exitCode = await exitCodeOf(at.server)
    isOver = true
    await Promise.all(busy)
    agent.destroy()
    for (const socket of silent) socket.destroy()
    for (const post of inFlight) expect(await post.answered).to.deep.equal([200, 'sent'])
    expect(exitCode).to.equal(0)
    for (const failure of failures) expect(failure).to.include({ isTaken: false })

    await at.start()
    await forgot(at, 'nobody')
  })

  /** It is under way to an SMTP server that has fallen silent. */
  async function mailIsStuck({ username }: Account): Promise<void> {
    at.mail.fallSilent()
    await forgot(at, username)
    await eventually('somebody connects', () => at.mail.mostOpen() > 0)
  }

  it('is not hurried by a second SIGTERM, nor by SIGINT', async () => {
    const person = await addPerson(at)
    const stored = nextReply(at.proxy, isJobStored)
    const asking = forgot(at, person.username)
    await stored
    const exited = exitCodeOf(at.server)
    await takesNothingNew(at.server)
    at.server.signal('SIGTERM')
    at.server.signal('SIGINT')
    await asking
    expect(await exited).to.equal(0)

    await at.start()
    expect(await arrivesAtOnce(person)).to.include('/reset-password?token=')
  })

  for (const [kind, takeAway] of Object.entries(OUTAGES)) {
    it(`answers what is in flight and exits with 0 also while MongoDB ${kind}, and loses no job`, async () => {
      const [waiting, inFlight] = [await addPerson(at), await addPerson(at)]
      await mailIsStuck(waiting)
      await takeAway(at.proxy)
      const unknown = `http://localhost/?token=${'x'.repeat(43)}`
      const begun = [
        await begin(at, 'forgot-password', { identifier: inFlight.username }),
        await begin(at, 'reset-password', resetForm(unknown, 'a brand new password')),
      ]
      expect(await exitCodeOf(at.server)).to.equal(0)
      for (const { answered } of begun) expect(await answered).to.deep.equal([503, 'unavailable'])
      await at.proxy.restore()
      // A process that cannot reach the database gives nothing back.
      await endLeases(at)
      at.mail.speak()
      await at.start()
      const link = await arrivesAtOnce(waiting)
      expect((await postReset(at, link, 'a brand new password')).mode).to.equal('done')
    })
  }

  it('loses no job that was accepted, however many come in while it stops', async () => {
    for (let round = 0; round < ROUNDS; round += 1) {
      const accepted: Account[] = []
      const crowd = await addAccounts(at.database, `round-${round}`, CROWD)
      const stored = nextReply(at.proxy, isJobStored)
      const asking = crowd.map(async (account, index) => {
        await sleep(index * 5)
        const answer = await postForgot(at, account.username).catch(() => undefined)
        if (answer?.mode === 'sent') accepted.push(account)
      })
      await stored
      const exited = exitCodeOf(at.server)
      await Promise.all(asking)
      expect(await exited).to.equal(0)
      expect(accepted).to.not.have.length(0)

      await at.start()
      for (const account of accepted) await arrivesAtOnce(account)
    }
  })
})

/** SIGTERM. `undefined`: the process did not exit in time. */
function exitCodeOf(server: ExampleServer): Promise<number | null | undefined> {
  return Promise.race([server.stop(), sleep(EXIT_LIMIT_MS, undefined, { ref: false })])
}

const isJobStored = ({ name, collection }: MongoCommand) =>
  name === 'update' && collection === 'mail_outbox'

/** Posts a form, once the server has taken the request; by default on a connection of its own. Answers its status and mode. */
async function begin(
  { oauthUrl }: Pick<Processes, 'oauthUrl'>,
  page: string,
  form: Record<string, string>,
  agent: Agent | false = false,
) {
  const body = new URLSearchParams(form).toString()
  const headers = {
    'content-type': 'application/x-www-form-urlencoded',
    'content-length': body.length,
    expect: '100-continue',
  }
  const sent = request(`${oauthUrl}/${page}`, { agent, method: 'POST', headers })
  const answered = once(sent, 'response').then(async ([response]) => {
    const { mode } = shownBy(await text(response))
    return [response.statusCode, mode]
  })
  await once(sent, 'continue')
  sent.end(body)
  return { answered }
}

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
 * Answers the status; throws with `isTaken: false` where the server took no such request: it listens no more, or it closed the idle
 * connection at the moment when the client used it again.
 */
function get(agent: Agent, url: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { agent }, (response) => {
      response.on('error', reject)
      response.on('end', () => resolve(response.statusCode))
      response.resume()
    })
    sent.on('error', (error) => {
      const code: unknown = Reflect.get(error, 'code')
      const isTaken = code !== 'ECONNREFUSED' && !(code === 'ECONNRESET' && sent.reusedSocket)
      reject(Object.assign(error, { isTaken }))
    })
    sent.end()
  })
}
