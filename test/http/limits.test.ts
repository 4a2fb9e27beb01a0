import { once } from 'node:events'
import { createServer, type IncomingMessage, request } from 'node:http'
import type { ListenOptions } from 'node:net'
import { networkInterfaces } from 'node:os'
import { expect } from 'chai'
import express from 'express'
import { expressHost } from '../../examples/hosts/express.ts'
import { koaHost } from '../../examples/hosts/koa.ts'
import { networkOf } from '../../src/http/requester.ts'
import type { ForgotPasswordRequest } from '../../src/index.ts'
import { adminOf } from '../support/admin.ts'
import { suiteFolder } from '../support/folders.ts'
import {
  expectUnavailable,
  type Answer,
  createUserAgent,
  type Form,
} from '../support/user-agent.ts'
import {
  type Harness,
  type HarnessOptions,
  type Listener,
  PASSWORD,
  suiteHarness,
} from '../support/harness.ts'
import { jobs } from '../support/jobs.ts'
import { describeWithMongo, freshDatabase, type FreshDatabase } from '../support/mongod.ts'
import { shapeOf, usableRecord } from '../support/observe.ts'
import { records } from '../support/records.ts'
import { type Person, resetForm } from '../support/person.ts'
import { moveTime } from '../support/time.ts'

const LIMIT = 5
const NEW = 'a new password'
const BEHIND_A_PROXY = {
  settings: { requests_per_ip_per_minute: String(LIMIT) },
  flows: { trustedProxies: 1 },
}
const PATHS: Record<string, Form> = {
  'forgot-password': { identifier: 'nobody' },
  'resend-verification': { username: 'nobody' },
  'reset-password': { token: 'x'.repeat(43), password: 'p', confirm_password: 'p' },
  'verify-email/waiting': { login: 'x'.repeat(22), code: '123456' },
}

let used = 0

const postFrom = ({ oauthUrl }: Harness, address: string, identifier = 'nobody') =>
  createUserAgent().post(
    `${oauthUrl}/forgot-password`,
    { identifier },
    { 'x-forwarded-for': address },
  )

/** An address that no other test comes from. */
function newAddress(): string {
  used += 1
  return `198.51.${Math.floor(used / 250)}.${used % 250}`
}

