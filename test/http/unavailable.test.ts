import { execFileSync } from 'node:child_process'
import { expect } from 'chai'
import type { Adapter } from 'oidc-provider'
import { createIdentity } from '../../examples/hosts/identity.ts'
import { koaHost } from '../../examples/hosts/koa.ts'
import { nodeHttpHost } from '../../examples/hosts/node-http.ts'
import { AccountFlowsError, type Log, memoryUsers, type UserStore } from '../../src/index.ts'
import { bcryptWork, turns } from '../support/bcrypt-work.ts'
import { eventually } from '../support/eventually.ts'
import {
  followWithin,
  expectPage,
  expectUnavailable,
  type Answer,
  createUserAgent,
  type UserAgent,
} from '../support/user-agent.ts'
import { isWriteOf, SHORT_WAITS, suiteHarnessBehindProxy } from '../support/mongo-proxy.ts'
import { CLIENT, PASSWORD, suiteHarness } from '../support/harness.ts'
import { partyOf } from '../support/clients.ts'
import { jobs } from '../support/jobs.ts'
import { describeWithMongo } from '../support/mongod.ts'
import { outcomeOf, refresh, userinfo } from '../support/oauth-requests.ts'
import { shapeOf, usableRecord } from '../support/observe.ts'
import { tokenOf } from '../support/person.ts'
import { requestFrom } from '../support/raw-request.ts'
import { serve } from '../support/serve.ts'

