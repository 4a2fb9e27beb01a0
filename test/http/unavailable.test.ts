import { expect } from 'chai'
import { memoryUsers, type UserStore } from '../../src/index.ts'
import { koaHost } from '../../examples/hosts/koa.ts'
import { problemOf, settingsOf } from '../support/admin.ts'
import { expectStillWorks } from '../support/blocked-login.ts'
import { eventually } from '../support/eventually.ts'
import { expectPage } from '../support/expect-page.ts'
import { SHORT_WAITS, suiteHarnessBehindProxy } from '../support/harness-behind-proxy.ts'
import { PASSWORD } from '../support/harness.ts'
import { jobs } from '../support/jobs.ts'
import { describeWithMongo } from '../support/mongod.ts'
import { shapeOf, usableRecord } from '../support/observe.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { createUserAgent, type Answer } from '../support/user-agent.ts'
import { addUnverified, blockedLogin, tokenOf } from '../support/person.ts'

interface Logged {
  level: string
  message: string
  details: Record<string, unknown> | undefined
}

describeWithMongo('Requests while the database cannot be reached (7) [full]', () => {
  const logged: Logged[] = []
  const thrown: unknown[] = []
  const { h, proxy } = suiteHarnessBehindProxy(SHORT_WAITS, {
    mayLogErrors: true,
    settings: { requests_per_ip_per_minute: '0' },
    flows: {
      trustedProxies: 1,
      log: (level, message, details) => logged.push({ level, message, details }),
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
    await eventually('the database is reached again', () =>
      h.store.now().then(
        () => true,
        () => false,
      ),
    )
  }

  function expectUnavailable(answer: Answer) {
    expectPage(answer, 503, 'error', 'unavailable')
    expect(answer.headers.get('retry-after')).to.equal('60')
    expect(answer.headers.get('cache-control')).to.equal('no-store')
    expect(answer.headers.getSetCookie()).to.deep.equal([])
    expect(answer.location).to.equal(undefined)
  }

  async function expectAlike(asking: Promise<Answer>[]) {
    const [first, ...others] = await Promise.all(asking)
    if (!first) throw new TypeError('nobody asked')
    expectUnavailable(first)
    for (const other of others) expect(shapeOf(other)).to.deep.equal(shapeOf(first))
  }

  it('answers POST forgot-password and resend-verification with the 503 page, alike whoever asks, and logs it once a request, without stack or address (FLT-10)', async () => {
    const known = await h.addUser({ username: 'known' })
    await addUnverified(h, { username: 'waiting' })
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
      names.map(() => ({
        level: 'error',
        message: 'request failed',
        details: { path, code: 'ERR_STORE_UNAVAILABLE' },
      })),
    )
    expect(lines.filter(({ message }) => message === 'request failed')).to.deep.equal(expected)
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
    const login = await blockedLogin(h)
    await whileGone(async () => expectUnavailable(await login.agent.get(login.link)))
    expect(await login.isVerified()).to.equal(false)
    await login.stillGetsIn()
  })

  it('answers 503 also where only the count of forms fails, and goes on afterwards (RATE-11)', async () => {
    await h.put({ requests_per_ip_per_minute: '60' })
    const user = await h.addUser({ username: 'counted' })
    const mails = h.mail.mails.length
    const post = () =>
      createUserAgent().post(
        `${h.oauthUrl}/forgot-password`,
        { identifier: 'counted' },
        { 'x-forwarded-for': '203.0.113.6' },
      )
    const failing = proxy.interrupt(
      { matches: ({ collection }) => collection === 'rate_limits', when: 'before' },
      async () => {},
    )
    expectUnavailable(await post())
    expect((await failing.happened)?.name).to.equal('findAndModify')
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

  it('answers the admin API with 503 and a problem document, and changes nothing', async () => {
    const put = () => settingsOf(h).put({ body: { validation_min_password_length: '9' } })
    await whileGone(async () => {
      const answer = await put()
      expect(answer.headers.get('retry-after')).to.equal('60')
      await problemOf(answer, 503)
    })
    const before = await h.store.settings.read()
    expect(before.values).not.to.have.property('validation_min_password_length')
    expect((await put()).status).to.equal(200)
    const { values } = await h.store.settings.read()
    expect(values).to.include({ validation_min_password_length: '9' })
  })

  it('throws ERR_STORE_UNAVAILABLE out of finishLogin to the host, blocked or not', async () => {
    const verified = await h.addUser({ username: 'verified' })
    const unverified = await addUnverified(h)
    for (const [user, collection] of [
      [unverified, 'pending_logins'],
      [verified, 'interaction'],
    ] as const) {
      const agent = createUserAgent()
      const { url } = await h.party.begin()
      const page = await h.follow(agent, await agent.get(url))
      const form = { username: user.username, password: PASSWORD, ...page.hidden }
      const outage = proxy.interrupt(
        {
          matches: (command) => command.collection === collection && isWrite(command.name),
          when: 'before',
        },
        () => proxy.sever(),
      )
      const answer = await agent.post(`${h.oauthUrl}/login`, form)
      await outage.happened
      expect([answer.status, answer.text]).to.deep.equal([503, 'the host says so itself'])
      expect(thrown.pop()).to.include({ code: 'ERR_STORE_UNAVAILABLE' })
      await comeBack()
    }
    expect((await h.signIn(createUserAgent(), 'verified')).location).to.include('code=')
    await expectStillWorks(h, await blockedLogin(h, { user: unverified }))
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
      const user = await addUnverified(h)
      kept.add(user)
      const login = await blockedLogin(h, { user })
      problem = Object.assign(new Error('the directory is down'), { code })
      const answer = await login.agent.get(login.link)
      expect([answer.status, answer.mode]).to.deep.equal([status, mode])
      expect(answer.headers.get('retry-after')).to.equal(retryAfter)

      problem = undefined
      expect((await kept.findById(login.id))?.emailVerified).to.equal(false)
      expect((await login.agent.get(login.link)).location).to.include('code=')
    })
  }
})

function isWrite(command: string): boolean {
  return ['insert', 'update', 'delete', 'findAndModify'].includes(command)
}
