import type { Person } from '../support/person.ts'
import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import { decodeJwt } from 'jose'
import { errors, type Adapter } from 'oidc-provider'
import { AccountFlowsError, type ClientLogout, type User } from '../../src/index.ts'
import { eventually } from '../support/eventually.ts'
import { startHarness, type Harness } from '../support/harness.ts'
import {
  allTold,
  hang,
  logoutsOf,
  signInAt,
  startLogoutClient,
  status,
  telling,
  verified,
  type LogoutClient,
} from '../support/logout-clients.ts'
import { describeWithMongo, freshDatabase } from '../support/mongod.ts'
import { eventsOf } from '../support/observe.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { movableClock, moveTime } from '../support/time.ts'
import { accountOf, addVerified } from '../support/person.ts'

const HOUR = 3_600_000

/** Notes that this many sessions of an account are to be ended at a client, as so many ends would. */
async function addLogouts({ store }: Harness, clientId: string, accountId: string, count = 1) {
  const requestedAt = new Date()
  const logouts = Array.from({ length: count }, () => ({
    id: randomUUID(),
    endId: randomUUID(),
    accountId,
    clientId,
    sid: undefined,
    canBeTold: true,
    requestedAt,
    expiresAt: new Date(requestedAt.getTime() + 24 * HOUR),
  }))
  await store.clientLogouts.add(logouts)
}

const failuresOf = (h: Harness, user?: Person) =>
  user
    .events('client_logout_failed')
    .map(({ reason, details: { attempts, last } }) => `${reason} ${attempts} ${last ?? ''}`.trim())