describe('Forms from one address', () => {
  const h = suiteHarness(BEHIND_A_PROXY)

  const post = (address: string, path = 'forgot-password', form = PATHS[path] ?? {}, more = {}) => {
    const headers = { 'x-forwarded-for': address, ...more }
    return createUserAgent().post(`${h.oauthUrl}/${path}`, form, headers)
  }

  const isLimited = ({ status, page, mode }: Answer) =>
    status === 429 && page === 'error' && mode === 'too_many_requests'

  async function useUp(address: string, times = LIMIT) {
    for (let count = 0; count < times; count += 1)
      expect((await post(address)).status).to.equal(200)
  }

  /** What was refused wrote nothing, and others are served. */
  async function nothingCameOf(work: () => Promise<unknown>) {
    await h.withoutJobs(work)
    expect((await post(newAddress())).status).to.equal(200)
  }

  it(`are served ${LIMIT} times a minute, and then answered 429 with Retry-After`, async () => {
    const address = newAddress()
    const user = await h.addUser({ username: 'served' })
    await useUp(address)
    await nothingCameOf(async () => {
      const refused = await post(address, 'forgot-password', { identifier: user.username })
      expect(isLimited(refused)).to.equal(true)
      expect(Number(refused.headers.get('retry-after'))).to.be.within(1, 60)
      expect(refused.headers.get('retry-after')).to.match(/^[1-9]\d?$/)
      expect(refused.headers.get('cache-control')).to.equal('no-store')
      expect(refused.headers.getSetCookie()).to.deep.equal([])
    })
    await post(newAddress(), 'forgot-password', { identifier: user.username })
    expect((await h.mail.mailTo(user.email ?? '')).link).to.include('/reset-password?token=')
  })

  it('are answered alike over the limit, whoever is named and whatever the form is (ENU-06, ENU-07)', async () => {
    const address = newAddress()
    const known = await h.addUser({ username: 'known' })
    await h.addUser({ username: 'waiting', emailVerified: false })
    await h.addUser({ username: 'banned', disabled: true })
    const link = await known.forgets()
    await useUp(address)
    const names = ['known', known.email ?? '', 'waiting', 'banned', 'nobody', '', 'x'.repeat(5_000)]
    await nothingCameOf(async () => {
      const foreign = { identifier: 'known', redirect_uri: 'https://evil.example' }
      const reset = resetForm(link, NEW)
      const answers = [
        ...names.map((identifier) => post(address, 'forgot-password', { identifier })),
        ...names.map((username) => post(address, 'resend-verification', { username })),
        post(address, 'forgot-password', 'identifier=a&identifier=b'),
        post(address, 'forgot-password', '{}', { 'content-type': 'application/json' }),
        post(address, 'forgot-password', foreign),
        post(address, 'reset-password', reset),
        post(address, 'reset-password'),
        post(address, 'verify-email/waiting'),
      ]
      const shapes = (await Promise.all(answers)).map((answer) => {
        const { headers, ...shape } = shapeOf(answer)
        return { ...shape, headers: headers.filter(([name]) => name !== 'retry-after') }
      })
      expect(shapes[0]?.status).to.equal(429)
      for (const shape of shapes) expect(shape).to.deep.equal(shapes[0])
    })
    expect(await usableRecord(h, link)).to.include({ userId: known.id })
    expect(await known.hasPassword(PASSWORD)).to.equal(true)
    expect((await h.reset(link, NEW)).mode).to.equal('done')
  })

  it('count also where the form is refused', async () => {
    const refused: [status: number, form: Form, headers?: Record<string, string>][] = [
      [400, {}],
      [400, 'identifier=a&identifier=b'],
      [415, '{"identifier":"a"}', { 'content-type': 'application/json' }],
      [415, 'identifier=a', { 'content-encoding': 'gzip' }],
      [413, { identifier: 'x'.repeat(70_000) }],
    ]
    expect(refused).to.have.length(LIMIT)
    const address = newAddress()
    for (const [status, form, headers] of refused) {
      const answer = await post(address, 'forgot-password', form, headers)
      expect(answer.status).to.equal(status)
    }
    expect(isLimited(await post(address))).to.equal(true)
  })

  it('share one bucket over all paths', async () => {
    const address = newAddress()
    const paths = Object.keys(PATHS)
    for (let count = 0; count < LIMIT; count += 1) {
      expect((await post(address, paths[count % paths.length])).status).not.to.equal(429)
    }
    await nothingCameOf(async () => {
      for (const path of paths) expect(isLimited(await post(address, path)), path).to.equal(true)
    })
  })

  it('are told apart by no header that a client may send (RATE-06)', async () => {
    const address = newAddress()
    await useUp(address)
    await nothingCameOf(async () => {
      const other = '203.0.113.9'
      for (const headers of [
        { 'x-forwarded-for': `${other}, ${address}` },
        { 'x-forwarded-for': `${`${other}, `.repeat(50)}${address}` },
        { 'x-forwarded-for': `, ,${address} , ,` },
        { 'x-forwarded-for': `${address}:4711` },
        { 'x-forwarded-for': `::ffff:${address}` },
        { forwarded: `for=${other}`, 'x-real-ip': other, 'x-client-ip': other },
        { 'cf-connecting-ip': other, 'true-client-ip': other, 'x-forwarded-host': 'evil.example' },
        { 'user-agent': 'another', cookie: 'session=another', 'x-http-method-override': 'GET' },
      ]) {
        const refused = await post(address, undefined, undefined, headers)
        expect(isLimited(refused), JSON.stringify(headers)).to.equal(true)
      }
    })
  })

  it(`pass exactly ${LIMIT} of a parallel burst, by whichever address of one /64 (RATE-06, RATE-10)`, async () => {
    const burst = Array.from({ length: 50 }, (_, index) => post(`2001:db8:0:1::${index}`))
    const answers = await Promise.all(burst)
    expect(answers.filter(({ status }) => status === 200)).to.have.length(LIMIT)
    expect(answers.filter(isLimited)).to.have.length(50 - LIMIT)
  })

  it('are not served by another spelling of the path beyond the limit', async () => {
    const address = newAddress()
    await useUp(address)
    await nothingCameOf(async () => {
      for (const path of [
        ...['', '?x=1', '?identifier=nobody', '#x', '/', ';x=1', '%20'].map(
          (end) => `forgot-password${end}`,
        ),
        'FORGOT-PASSWORD',
        '/forgot-password',
        './forgot-password',
        'forgot%2dpassword',
      ]) {
        const answer = await post(address, path, { identifier: 'nobody', extra: '1' })
        expect(answer.status, path).to.be.oneOf([429, 404])
        expect(answer.text, path).not.to.include('data-mode="sent"')
      }
    })
  })

  it('are not counted where another site sent them, so that no page uses up what its visitors may ask for', async () => {
    const address = newAddress()
    for (let count = 0; count < 2 * LIMIT; count += 1) {
      const foreign = await post(address, undefined, undefined, { 'sec-fetch-site': 'cross-site' })
      expect(foreign.status).to.equal(403)
    }
    expect((await post(address)).status).to.equal(200)
  })

  it('are limited, pages are not: GET and HEAD neither count nor wait', async () => {
    const address = newAddress()
    const agent = createUserAgent()
    const headers = { 'x-forwarded-for': address }
    const open = (method: string) =>
      agent.request(method, `${h.oauthUrl}/forgot-password`, { headers })
    for (let count = 0; count < 2 * LIMIT; count += 1) {
      for (const method of ['GET', 'HEAD']) expect((await open(method)).status).to.equal(200)
    }
    await useUp(address)
    expect(isLimited(await post(address))).to.equal(true)
    expect((await open('GET')).mode).to.equal('form')
  })

  it('are audited over the limit once for a network and minute', async () => {
    const limited = (address: string) =>
      h.events.filter((event) => event.reason === 'too_many_requests' && event.address === address)
    for (const [path, type] of [
      ['forgot-password', 'password_reset_requested'],
      ['resend-verification', 'email_verification_requested'],
      ['reset-password', 'password_reset_rejected'],
      ['verify-email/waiting', 'email_verification_rejected'],
      ['not-me', 'password_reset_rejected'],
    ] as const) {
      const address = newAddress()
      await useUp(address)
      expect(limited(address)).to.deep.equal([])
      await Promise.all(Array.from({ length: 10 }, () => post(address, path)))
      const [event, ...others] = limited(address)
      expect(event).to.include({ type, address })
      expect(others).to.deep.equal([])
      expect(event).not.to.have.any.keys('accountId', 'details')
      expect(JSON.stringify(event)).not.to.include('nobody')
    }
  })

  it('follow the setting at once; 0 is no limit', async () => {
    const address = newAddress()
    await useUp(address)
    expect(isLimited(await post(address))).to.equal(true)
    try {
      await h.put({ requests_per_ip_per_minute: String(2 * LIMIT) })
      expect((await post(address)).status).to.equal(200)
      await h.put({ requests_per_ip_per_minute: '1' })
      expect(isLimited(await post(address))).to.equal(true)
      await h.put({ requests_per_ip_per_minute: '0' })
      await useUp(address, 20)
    } finally {
      await h.put({ requests_per_ip_per_minute: String(LIMIT) })
    }
  })
})