describeWithMongo('Requests while the database cannot be reached (7) [full]', () => {
  const logged: Parameters<Log>[] = []
  const thrown: unknown[] = []
  const { h, proxy } = suiteHarnessBehindProxy(SHORT_WAITS, {
    mayLogErrors: true,
    settings: { requests_per_ip_per_minute: '0' },
    flows: {
      trustedProxies: 1,
      log: (...line) => logged.push(line),
    },
    host: ({ login, ...parts }) =>
      koaHost({
        ...parts,
        login: async (req, res) => {
          await login(req, res).catch((error: unknown) => {
            thrown.push(error)
            res.statusCode = 503
            res.end('the host says so itself')
          })
        },
      }),
  })

  async function whileGone<T>(work: () => Promise<T>): Promise<T> {
    await proxy.sever()
    try {
      return await work()
    } finally {
      await comeBack()
    }
  }

  async function comeBack() {
    await proxy.restore()
    const isReady = async () => (await h.flows.health()).isReady
    await eventually('the database is reached again', isReady)
  }

  async function expectAlike(asking: Promise<Answer>[]) {
    const [first, ...others] = await Promise.all(asking)
    if (!first) throw new TypeError('nobody asked')
    expectUnavailable(first)
    for (const other of others) expect(shapeOf(other)).to.deep.equal(shapeOf(first))
  }

  it('answers POST forgot-password and resend-verification with the 503 page, alike whoever asks, and logs it once a request, without stack or address (FLT-10)', async () => {
    const known = await h.addUser({ username: 'known' })
    await h.addUnverified({ username: 'waiting' })
    await h.addUser({ username: 'banned', disabled: true })
    const names = ['known', known.email ?? '', 'waiting', 'banned', 'nobody', 'no@body.example']
    const agent = createUserAgent()
    const post = (path: string, field: string) =>
      names.map((name) => agent.post(`${h.oauthUrl}/${path}`, { [field]: name }))

    const mails = h.mail.mails.length
    const before = logged.length
    await whileGone(async () => {
      await expectAlike(post('forgot-password', 'identifier'))
      await expectAlike(post('resend-verification', 'username'))
    })
    const lines = logged.slice(before)
    const expected = ['/forgot-password', '/resend-verification'].flatMap((path) =>
      names.map(() => ['error', 'request failed', { path, code: 'ERR_STORE_UNAVAILABLE' }]),
    )
    expect(lines.filter(([, message]) => message === 'request failed')).to.deep.equal(expected)
    expect(JSON.stringify(lines)).not.to.include(new URL(proxy.uri).host)
    expect(JSON.stringify(lines)).not.to.match(/\bat .*:\d+:\d+/)
    expect(await known.forgets()).to.include('/reset-password?token=')
    expect(h.mail.mails).to.have.length(mails + 1)
  })

  it('answers reset-password with the 503 page, whether or not the link is genuine, and spends nothing', async () => {
    const user = await h.addUser({ username: 'resetting' })
    const link = await user.forgets()
    const unknown = link.replace(tokenOf(link), 'x'.repeat(43))
    const agent = createUserAgent()

    await whileGone(async () => {
      await expectAlike([agent.get(link), agent.get(unknown)])
      await expectAlike([h.reset(link, 'a brand new password'), h.reset(unknown, 'a new password')])
    })
    expect(await usableRecord(h, link)).to.include({ userId: user.id })
    expect(await user.hasPassword(PASSWORD)).to.equal(true)
    expect((await h.reset(link, 'a brand new password')).mode).to.equal('done')
    expect(await user.hasPassword('a brand new password')).to.equal(true)
  })

  it('answers verify-email with the 503 page, and the link still does all of its work', async () => {
    const login = await h.blockedLogin()
    await whileGone(async () => expectUnavailable(await login.agent.get(login.link)))
    expect(await login.isVerified()).to.equal(false)
    await login.stillGetsIn()
  })

  it('answers 503 also where only the count of forms fails, and goes on afterwards (RATE-11)', async () => {
    await h.put({ requests_per_ip_per_minute: '60' })
    const user = await h.addUser({ username: 'counted' })
    const mails = h.mail.mails.length
    const post = () => h.forgot('counted', {}, { 'x-forwarded-for': '203.0.113.6' })
    const failing = proxy.interrupt(
      { matches: ({ collection }) => collection === 'rate_limits', when: 'before' },
      () => proxy.sever(),
    )
    expectUnavailable(await post())
    expect((await failing.happened)?.collection).to.equal('rate_limits')
    await comeBack()
    expect(user.events('password_reset_requested')).to.deep.equal([])
    expect(await jobs(h)).to.deep.equal([])
    expect(h.mail.mails).to.have.length(mails)
    expect((await post()).status).to.equal(200)
    await h.mail.mailTo(user.email ?? '')
    await h.put({ requests_per_ip_per_minute: '0' })
  })

  it('tells a readiness probe so, and that it is over', async () => {
    await whileGone(async () => {
      expect(await h.flows.health()).to.deep.equal({ isReady: false, reason: 'database' })
    })
    expect(await h.flows.health()).to.deep.equal({ isReady: true })
  })

  it('answers what needs no database as ever', async () => {
    const agent = createUserAgent()
    await whileGone(async () => {
      expect((await agent.get(`${h.oauthUrl}/forgot-password`)).mode).to.equal('form')
      expect((await agent.get(`${h.oauthUrl}/account-flows.css`)).status).to.equal(200)
      expect((await agent.get(`${h.oauthUrl}/reset-password?token=short`)).mode).to.equal('invalid')
      expect((await h.forgot('')).mode).to.equal('invalid')
    })
  })

  it('throws ERR_STORE_UNAVAILABLE out of finishLogin to the host, blocked or not', async () => {
    const verified = await h.addUser({ username: 'verified' })
    const unverified = await h.addUnverified()
    for (const [user, collection] of [
      [unverified, 'pending_logins'],
      [verified, 'Interaction'],
    ] as const) {
      const { hidden } = await user.starts()
      const form = { username: user.username, password: PASSWORD, ...hidden }
      const outage = proxy.interrupt(
        {
          matches: isWriteOf(collection),
          when: 'before',
        },
        () => proxy.sever(),
      )
      const answer = await user.agent.post(`${h.oauthUrl}/login`, form)
      await outage.happened
      expect([answer.status, answer.text]).to.deep.equal([503, 'the host says so itself'])
      expect(thrown.pop()).to.include({ code: 'ERR_STORE_UNAVAILABLE' })
      await comeBack()
    }
    expect((await verified.signsIn()).location).to.include('code=')
    await (await h.blockedLogin({ user: unverified })).stillGetsIn()
  })
})

describe('Requests while the users of the host cannot be reached (7)', () => {
  const kept = memoryUsers()
  let problem: Error | undefined
  const users: UserStore = {
    ...kept,
    async findById(id) {
      if (problem) throw problem
      return kept.findById(id)
    },
  }
  const h = suiteHarness({ mayLogErrors: true, flows: { users } })

  afterEach(() => {
    problem = undefined
  })

  for (const [code, status, mode, retryAfter] of [
    ['ERR_STORE_UNAVAILABLE', 503, 'unavailable', '60'],
    ['ERR_OF_THE_HOST', 500, 'error', null],
  ] as const) {
    it(`answers ${status} where the error says ${code}, whatever its class, and the link still works`, async () => {
      const user = await h.addUnverified()
      kept.add((await h.users.findById(user.id)) ?? user)
      const login = await h.blockedLogin({ user })
      problem = Object.assign(new Error('the directory is down'), { code })
      const answer = await login.opensLink()
      expectPage(answer, status, 'error', mode)
      expect(answer.headers.get('retry-after')).to.equal(retryAfter)
      problem = undefined
      expect((await kept.findById(login.id))?.emailVerified).to.equal(false)
      expect((await login.opensLink()).location).to.include('code=')
    })
  }
})