describe('A client that does not take its logout token', () => {
  let app: LogoutClient
  let dead: LogoutClient
  const hanging = Array.from({ length: 60 }, (_, n) => `hanging-${n}`)
  const h: Harness = suiteHarness(async () => {
    ;[app, dead] = [await startLogoutClient('told'), await startLogoutClient('dead')]
    return telling([
      app,
      dead,
      ...hanging.map((id) => ({ metadata: { ...dead.metadata, client_id: id } })),
    ])
  })
  after(() => Promise.all([app, dead].map(({ close }) => close())))
  beforeEach(() => {
    for (const client of [app, dead]) Object.assign(client, { tokens: [], answer: status(200) })
  })

  async function ended() {
    const user = await addVerified(h)
    await signInAt(h, dead, user)
    await h.flows.endSessions(user.id)
    return user
  }

  const oneOf = async (user: Person): Promise<ClientLogout> => {
    const [logout, ...more] = await logoutsOf(h, user)
    expect(more).to.deep.equal([])
    return logout as ClientLogout
  }

  it('is told again with a new token, and its first failure is an event (SES-16, SES-17)', async () => {
    dead.answer = (req, res) => status(dead.tokens.length < 4 ? 503 : 204)(req, res)
    const user = await ended()
    expect(await allTold(h, user)).to.have.length(1)
    expect(await oneOf(user)).to.include({ state: 'sent', attempts: 4, reason: 'http_503' })
    const claims = await Promise.all(dead.tokens.map((token) => verified(h, dead, token)))
    expect(new Set(claims.map(({ jti }) => jti)).size).to.equal(4)
    expect(failuresOf(h, user)).to.deep.equal(['http_503 1'])
    const sent = user.events('client_logout_sent')
    expect(sent.map(({ clientId, details }) => [clientId, details])).to.deep.equal([
      ['dead', { attempts: 4 }],
    ])
  })

  it('is told of an account that was forgotten meanwhile, and then nothing is left of it', async () => {
    dead.answer = status(503)
    const user = await ended()
    await eventually('the first attempt has failed', () => failuresOf(h, user).length > 0)
    const forget = () => h.store.forget(user.id, movableClock.now(), 'hash')
    expect(await forget()).to.include({ clientLogouts: 0, underWay: 1 })
    dead.tokens.length = 0
    dead.answer = status(200)
    await eventually('it is told', async () => {
      await moveTime(1_000)
      return dead.tokens.length === 1
    })
    await eventually('the record is gone', async () => (await logoutsOf(h, user)).length === 0)
    const { events, ...left } = await forget()
    expect(Object.values(left)).to.deep.equal(Object.values(left).map(() => 0))
    expect(events, 'recorded since').to.equal(0)
  })

  it('is given up after a day; its account is signed out at the provider all the same', async () => {
    dead.answer = status(500)
    const user = await addVerified(h)
    const { agent } = await signInAt(h, dead, user)
    await h.flows.endSessions(user.id)
    expect(await accountOf(h, agent)).to.equal(undefined)
    await eventually('the first attempt has failed', () => failuresOf(h, user).length > 0)
    await moveTime(24 * HOUR)
    await allTold(h, user)
    expect(await oneOf(user)).to.include({ state: 'dead', reason: 'http_500' })
    const [first, second, ...more] = failuresOf(h, user)
    expect([first, more]).to.deep.equal(['http_500 1', []])
    expect(second).to.match(/^gave_up \d+ http_500$/)
    const before = dead.tokens.length
    await moveTime(HOUR)
    expect(dead.tokens).to.have.length(before)
  })

  it('is told again later, where it is slow: each attempt has five seconds (SES-21)', async () => {
    dead.answer = hang
    const user = await ended()
    await eventually('it has the token', () => dead.tokens.length === 1)
    await moveTime(3_500)
    expect([dead.open, failuresOf(h, user)]).to.deep.equal([1, []])
    await moveTime(1_500)
    await eventually('the attempt is over', () => failuresOf(h, user).length === 1)
    expect(failuresOf(h, user)).to.deep.equal(['timeout 1'])
    await eventually('its connection is closed', () => dead.open === 0)
    dead.answer = status(200)
    await allTold(h, user)
    expect(await oneOf(user)).to.include({ state: 'sent' })
  })

  it('is told all the same, where it could not be read for a while', async () => {
    const user = await addVerified(h)
    await signInAt(h, dead, user)
    const { Client } = h.provider
    const { find } = Client
    Client.find = async () => {
      throw new errors.InvalidClientMetadata('could not load sector_identifier_uri response')
    }
    try {
      await h.flows.endSessions(user.id)
      await eventually('the first attempt has failed', () => failuresOf(h, user).length > 0)
    } finally {
      Client.find = find
    }
    await allTold(h, user)
    expect(await oneOf(user)).to.include({ state: 'sent' })
    expect(failuresOf(h, user)).to.deep.equal(['client_unreadable 1'])
    expect(dead.tokens).to.have.length(1)
  })

  it('cannot lead the token to another address (SES-19)', async () => {
    const inner = app.metadata.backchannel_logout_uri ?? ''
    for (const code of [301, 302, 303, 307, 308]) {
      const answer = status(code, { location: inner })
      dead.answer = (req, res) =>
        dead.tokens.length < 2 ? answer(req, res) : status(200)(req, res)
      dead.tokens.length = 0
      const user = await ended()
      await allTold(h, user)
      expect(failuresOf(h, user)).to.deep.equal([`http_${code} 1`])
    }
    expect(app.tokens).to.deep.equal([])
  })

  it('may answer without end, and nobody reads it (SES-21)', async () => {
    let written = 0
    dead.answer = (_req, res) => {
      res.writeHead(200)
      const chunk = Buffer.alloc(65_536)
      const write = () => {
        written += 1
        if (!res.closed) res.write(chunk, write)
      }
      write()
    }
    const user = await ended()
    await allTold(h, user)
    expect(await oneOf(user)).to.include({ state: 'sent', attempts: 1 })
    await eventually('its connection is closed', () => dead.open === 0)
    expect(written).to.be.lessThan(200)
  })

  it('is named by the code of the system, where nobody listens', async () => {
    await addLogouts(h, 'nobody-there', 'ann')
    const { adapter } = h.provider.Client as unknown as { adapter: Adapter }
    const gone = await startLogoutClient('nobody-there')
    await gone.close()
    const { client_id, ...metadata } = gone.metadata
    await adapter.upsert(
      client_id,
      { client_id, ...metadata, redirect_uris: ['https://a.example'] },
      60,
    )
    await addLogouts(h, 'nobody-there', 'ben')
    await moveTime(1_000)
    await eventually('it was tried', () =>
      eventsOf(h, 'client_logout_failed').some(
        ({ accountId, reason }) => accountId === 'ben' && reason === 'econnrefused',
      ),
    )
  })

  it('is not told any more once it is gone, or has no address for it', async () => {
    await addLogouts(h, 'never-registered', 'carl')
    await addLogouts(h, 'app', 'carl')
    const logouts = await allTold(h, { id: 'carl' } as User)
    expect(logouts.map(({ state, reason }) => `${state} ${reason}`)).to.have.members([
      'dead client_gone',
      'dead no_uri',
    ])
  })

  it('holds up no other: that one is told before any of fifty tokens of a client that hangs (SES-21)', async () => {
    dead.answer = hang
    await addLogouts(h, 'dead', 'many', 50)
    await eventually('one is under way', () => dead.open === 1)
    const user = await addVerified(h)
    await signInAt(h, app, user)
    await h.flows.endSessions(user.id)
    await eventually('the other one is told', () => app.tokens.length === 1)
    expect([dead.tokens.length, dead.open]).to.deep.equal([1, 1])
    expect(failuresOf(h).filter((each) => each.includes('many'))).to.deep.equal([])
    dead.answer = status(200)
    await moveTime(5_000)
    await allTold(h, { id: 'many' } as User)
    expect(
      eventsOf(h, 'client_logout_sent').filter(({ accountId }) => accountId === 'many'),
    ).to.have.length(50)
  })

  it('holds up no other, even where sixty hang with three tokens each, and are told again and again (SES-21) [full]', async () => {
    dead.answer = hang
    const addThree = () => Promise.all(hanging.map((id) => addLogouts(h, id, id, 3)))
    const addLast = () => addLogouts(h, 'told', 'somebody')
    // Written down too: otherwise its time may run out as the clock moves.
    const isTold = (count: number) =>
      eventually('the other one is told', async () => {
        const logouts = await logoutsOf(h, { id: 'somebody' } as User)
        return logouts.filter(({ state }) => state === 'sent').length === count
      })
    await addThree()
    await eventually('each of them has a token', () => dead.open === 60)
    await addLast()
    await isTold(1)
    // One that takes its time has not timed out.
    let late = () => {}
    app.answer = (req, res) => (late = () => status(200)(req, res))
    await addLast()
    await eventually('it has another token', () => app.tokens.length === 2)
    await moveTime(1_200)
    late()
    await isTold(2)
    app.answer = status(200)
    await moveTime(5_000)
    await eventually('the attempts are over', async () => {
      const found = await Promise.all(hanging.map((id) => logoutsOf(h, { id } as User)))
      return found.every((logouts) => logouts.some(({ reason }) => reason === 'timeout'))
    })
    await eventually('their connections are closed', () => dead.open === 0)
    // They rest: neither new ones of theirs nor those that failed take a place.
    await addThree()
    await addLast()
    await isTold(3)
    expect([dead.tokens.length, dead.open]).to.deep.equal([60, 0])
    dead.answer = status(200)
    await moveTime(60_000)
    for (const id of hanging) expect(await allTold(h, { id } as User)).to.have.length(6)
  })

  it('is told by the next start, where a stop cut the attempt short', async () => {
    dead.answer = hang
    const user = await ended()
    await eventually('it has the token', () => dead.tokens.length === 1)
    const stopped = h.flows.stop({ withinMs: 1_000 })
    await moveTime(500)
    await stopped
    expect(await oneOf(user)).to.include({ state: 'waiting', attempts: 1, reason: undefined })
    expect(failuresOf(h, user)).to.deep.equal([])
    dead.answer = status(200)
    await h.flows.start()
    await allTold(h, user)
    expect(await oneOf(user)).to.include({ state: 'sent', attempts: 2 })
  })
})