describe('Forms where no proxy is declared', () => {
  const file = suiteFolder()
  const warnings: string[] = []
  const h = suiteHarness({
    settings: { requests_per_ip_per_minute: '2' },
    flows: { log: (level, message) => level === 'warn' && warnings.push(message) },
    host: (parts) => (listener = koaHost(parts)),
  })
  let listener: Listener

  it('are not limited from this machine', async () => {
    for (let count = 0; count < 10; count += 1) {
      expect((await h.forgot('nobody')).status).to.equal(200)
    }
    expect(warnings).to.deep.equal([])
  })

  it('are warned of once where they came through a proxy', async () => {
    const agent = createUserAgent()
    const post = (headers: Record<string, string>) =>
      agent.post(`${h.oauthUrl}/forgot-password`, { identifier: 'nobody' }, headers)
    await post({ 'x-forwarded-for': '203.0.113.1' })
    await post({ 'x-forwarded-for': '203.0.113.2' })
    await post({ forwarded: 'for=203.0.113.3' })
    expect(warnings).to.have.length(1)
    expect(warnings[0]).to.include('trustedProxies')
    expect(JSON.stringify(warnings)).not.to.include('203.0.113')
  })

  /** The statuses of six forms that say to come from elsewhere, on a server of their own. */
  async function sixPosts(at: ListenOptions, to: (port: number) => object) {
    const server = createServer((req, res) => void listener(req, res))
    const statuses: unknown[] = []
    try {
      await new Promise<void>((resolve) => server.listen(at, resolve))
      const address = server.address()
      const port = typeof address === 'object' ? (address?.port ?? 0) : 0
      for (let count = 0; count < 6; count += 1) {
        const spoofed = `203.0.113.${count}`
        const headers = {
          'content-type': 'application/x-www-form-urlencoded',
          'x-forwarded-for': spoofed,
          'x-real-ip': spoofed,
          forwarded: `for=${spoofed}`,
        }
        const path = '/oauth2/forgot-password'
        const sent = request({ ...to(port), path, method: 'POST', headers })
        const [answer]: IncomingMessage[] = await once(sent.end('identifier=nobody'), 'response')
        statuses.push(answer?.resume().statusCode)
      }
    } finally {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    }
    return statuses
  }

  it('are not limited over a Unix socket: who is behind it has no address', async () => {
    const path = file('socket')
    const statuses = await sixPosts({ path }, () => ({ socketPath: path }))
    expect(statuses).to.deep.equal(Array(6).fill(200))
  })

  it('are counted by their connection, whatever their headers say', async function () {
    const other = Object.values(networkInterfaces())
      .flat()
      .find((each) => each && !each.internal && each.family === 'IPv4')
    if (!other) this.skip()
    const host = other?.address ?? ''
    const statuses = await sixPosts({ host: '0.0.0.0', port: 0 }, (port) => ({ host, port }))
    expect(statuses).to.deep.equal([200, 200, 429, 429, 429, 429])
  })
})