describe('The endpoints of the provider, while its records cannot be reached', () => {
  let isGone = false
  let areUsersGone = false
  let looks = 0
  const h = suiteHarness({
    mayLogErrors: true,
    provider: {
      async findAccount(_ctx, sub) {
        if (areUsersGone) throw new AccountFlowsError('ERR_STORE_UNAVAILABLE', 'no answer in time')
        return { accountId: sub, claims: () => ({ sub }) }
      },
    },
    adapter: (adapter) => (model) => {
      const inner = adapter(model)
      const unlessGone = <K extends keyof Adapter>(name: K): Adapter[K] =>
        (async (...args: unknown[]) => {
          if (isGone) looks += 1
          if (isGone) throw new AccountFlowsError('ERR_STORE_UNAVAILABLE', 'no answer in time')
          return Reflect.apply(inner[name], inner, args)
        }) as Adapter[K]
      const names = ['upsert', 'find', 'findByUid', 'consume', 'destroy'] as const
      return { ...inner, ...Object.fromEntries(names.map((name) => [name, unlessGone(name)])) }
    },
  })
  const agent = createUserAgent()

  before(async () => {
    await (await h.addVerified()).in(agent).signsIn()
  })
  beforeEach(() => {
    isGone = true
    looks = 0
  })
  afterEach(() => (isGone = false))

  const authorization = async (browser: UserAgent) =>
    browser.get((await h.party.begin()).url, { accept: 'text/html' })

  it('answer a browser 503 with a page after one look, whoever is signed in, and go on as ever', async () => {
    for (const browser of [agent, createUserAgent()]) {
      looks = 0
      expectUnavailable(await authorization(browser))
      expect(looks).to.equal(1)
    }
    isGone = false
    expect(outcomeOf(await authorization(agent))).to.equal('code')
  })

  it('answer so too where the users of the host cannot be reached', async () => {
    isGone = false
    areUsersGone = true
    expectUnavailable(await authorization(agent))
    areUsersGone = false
    expect(outcomeOf(await authorization(agent))).to.equal('code')
  })

  it('answer a client 503 as JSON', async () => {
    expect(await refresh(h, 'aRefreshToken')).to.equal('temporarily_unavailable')
    expect(await userinfo(h, 'anAccessToken')).to.equal(503)
    isGone = false
    expect(await refresh(h, 'aRefreshToken')).to.equal('invalid_grant')
    expect(await userinfo(h, 'anAccessToken')).to.equal(401)
  })
})

const NEW = 'a new password'