describe('A client in a private network, where these are not allowed', () => {
  const clients: LogoutClient[] = []
  const h: Harness = suiteHarness(async () => {
    // The last one is a name that the resolver of the system answers with an address of this machine.
    const hosts = ['127.0.0.1', '2130706433', '[::ffff:127.0.0.1]', 'localhost']
    for (const [index, host] of hosts.entries()) {
      const client = await startLogoutClient(`inner-${index}`)
      const uri = client.metadata.backchannel_logout_uri ?? ''
      Object.assign(client.metadata, { backchannel_logout_uri: uri.replace('127.0.0.1', host) })
      clients.push(client)
    }
    return telling(clients, { flows: {} })
  })
  after(() => Promise.all(clients.map(({ close }) => close())))

  it('gets no connection, by address or by name (SES-18)', async () => {
    for (const { metadata } of clients) {
      const user = await addVerified(h)
      await signInAt(h, { metadata }, user)
      await h.flows.endSessions(user.id)
      await eventually(`${metadata.backchannel_logout_uri} is refused`, () =>
        failuresOf(h, user).includes('refused_address 1'),
      )
      expect(eventsOf(h, 'client_logout_sent')).to.deep.equal([])
    }
    expect(clients.flatMap(({ tokens }) => tokens)).to.deep.equal([])
  })
})