describe('Forms where the provider is mounted below a parameter of the path (RATE-07)', () => {
  const h = suiteHarness({
    ...BEHIND_A_PROXY,
    basePath: '/idp',
    host: (parts) => express().use('/:tenant', expressHost({ ...parts, oauthPath: '/oauth2' })),
  })

  it('share one bucket, under whatever name they come', async () => {
    const { origin } = new URL(h.baseUrl)
    const statuses: number[] = []
    for (const tenant of ['idp', 'a', 'b', 'idp', 'a', 'c', 'idp', 'b']) {
      const below = { ...h, oauthUrl: `${origin}/${tenant}/oauth2` }
      statuses.push((await postFrom(below, '198.51.100.1')).status)
    }
    expect(statuses).to.deep.equal([200, 200, 200, 200, 200, 429, 429, 429])
  })
})

describe('A flood of identifiers that nobody has (RATE-09)', () => {
  const h = suiteHarness()

  it('leaves no job and no mail, and does not hold up the mail of somebody who exists', async () => {
    const user = await h.addUser({ username: 'honest' })
    const names = Array.from({ length: 100 }, (_, index) => `nobody ${index}`)
    const answers = await Promise.all(names.map((name) => h.forgot(name)))
    expect(await user.forgets()).to.include('/reset-password?token=')
    for (const { status, mode } of answers) expect([status, mode]).to.deep.equal([200, 'sent'])
    await h.isIdle()
    expect(h.events.filter(({ reason }) => reason === 'unknown')).to.have.length(names.length)
    expect(h.mail.mails).to.have.length(1)
  })
})

