import { createHook } from 'node:async_hooks'
import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import type { ClientLogout } from '../../src/store/index.ts'
import { type ClientMetadata, errors } from 'oidc-provider'
import { AccountFlowsError, type AuditEventOf, type User } from '../../src/index.ts'
import { createPostForm, isPublicAddress } from '../../src/oidc/post-form.ts'
import { beforeFirst, instead } from '../support/records.ts'
import { eventually } from '../support/eventually.ts'
import { type Harness, onEachStore, suiteHarness } from '../support/harness.ts'
import { OFFLINE } from '../support/oauth-requests.ts'
import type { Person } from '../support/person.ts'
import { serve } from '../support/serve.ts'
import { moveTime } from '../support/time.ts'
import { createUserAgent } from '../support/user-agent.ts'
import {
  allTold,
  hang,
  type LogoutClient,
  logoutsOf,
  signInAt,
  startLogoutClient,
  status,
  telling,
  verified,
} from './logout-clients.ts'

const NEW = 'a brand new password'

const SID = { backchannel_logout_session_required: true }

const METADATA = {
  plain: {},
  'with-sid': SID,
  pairwise: { ...SID, subject_type: 'pairwise' },
  'no-uri': { backchannel_logout_uri: undefined },
} satisfies Record<string, Partial<ClientMetadata>>

type Kind = keyof typeof METADATA

const KINDS = Object.keys(METADATA) as Kind[]