describe('An end whose clients cannot be noted', () => {
  let app: LogoutClient
  const h: Harness = suiteHarness(async () => {
    app = await startLogoutClient('told')
    return telling([app], { mayLogErrors: true })
  })
  after(() => app.close())

  async function failing(error: Error, work: (user: Person) => Promise<unknown>) {
    const user = await addVerified(h)
    const { agent } = await signInAt(h, app, user)
    const { add } = h.store.clientLogouts
    let failed = 0
    // With the second effect: of the first one the client is noted already.
    h.store.clientLogouts.add = async (logouts) => {
      failed += 1
      if (failed === 2) throw error
      return add(logouts)
    }
    try {
      await work(user)
    } finally {
      h.store.clientLogouts.add = add
    }
    expect(failed).to.be.at.least(2)
    expect(await accountOf(h, agent)).to.equal(undefined)
    return user
  }

  it('ends sessions all the same', async () => {
    const user = await failing(new Error('it is broken'), ({ id }) => h.flows.endSessions(id))
    expect(user.events('sessions_ended')).to.have.length(1)
  })

  it('is finished by the sweep, where the store cannot be reached, and each client is told once [full]', async () => {
    const { takeUnfinished } = h.store.resetTokens
    // Its lease has run out already.
    h.store.resetTokens.takeUnfinished = (at, until) =>
      takeUnfinished(new Date(at.getTime() + 60_000), until)
    app.tokens.length = 0
    const away = new AccountFlowsError('ERR_STORE_UNAVAILABLE', 'the database is away')
    const user = await failing(away, async (user) => {
      const link = await user.forgets()
      expect((await h.reset(link, 'a brand new password')).status).to.equal(503)
      expect(user.events('password_reset_completed')).to.deep.equal([])
      await eventually('the sweep finishes the reset', async () => {
        await moveTime(1_000)
        return user.events('password_reset_completed').length === 1
      })
    })
    Object.assign(h.store.resetTokens, { takeUnfinished })
    await allTold(h, user)
    expect(app.tokens).to.have.length(1)
  })
})

describeWithMongo('Two processes that tell clients [full]', () => {
  let app: LogoutClient
  before(async () => {
    app = await startLogoutClient('told')
  })
  after(() => app.close())

  it('share them out: each token goes out once', async () => {
    const database = await freshDatabase()
    const once = { ...database, drop: async () => {} }
    const processes: Harness[] = []
    for (let n = 0; n < 2; n += 1)
      processes.push(await startHarness(telling([app], { database: once })))
    const [h] = processes as [Harness]
    try {
      await addLogouts(h, 'told', 'ann', 50)
      await allTold(h, { id: 'ann' } as User)
      const jtis = app.tokens.map((token) => decodeJwt(token).jti)
      expect(new Set(jtis).size).to.equal(50)
      expect(jtis).to.have.length(50)
    } finally {
      for (const each of processes) await each.close()
      await database.drop()
    }
  })
})