describeWithMongo('Limits of two processes on one database (RATE-10) [full]', () => {
  const BURST = 10
  let database: FreshDatabase
  before(async () => {
    database = await freshDatabase()
  })
  const options = (): HarnessOptions => ({
    database: { db: database.db, drop: async () => {} },
    settings: { requests_per_ip_per_minute: String(BURST), mails_per_account_per_hour: '3' },
    flows: { trustedProxies: 1 },
  })
  const [h, other] = [suiteHarness(options), suiteHarness(options)]
  after(() => database?.drop())

  it(`pass exactly ${BURST} forms of a burst over both, audited once`, async () => {
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, index) =>
        postFrom(index % 2 === 0 ? h : other, '2001:db8::1'),
      ),
    )
    const statuses = answers.map(({ status }) => status)
    expect(statuses.filter((status) => status === 200)).to.have.length(BURST)
    expect(statuses.filter((status) => status === 429)).to.have.length(50 - BURST)
    const events = database.db.collection('audit_events')
    expect(await events.countDocuments({ reason: 'too_many_requests' })).to.equal(1)
  })

  it('keep counts that end by themselves, and nothing that a person could be known by', async () => {
    await (await h.addUser({ username: 'Bombed-account' })).forgets()
    const limits = records(h, 'rate_limits')
    const indexes = await limits.indexes()
    const ends = indexes.find(({ key }) => 'ends_at' in key)
    expect(ends?.expireAfterSeconds).to.equal(0)
    const before = await limits.countDocuments()
    await h.put({ requests_per_ip_per_minute: '0' })
    await Promise.all(
      Array.from({ length: 40 }, (_, index) => postFrom(h, '203.0.113.1', `nobody ${index}`)),
    )
    await h.put({ requests_per_ip_per_minute: String(BURST) })
    for (let count = 0; count < BURST + 2; count += 1) await postFrom(h, '203.0.113.1')
    expect(await limits.countDocuments()).to.equal(before + 1)
    for (const { _id: key, ends_at } of await limits.find().toArray()) {
      expect(key).to.match(
        /^(requests:[\da-f.:]+(\/64)?|mails:(all|[a-z_]+:([a-z_]+:)?[\w-]{43}(:\d+)?))$/,
      )
      expect(ends_at).to.be.instanceOf(Date)
      expect(ends_at.getTime()).to.be.below(Date.now() + 3_600_000)
    }
    const stored = JSON.stringify(await limits.find().toArray()).toLowerCase()
    expect(stored).not.to.include('bombed').and.not.to.include('users.example')
  })
})

/** What the two forms are asked with. */
const FORMS = [
  ['password_reset', 'forgot-password', 'identifier', 'send-reset'],
  ['email_verification', 'resend-verification', 'username', 'send-verification'],
] as const