onEachStore('Clients are told that an account is ended', (technology) => {
  const clients = {} as Record<Kind, LogoutClient>
  const h: Harness = suiteHarness(async () => {
    for (const name of KINDS) clients[name] = await startLogoutClient(name, METADATA[name])
    return telling(Object.values(clients), { technology })
  })
  after(() => Promise.all(Object.values(clients).map(({ close }) => close())))
  beforeEach(() => {
    for (const { tokens } of Object.values(clients)) tokens.length = 0
  })

  const claimsAt = (name: Kind) =>
    Promise.all(clients[name].tokens.map((token) => verified(h, clients[name], token)))

  const statesOf = async (user: Person) =>
    (await logoutsOf(h, user)).map(({ clientId, state }) => `${clientId} ${state}`).toSorted()

  const toldOf = (user: Person) =>
    user
      .events('client_logout_sent')
      .map(
        ({ clientId, details }: AuditEventOf<'client_logout_sent'>) =>
          `${clientId} ${details.attempts}`,
      )

  async function signedInEverywhere() {
    const user = await h.addVerified()
    const agent = createUserAgent()
    const at = {} as Record<Kind, Awaited<ReturnType<typeof signInAt>>>
    for (const name of KINDS) at[name] = await signInAt(h, clients[name], user, agent)
    return { user, at }
  }

  it('by a reset: once each, with the subject and the session that they know (SES-16)', async () => {
    const { user, at } = await signedInEverywhere()
    const other = await h.addVerified()
    await signInAt(h, clients.plain, other)
    await user.getsBackIn(NEW)
    await allTold(h, user)

    const [plain, ...more] = await claimsAt('plain')
    expect(more).to.deep.equal([])
    expect(plain).to.include({ sub: user.id }).and.not.to.have.property('sid')
    for (const name of ['with-sid', 'pairwise'] as const) {
      const { sub, sid } = at[name].claims
      expect(sid, 'in the ID token').to.be.a('string')
      const told = (await claimsAt(name)).map((claims) => [claims.sub, claims['sid']])
      expect(told).to.deep.equal([[sub, sid]])
    }
    expect((await claimsAt('pairwise'))[0]?.sub).to.equal(`${user.id} at pairwise`)
    const states = ['no-uri not_notified', 'pairwise sent', 'plain sent', 'with-sid sent']
    expect(await statesOf(user)).to.deep.equal(states)
    expect(toldOf(user)).to.have.members(['plain 1', 'with-sid 1', 'pairwise 1'])
    expect(h.eventsOf('client_logout_failed')).to.deep.equal([])
    expect(await logoutsOf(h, other)).to.deep.equal([])
  })

  it('by flows.endSessions: of each session where they ask for that, and never of another account', async () => {
    const [ann, bob] = [await h.addVerified(), await h.addVerified()]
    const sids: unknown[] = []
    for (let browser = 0; browser < 2; browser += 1) {
      const { agent, claims } = await signInAt(h, clients['with-sid'], ann)
      await signInAt(h, clients.plain, ann, agent)
      sids.push(claims['sid'])
    }
    await signInAt(h, clients['with-sid'], bob)
    await h.flows.endSessions(ann.id)
    await allTold(h, ann)
    const told = await claimsAt('with-sid')
    expect(told.map(({ sid }) => sid)).to.have.members(sids)
    expect(told.map(({ sub }) => sub)).to.deep.equal([ann.id, ann.id])
    expect(new Set(told.map(({ jti }) => jti)).size).to.equal(2)
    expect(clients.plain.tokens).to.have.length(1)
    await h.flows.endSessions(ann.id)
    expect(await statesOf(ann)).to.deep.equal(['plain sent', 'with-sid sent', 'with-sid sent'])
    expect(clients['with-sid'].tokens).to.have.length(2)
  })

  it('of a login that is saved while an end looks at what there is', async () => {
    const user = await h.addVerified()
    const { agent } = await signInAt(h, clients.plain, user)
    const endDuringLogin = (end: typeof h.store.cutoffs.end): typeof end => {
      return async (...of) => {
        await signInAt(h, clients['with-sid'], user, agent)
        return end(...of)
      }
    }
    await instead(h.store.cutoffs, 'end', endDuringLogin, () => user.getsBackIn(NEW))
    await eventually('both are told', async () => (await statesOf(user)).length === 2)
    await allTold(h, user)
    expect(await statesOf(user)).to.deep.equal(['plain sent', 'with-sid sent'])
  })

  it('of a session that is over at the provider, where a refresh token is left', async () => {
    const user = await h.addVerified()
    for (const name of ['plain', 'with-sid'] as const) {
      const agent = createUserAgent()
      await signInAt(h, clients[name], user, agent, OFFLINE)
      const session = await h.sessionOf(agent)
      expect(session?.accountId).to.equal(user.id)
      await session?.destroy()
    }
    await h.flows.endSessions(user.id)
    await allTold(h, user)
    expect(await statesOf(user)).to.deep.equal(['plain sent', 'with-sid sent'])
    const [told] = await claimsAt('with-sid')
    expect(told?.['sid']).to.be.a('string')
  })

  it('once by a reset that is posted twice at once, and at least once by two ends at once (RACE-14)', async () => {
    const [reset, ended] = [await signedInEverywhere(), await signedInEverywhere()]
    const link = await reset.user.forgets()
    await Promise.all([h.reset(link, NEW), h.reset(link, NEW)])
    await Promise.all([h.flows.endSessions(ended.user.id), h.flows.endSessions(ended.user.id)])
    await allTold(h, reset.user)
    await allTold(h, ended.user)
    for (const name of ['plain', 'with-sid', 'pairwise'] as const) {
      const told = await claimsAt(name)
      const subject = (at: typeof reset.at) => at[name].claims.sub
      const count = (sub: unknown) => told.filter((each) => each.sub === sub).length
      expect(count(subject(reset.at)), name).to.equal(1)
      expect(count(subject(ended.at)), name).to.be.within(1, 2)
      expect(new Set(told.map(({ jti }) => jti)).size).to.equal(told.length)
    }
  })
})

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
    state: 'waiting' as const,
    requestedAt,
    expiresAt: new Date(requestedAt.getTime() + 24 * HOUR),
  }))
  await store.clientLogouts.add(logouts)
}

const failuresOf = (h: Harness, user?: Person) =>
  (user?.events('client_logout_failed') ?? h.eventsOf('client_logout_failed')).map(
    ({ reason, details: { attempts, last } }) => `${reason} ${attempts} ${last ?? ''}`.trim(),
  )