describe('Passwords to hash, many at once (RATE-15)', () => {
  const logged: unknown[] = []
  const h = suiteHarness({ flows: { log: (...line) => logged.push(line) } })

  /**
   * Takes every place in the queue of the process that a network has meanwhile: who is served asks again in the same turn of the event
   * loop.
   */
  async function whileQueueIsFull(work: () => Promise<void>, network = '127.0.0.1') {
    let isOver = false
    const refusals: unknown[] = []
    const req = requestFrom(network)
    async function taker() {
      while (!isOver) await h.flows.verifyPassword(undefined, 'anything', req)
    }
    const takers: Promise<unknown>[] = []
    while (refusals.length === 0) {
      takers.push(taker().catch((error: unknown) => refusals.push(error)))
      await turns(1)
    }
    try {
      await work()
    } finally {
      isOver = true
      await Promise.all(takers)
    }
    for (const refusal of refusals)
      expect(refusal).to.include({ name: 'AccountFlowsError', code: 'ERR_OVERLOADED' })
  }

  it('are one alone where one link is posted 60 times at once, and no other link waits for that (RACE-01)', async () => {
    const { user, link } = await h.userWithLink()
    const another = await h.userWithLink()
    const modes: string[] = []
    const jobs = await bcryptWork(async () => {
      const posts = Array.from({ length: 60 }, (_none, index) => h.reset(link, `${NEW} ${index}`))
      const other = h.reset(another.link, NEW)
      for (const { status, mode } of await Promise.all(posts)) modes.push(`${status} ${mode}`)
      expect((await other).mode).to.equal('done')
    })
    const hashing = ['bcrypt:SaltAsyncWorker', 'bcrypt:EncryptAsyncWorker']
    expect(jobs).to.have.members([...hashing, ...hashing])
    expect(modes.toSorted()).to.deep.equal(['200 done', ...Array<string>(59).fill('400 invalid')])
    expect(await user.hasPassword(`${NEW} ${modes.indexOf('200 done')}`)).to.equal(true)
    expect(user.events('password_reset_completed')).to.have.length(1)
  })

  it('of another network hold nothing up: a reset is done, and so is a login', async () => {
    const { user, link } = await h.userWithLink()
    await whileQueueIsFull(async () => {
      expect((await h.reset(link, NEW)).mode).to.equal('done')
      const stored = await h.users.findById(user.id)
      expect(await h.flows.verifyPassword(stored, NEW, requestFrom('192.0.2.2'))).to.equal(true)
      expect(await h.flows.verifyPassword(stored, NEW)).to.equal(true)
    }, '192.0.2.1')
  })

  it('beyond the queue are answered 503 with Retry-After: nothing changed, and the link is good afterwards', async () => {
    const { user, link } = await h.userWithLink()
    logged.splice(0)
    await whileQueueIsFull(async () => {
      const answers = await Promise.all([1, 2, 3].map(() => h.reset(link, NEW)))
      for (const answer of answers) {
        expectUnavailable(answer)
        expect(answer.text).not.to.include(user.username)
      }
      // Whatever hashes nothing works.
      expect((await h.reset(link, NEW, 'another one')).mode).to.equal('password_mismatch')
      expect((await createUserAgent().get(link)).mode).to.equal('form')
      expect((await h.forgot('nobody')).mode).to.equal('sent')
    })
    const details = { path: '/reset-password', code: 'ERR_OVERLOADED' }
    const line = ['warn', 'request failed', details]
    expect(logged).to.deep.equal([line, line, line])
    expect(await usableRecord(h, link)).to.include({ userId: user.id })
    expect(await user.hasPassword(PASSWORD)).to.equal(true)
    expect(user.events('password_reset_completed')).to.deep.equal([])
    expect((await h.reset(link, NEW)).mode).to.equal('done')
    expect(await user.hasPassword(NEW)).to.equal(true)
  })

  it('of logins, beyond the queue, too: the hosts of the examples say so, and the login works afterwards', async () => {
    const { signIn, close } = await exampleHost()
    try {
      await whileQueueIsFull(async () => {
        const answers = [await signIn('ann'), await signIn('nobody')]
        for (const { status, headers, text } of answers) {
          expect([status, headers.get('retry-after')]).to.deep.equal([503, '60'])
          expect(text).to.equal(answers[0]?.text)
        }
      })
      expect((await signIn('nobody')).status).to.equal(401)
      expect((await signIn('ann')).mode).to.equal('blocked')
    } finally {
      await close()
    }
  })
})

/** A host of the examples, and a browser at its login page. */
async function exampleHost() {
  const { server, port, close } = await serve()
  const baseUrl = `http://localhost:${port}`
  const transport = { send: async () => ({ accepted: true as const }) }
  const identity = await createIdentity(baseUrl, transport, '/oauth2', { trustedProxies: 1 })
  server.on('request', nodeHttpHost(identity))
  const issuer = `${baseUrl}/oauth2`
  const { url } = await (await partyOf({ oauthUrl: issuer }, CLIENT)).begin({ scope: 'openid' })
  const agent = createUserAgent()
  await followWithin(agent, issuer, await agent.get(url))
  return {
    signIn: (username: string, password = 'the password of ann', from = '127.0.0.1') =>
      agent.post(`${issuer}/login`, { username, password }, { 'x-forwarded-for': from }),

    async close() {
      await identity.flows.stop()
      await close()
    },
  }
}

describe('Tries at a name (RATE-28), at the hosts of the examples', () => {
  it('end in 429, with nothing compared; a login elsewhere goes on', async () => {
    const { signIn, close } = await exampleHost()
    try {
      for (const username of ['ann', 'nobody']) {
        for (let time = 0; time < 10; time += 1)
          expect((await signIn(username, 'wrong')).status).to.equal(401)
        const work = await bcryptWork(async () => {
          const { status, headers } = await signIn(username)
          expect(status).to.equal(429)
          expect(Number(headers.get('retry-after'))).to.be.within(1, 900)
        })
        expect(work).to.deep.equal([])
      }
      const elsewhere = await signIn('ann', 'the password of ann', '198.51.100.1')
      expect(elsewhere.mode).to.equal('blocked')
    } finally {
      await close()
    }
  })
})

describe('A process that had no file left when its first form came [full]', () => {
  it('takes forms and admin requests again, once there are some', () => {
    const run = 'ulimit -n 400; exec node --import tsx/esm test/http/no-file-left.ts 2>/dev/null'
    const lines = execFileSync('sh', ['-c', run], { encoding: 'utf8' }).trim().split('\n')
    const { after }: { after: number[] } = JSON.parse(lines.at(-1) ?? '{}')
    expect(after).to.deep.equal([200, 200])
  })
})