for (const [kind, path, name, command] of FORMS) {
  describe(`beforeForgotPassword: a check of the host before ${path} asks for a link`, () => {
    const asked: ForgotPasswordRequest[] = []
    const logged: string[] = []
    let check: (request: ForgotPasswordRequest) => unknown = () => 'allow'
    const h = suiteHarness({
      settings: { requests_per_ip_per_minute: '3' },
      flows: {
        trustedProxies: 1,
        log: (...line) => logged.push(JSON.stringify(line)),
        beforeForgotPassword(request) {
          asked.push(request)
          return check(request) as 'allow'
        },
      },
    })

    beforeEach(() => {
      asked.length = 0
      logged.length = 0
      check = () => 'allow'
    })

    /** `identifier` stands for the field of this form that names somebody. */
    const post = (
      { identifier, ...others }: Record<string, string>,
      address = newAddress(),
      userAgent = 'a browser',
    ) => {
      const form = identifier === undefined ? others : { [name]: identifier, ...others }
      const headers = { 'x-forwarded-for': address, 'user-agent': userAgent }
      return createUserAgent().post(`${h.oauthUrl}/${path}`, form, headers)
    }

    /** An honest request of that user, once the host allows it: its mail comes. */
    async function isSent(user: Person) {
      check = () => 'allow'
      expect((await post({ identifier: user.username })).status).to.equal(200)
      await user.mail(1)
    }

    let people = 0
    const addPerson = (username: string) =>
      h.addUser({
        username,
        email: `person-${(people += 1)}@users.example`,
        emailVerified: kind === 'password_reset',
      })

    it('has 10 seconds to answer; then everybody is told to try again, and nothing is sent', async () => {
      const user = await addPerson('waits')
      const isAsked = new Promise<void>((resolve) => {
        check = () => {
          resolve()
          return new Promise(() => {})
        }
      })
      await h.withoutJobs(async () => {
        const answer = post({ identifier: user.username })
        await isAsked
        await moveTime(10_000)
        expect(await answer).to.include({ status: 503, mode: 'unavailable' })
      })
      await isSent(user)
    })

    it('gets what was typed, the client, who asks, and the other fields', async () => {
      await post(
        { identifier: ' As Typed ', client_id: 'app', state: 's', captcha: 'x y' },
        '203.0.113.7',
      )
      const [request, ...others] = asked
      expect(others).to.deep.equal([])
      expect(request).to.include({ kind, identifier: ' As Typed ', clientId: 'app' })
      expect(request?.requester).to.include({ address: '203.0.113.7', userAgent: 'a browser' })
      expect([...(request?.fields ?? [])]).to.deep.equal([
        ['client_id', 'app'],
        ['state', 's'],
        ['captcha', 'x y'],
      ])
      await post({ identifier: 'another' })
      expect(asked[1]?.clientId).to.equal(undefined)
    })

    const texts = ['deny', '', 'ALLOW', 'allow ']
    const denials = [...texts, ['allow'], undefined, null, true, false, 1, {}]
    it('takes anything but allow for a denial: the same page, and nothing comes of it but an event', async () => {
      const user = await addPerson('denied')
      const sent = await post({ identifier: 'nobody' })
      for (const verdict of denials) {
        const what = JSON.stringify(verdict)
        check = () => Promise.resolve(verdict)
        await h.withoutJobs(async () => {
          const events = h.events.length
          const denied = await post({ identifier: user.username, client_id: 'app' })
          expect(shapeOf(denied), what).to.deep.equal(shapeOf(sent))
          const [event, ...others] = h.events.slice(events)
          expect(event, what).to.deep.include({
            type: `${kind}_requested`,
            reason: 'denied',
            clientId: 'app',
            userAgent: 'a browser',
          })
          expect(event).not.to.have.property('accountId')
          expect(others).to.deep.equal([])
          expect(JSON.stringify({ ...event, reason: '' })).not.to.include('denied')
        })
      }
      await isSent(user)
    })

    it('is told by user status where it denied the last request, by name or address', async () => {
      const user = await addPerson('Denied too')
      const status = () => adminOf(h).userStatus({ id: user.id })
      const address = kind === 'password_reset' ? [user.email?.toUpperCase() ?? ''] : []
      for (const identifier of [...address, ` ${user.username}`]) {
        check = () => 'deny'
        await post({ identifier })
        const { cause, summary, advice } = await status()
        expect(cause).to.equal('ended')
        expect(summary).to.match(
          /^The last request, at \S+, was denied .*\(beforeForgotPassword\)\.$/,
        )
        expect(advice).to.include(`account-flows user ${command} --id ${user.id}`)
        check = () => 'allow'
        await post({ identifier })
        await h.isIdle()
        expect((await status()).cause).to.equal('sent')
      }
    })

    const failures: Record<string, (request: ForgotPasswordRequest) => unknown> = {
      throws({ identifier }) {
        throw new TypeError(`cannot check ${identifier}`)
      },
      rejects: async ({ identifier }) => Promise.reject(new Error(`cannot check ${identifier}`)),
      // oxlint-disable-next-line typescript/prefer-promise-reject-errors -- what a host may do
      'rejects with no error': ({ identifier }) => Promise.reject(identifier),
      'throws what cannot be read'({ identifier }) {
        const boom = () => {
          throw new Error(`cannot read ${identifier}`)
        }
        throw new Proxy(new Error(identifier), { get: boom, getPrototypeOf: boom })
      },
    }
    for (const [how, fail] of Object.entries(failures)) {
      it(`answers 503 to everybody where it ${how}, and logs nothing that was typed`, async () => {
        const user = await addPerson(`Somebody ${how}`)
        await h.isIdle()
        check = fail
        const answers = [
          await post({ identifier: user.username }, undefined, 'a failing check'),
          await post({ identifier: 'Nobody' }, undefined, 'a failing check'),
        ]
        for (const answer of answers) {
          expectUnavailable(answer)
          expect(shapeOf(answer)).to.deep.equal(shapeOf(answers[0] ?? answer))
        }
        expect(await jobs(h)).to.deep.equal([])
        expect(user.mailCount()).to.equal(0)
        const told = h.events.filter(({ userAgent }) => userAgent === 'a failing check')
        expect(told).to.deep.equal([])
        expect(logged.filter((line) => line.includes('beforeForgotPassword'))).to.have.length(2)
        expect(logged.join()).not.to.include('Somebody').and.not.to.include('Nobody')
        await isSent(user)
      })
    }

    it('is not asked about forms that are refused, that another site posts (HDR-04), or beyond the limit of an address', async () => {
      for (const form of [
        {},
        { identifier: '' },
        { identifier: ' ', username: ' ' },
        { other: 'a' },
      ])
        expect((await post(form)).status).to.equal(400)
      const twice = `${name}=a&${name}=b`
      const refused = await createUserAgent().post(`${h.oauthUrl}/${path}`, twice)
      expect(refused.status).to.equal(400)
      const origin = { origin: 'https://evil.example' }
      const foreign = await createUserAgent().post(`${h.oauthUrl}/${path}`, { [name]: 'a' }, origin)
      expect(foreign.mode).to.equal('refused')
      expect(asked).to.deep.equal([])
      const address = '203.0.113.99'
      for (let count = 0; count < 5; count += 1) await post({ identifier: 'nobody' }, address)
      expect(asked).to.have.length(3)
    })

    it('cannot change what is asked for', async () => {
      const user = await addPerson('unchanged')
      check = (request) => {
        request.identifier = 'another'
        ;(request.fields as Map<string, string>).clear()
        request.requester.address = '192.0.2.250'
        return 'allow'
      }
      await post({ identifier: 'unchanged' }, '203.0.113.8')
      await h.mail.mailTo(user.email ?? '')
      // The event is recorded once the mail has left.
      await h.isIdle()
      const [event] = user.events(`${kind}_mail_sent`)
      expect(event).to.include({ address: '203.0.113.8' })
    })
  })
}