describe('A client that does not take its logout token', () => {
  let app: LogoutClient
  let dead: LogoutClient
  const hanging = Array.from({ length: 60 }, (_, n) => `hanging-${n}`)
  const h: Harness = suiteHarness(async () => {
    ;[app, dead] = [await startLogoutClient('told'), await startLogoutClient('dead')]
    const metadata = { ...dead.metadata, backchannel_logout_uri: 'http://127.0.0.1:1/' }
    return telling([
      app,
      dead,
      { metadata: { ...metadata, client_id: 'gone' } },
      ...hanging.map((id) => ({ metadata: { ...dead.metadata, client_id: id } })),
    ])
  })
  after(() => Promise.all([app, dead].map(({ close }) => close())))
  beforeEach(() => {
    for (const client of [app, dead]) Object.assign(client, { tokens: [], answer: status(200) })
  })

  async function ended() {
    const user = await h.addVerified()
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
    // As express-openid-connect answers while its store is away.
    const answers = [503, 400, 500, 204]
    dead.answer = (req, res) => status(answers[dead.tokens.length - 1] ?? 204)(req, res)
    const user = await ended()
    expect(await allTold(h, user)).to.have.length(1)
    expect(await oneOf(user)).to.include({ state: 'sent', attempts: 4, reason: 'http_500' })
    const claims = await Promise.all(dead.tokens.map((token) => verified(h, dead, token)))
    expect(new Set(claims.map(({ jti }) => jti)).size).to.equal(4)
    expect(failuresOf(h, user)).to.deep.equal(['http_503 1'])
    const sent = user.events('client_logout_sent')
    const told = sent.map(({ clientId, details }) => [clientId, details])
    expect(told).to.deep.equal([['dead', { attempts: 4 }]])
  })

  it('is given up after a day; its account is signed out at the provider all the same', async () => {
    dead.answer = status(500)
    const user = await h.addVerified()
    const { agent } = await signInAt(h, dead, user)
    await h.flows.endSessions(user.id)
    expect(await h.accountOf(agent)).to.equal(undefined)
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

  it('is told again later, where it is slow: each attempt has five seconds, and a minute passes before the next (SES-21)', async () => {
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
    // It rests for a minute: who looks for another client passes it by.
    await moveTime(50_000)
    await addLogouts(h, 'told', 'carol')
    await eventually('the other one is told', () => app.tokens.length === 1)
    expect(await oneOf(user)).to.include({ state: 'waiting', attempts: 1 })
    await allTold(h, user)
    expect(await oneOf(user)).to.include({ state: 'sent', attempts: 2 })
  })

  it('is told all the same, where it could not be read for a while', async () => {
    const user = await h.addVerified()
    await signInAt(h, dead, user)
    const error = new errors.InvalidClientMetadata('could not load sector_identifier_uri response')
    const unreadable = () => () => Promise.reject(error)
    await instead(h.provider.Client, 'find', unreadable, async () => {
      await h.flows.endSessions(user.id)
      await eventually('the first attempt has failed', () => failuresOf(h, user).length > 0)
    })
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
    await addLogouts(h, 'gone', 'ben')
    const isBens = ({ accountId }: { accountId?: string }) => accountId === 'ben'
    const failed = () => h.eventsOf('client_logout_failed').find(isBens)
    expect((await eventually('it was tried', failed)).reason).to.equal('econnrefused')
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
    const user = await h.addVerified()
    await signInAt(h, app, user)
    await h.flows.endSessions(user.id)
    await eventually('the other one is told', () => app.tokens.length === 1)
    expect([dead.tokens.length, dead.open]).to.deep.equal([1, 1])
    expect(failuresOf(h).filter((each) => each.includes('many'))).to.deep.equal([])
    dead.answer = status(200)
    await moveTime(5_000)
    await allTold(h, { id: 'many' } as User)
    const sent = h.eventsOf('client_logout_sent').filter(({ accountId }) => accountId === 'many')
    expect(sent).to.have.length(50)
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
    // Beside other work, so many signatures take long.
    await eventually('they get all', () => dead.tokens.length >= 60 + 6 * 60, 120_000)
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
      const user = await h.addVerified()
      await signInAt(h, { metadata }, user)
      await h.flows.endSessions(user.id)
      await eventually(`${metadata.backchannel_logout_uri} is refused`, () =>
        failuresOf(h, user).includes('refused_address 1'),
      )
      expect(h.eventsOf('client_logout_sent')).to.deep.equal([])
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
    const user = await h.addVerified()
    const { agent } = await signInAt(h, app, user)
    const tries = beforeFirst(h.store.clientLogouts, 'add', () => {
      throw error
    })
    await work(user)
    expect(tries()).to.be.at.least(1)
    expect(await h.accountOf(agent)).to.equal(undefined)
    return user
  }

  it('ends sessions all the same', async () => {
    const user = await failing(new Error('it is broken'), ({ id }) => h.flows.endSessions(id))
    expect(user.events('sessions_ended')).to.have.length(1)
  })

  it('is finished by the maintenance, where the store cannot be reached, and each client is told once [full]', async () => {
    app.tokens.length = 0
    const away = new AccountFlowsError('ERR_STORE_UNAVAILABLE', 'the database is away')
    const user = await failing(away, async (user) => {
      const link = await user.forgets()
      expect((await h.reset(link, 'a brand new password')).status).to.equal(503)
      expect(user.events('password_reset_completed')).to.deep.equal([])
      await eventually('the maintenance finishes the reset', async () => {
        await moveTime(1_000)
        return user.events('password_reset_completed').length === 1
      })
    })
    await allTold(h, user)
    expect(app.tokens).to.have.length(1)
  })
})

describe('A public address', () => {
  const PUBLIC =
    '93.184.215.14 1.1.1.1 2606:2800:21f:cb07:6820:80da:af6b:8b2c 2a00::1 2a00::1:5efe:1:1 ::ffff:1.1.1.1'
  for (const address of PUBLIC.split(' '))
    it(`is ${address}`, () => expect(isPublicAddress(address)).to.equal(true))

  const OTHERS = {
    'this machine': '127.0.0.1 127.1.2.3 0.0.0.0 ::1 :: ::ffff:127.0.0.1',
    'a private network': '10.0.0.1 172.16.0.1 172.31.255.255 192.168.1.1 fd00::1',
    'a link, such as the metadata service of a cloud': '169.254.169.254 fe80::1 fe80::1%eth0',
    'a carrier': '100.64.0.1',
    'the host of a machine at Azure': '168.63.129.16 ::ffff:168.63.129.16',
    'many at once': '224.0.0.1 255.255.255.255 ff02::1',
    'documentation and tests': '192.0.2.1 198.18.0.1 198.51.100.1 203.0.113.1 2001:db8::1',
    'nobody yet': '240.0.0.1 192.0.0.1 4000::1 3fff::1 fec0::1',
    'another address inside':
      '::127.0.0.1 ::ffff:10.0.0.1 ::ffff:0:10.0.0.1 64:ff9b::10.0.0.1 2002:a00:1:: 2001:0:1:: ' +
      '2a00::5efe:10.0.0.1 2a00::200:5efe:a9fe:a9fe',
    // The first is the empty one.
    'no address': ' localhost example.com 0x7f.1 1.1.1 1.1.1.1:80',
  }
  for (const [whose, addresses] of Object.entries(OTHERS))
    it(`is none of ${whose}`, () => {
      for (const address of addresses.split(' ')) {
        expect(isPublicAddress(address), address).to.equal(false)
      }
    })
})

describe('A form for a name that is at an inner address', () => {
  it('is looked up once, and no connection is begun (SES-18, SES-20)', async () => {
    const client = await startLogoutClient('inner')
    const uri = (client.metadata.backchannel_logout_uri ?? '').replace('127.0.0.1', 'localhost')
    const begun: string[] = []
    const hook = createHook({
      init: (_id, type) => void (/^(GETADDRINFO|TCPCONNECT)/.test(type) && begun.push(type)),
    })
    const post = (allowsPrivate: boolean) =>
      createPostForm(allowsPrivate)(uri, { logout_token: 't' }, new AbortController().signal)
    try {
      hook.enable()
      expect(await post(false)).to.equal('refused_address')
      hook.disable()
      expect(begun).to.deep.equal(['GETADDRINFOREQWRAP'])
      expect(client.tokens).to.deep.equal([])
      expect(await post(true)).to.equal(undefined)
      expect(client.tokens).to.deep.equal(['t'])
    } finally {
      hook.disable()
      await client.close()
    }
  })
})

describe('A form for a server that asks to change the protocol', () => {
  it('is answered soon', async () => {
    const upgrade = 'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n'
    const server = await serve((_req, res) => void res.socket?.write(upgrade))
    const { signal } = new AbortController()
    expect(await createPostForm(true)(server.url, {}, signal)).to.equal('not_reached')
    await server.close()
  })
})