/** Each line is one network, in all its spellings. */
const NETWORKS: Record<string, (string | undefined)[]> = {
  '192.0.2.1': words(`
    192.0.2.1 192.0.2.1:4711 ::ffff:192.0.2.1 64:ff9b::192.0.2.1 64:ff9b::c000:201 2002:c000:201::1
    2002:c000:201:ffff::2 ::FFFF:192.0.2.1 ::ffff:c000:201 0:0:0:0:0:ffff:192.0.2.1
    0000:0000:0000:0000:0000:ffff:c000:0201 ::ffff:192.0.2.1%eth0 [::ffff:192.0.2.1]
    [::ffff:192.0.2.1]:4711`),
  '192.0.2.2': ['192.0.2.2'],
  '2001:db8:0:1::/64': words(`
    2001:db8:0:1:: 2001:db8:0:1::1 2001:db8:0:1:ffff:ffff:ffff:ffff 2001:db8::1:0:0:0:1
    2001:0DB8:0000:0001:0000:0000:0000:0001 2001:db8:0:1:0:0:192.0.2.1 2001:db8:0:1::1%eth0
    [2001:db8:0:1::1] [2001:db8:0:1::1]:443`),
  '2001:db8:0:2::/64': words('2001:db8:0:2::1 2001:db8:0:2::ffff:c000:201'),
  '64:ff9b:1:0::/64': ['64:ff9b:1::1', '64:ff9b:1::c000:201'],
  'fe80:0:0:0::/64': words('fe80::1%eth0 fe80::2%lo FE80::'),
  '0:0:0:0::/64': words(':: ::1 ::192.0.2.1'),
  unknown: [
    ...words(`
      localhost unknown _hidden 192.0.2 192.0.2.256 192.0.02.1 3221225985 0xc0000201 192.0.2.1.
      2001:db8 2001:db8:::1 2001:db8::1::2 2001:db8:0:1:0:0:0:0:1 g001:db8::1 [2001:db8::1
      ::ffff:192.0.2.256`),
    undefined,
    '',
    ' 192.0.2.1',
    '192.0.2.1\n',
    '1'.repeat(10_000),
    ':'.repeat(10_000),
  ],
}

describe('networkOf()', () => {
  for (const [network, spellings] of Object.entries(NETWORKS)) {
    it(`counts every spelling of ${network} as that (RATE-06)`, () => {
      for (const spelling of spellings) {
        expect(networkOf(spelling), JSON.stringify(spelling)).to.equal(network)
      }
    })
  }

  it('is never long', () => {
    const longest = networkOf('ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff')
    expect(longest).to.have.lengthOf.at.most(24)
  })
})

function words(text: string): string[] {
  return text.trim().split(/\s+/)
}
