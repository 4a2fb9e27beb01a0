import { randomBytes } from 'node:crypto'
import { expect } from 'chai'
import type { User } from '../../src/index.ts'
import { adminOf, outcomeOf, suiteAdmin } from '../support/admin.ts'
import { eventually } from '../support/eventually.ts'
import { answers, startFaultySmtp } from '../support/faulty-smtp.ts'
import { startHarness } from '../support/harness.ts'
import { isIdle } from '../support/jobs.ts'
import { describeWithMongo } from '../support/mongod.ts'
import { databaseOf, eventsOf } from '../support/observe.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { moveTime } from '../support/time.ts'
import {
  refuse,
  rotating,
  startOAuthMailServer,
  startTokenServer,
  type OAuthMailServer,
  type TokenAnswer,
  type TokenServer,
} from '../support/token-server.ts'

const SECRET = 'client-secret-canary'
const REFRESH = 'refresh-token-0-canary'
const MAILBOX = 'accounts@idp.example'

describe('The login to the mail server by access token (smtp_auth xoauth2)', () => {
  itLogsIn('memory')
  describeWithMongo('on MongoDB', () => itLogsIn('mongodb'))
})

function itLogsIn(technology: 'memory' | 'mongodb') {
  const logged: string[] = []
  const answered: string[] = []
  const h = suiteHarness({
    technology,
    flows: { log: (...line) => logged.push(JSON.stringify(line)) },
  })
  const admin = suiteAdmin(h)
  let next: TokenAnswer[] = []
  let isTaken = (_token: string) => true
  let challenges = true
  let tokens: TokenServer
  let smtp: OAuthMailServer
  let added = 0

  beforeEach(async () => {
    ;[next, isTaken, challenges] = [[], () => true, true]
    await start()
  })

  afterEach('no secret is told, logged or stored in the clear', async () => {
    await isIdle(h)
    answered.push(JSON.stringify([await admin.getSettings(), h.events, logged]))
    if (technology === 'mongodb') {
      const all = await databaseOf(h).collections()
      for (const each of all) answered.push(JSON.stringify(await each.find().toArray()))
    }
    expect(answered.splice(0).join()).to.not.match(/canary|access-token-/)
    await Promise.all([tokens.close(), smtp.close()])
  })

  async function start() {
    tokens = await startTokenServer(next)
    const takes = (token: string, user: string) => user === MAILBOX && isTaken(token)
    smtp = await startOAuthMailServer(takes, { challenges })
    await admin.unsetSettings(['smtp_oauth_refresh_token', 'smtp_oauth_scope'])
    await put({
      smtp_port: String(smtp.port),
      smtp_username: MAILBOX,
      smtp_auth: 'xoauth2',
      smtp_oauth_token_endpoint: tokens.endpoint,
      smtp_oauth_client_id: 'client-1',
      smtp_oauth_client_secret: SECRET,
    })
  }

  async function put(settings: Record<string, string>) {
    answered.push(JSON.stringify(await admin.putSettings(settings)))
  }

  const newUser = () => h.addUser({ username: `user-${(added += 1)}` })

  async function sendOne(): Promise<User> {
    const user = await newUser()
    const { mail_id } = await admin.sendReset({ id: user.id })
    await outcomeOf(h, mail_id, 'sent')
    return user
  }

  async function tested() {
    const report = await admin.testMail({ to: 'me@users.example' })
    answered.push(JSON.stringify(report))
    const of = (wanted: string) =>
      report.checks.find(({ step }) => step === wanted) ?? expect.fail(`no ${wanted}`)
    return { ...report, of }
  }

  /** The connection that is open would need no token. */
  const later = async (ms: number) => {
    await isIdle(h)
    await moveTime(ms)
  }

  it('asks for a token as the client itself, once for all connections, and shows it to the mail server', async () => {
    await put({ smtp_oauth_scope: 'https://outlook.office365.com/.default' })
    const users = await Promise.all(Array.from({ length: 10 }, newUser))
    await Promise.all(users.map(({ id }) => admin.sendReset({ id })))
    await eventually('all mails are there', () => smtp.mails.length === users.length)
    expect(tokens.asked.map((form) => Object.fromEntries(form))).to.deep.equal([
      {
        grant_type: 'client_credentials',
        client_id: 'client-1',
        client_secret: SECRET,
        scope: 'https://outlook.office365.com/.default',
      },
    ])
    expect(new Set(smtp.shown)).to.deep.equal(new Set(tokens.issued))
  })

  it('renews the token before its end, and not earlier', async () => {
    await sendOne()
    await later(3_600_000 - 120_000)
    await sendOne()
    expect(tokens.asked).to.have.length(1)
    await later(90_000)
    await sendOne()
    expect(tokens.asked).to.have.length(2)
    expect(smtp.shown.at(-1)).to.equal(tokens.issued[1])
  })

  for (const challenge of [true, false]) {
    it(`renews a token once that the mail server does not take any more (${challenge ? 'after a challenge' : 'at once'})`, async () => {
      challenges = challenge
      await Promise.all([tokens.close(), smtp.close()])
      await start()
      await sendOne()
      await later(60_000)
      const [revoked] = tokens.issued
      isTaken = (token) => token !== revoked
      await sendOne()
      expect(tokens.asked).to.have.length(2)
      expect(smtp.shown).to.deep.equal([revoked, revoked, tokens.issued[1]])
      expect(eventsOf(h, 'password_reset_mail_failed').at(-1)?.details?.['step']).to.not.equal(
        'AUTH XOAUTH2',
      )
    })
  }

  it('does not ask again and again for a token that the mail server never takes', async () => {
    isTaken = () => false
    const user = await newUser()
    const { mail_id } = await admin.sendReset({ id: user.id })
    await eventually('it failed', () => eventsOf(h, 'password_reset_mail_failed', user)[0])
    expect(tokens.asked).to.have.length(1)
    expect(eventsOf(h, 'password_reset_mail_failed', user)[0]?.details).to.deep.equal({
      step: 'AUTH XOAUTH2',
      code: '535',
    })
    isTaken = () => true
    await moveTime(60_000)
    await outcomeOf(h, mail_id, 'sent')
  })

  it('uses a refresh token, and keeps the one that takes its place, sealed', async () => {
    const answer = rotating(REFRESH)
    next.push(answer, answer, answer)
    await put({ smtp_oauth_refresh_token: REFRESH })
    const { history: before = [] } = await h.store.settings.read()
    for (let hour = 0; hour < 3; hour += 1) {
      await sendOne()
      await later(3_600_000)
    }
    const used = tokens.asked.map((form) => form.get('refresh_token'))
    expect(used[0]).to.equal(REFRESH)
    expect(new Set(used).size).to.equal(3)
    expect(tokens.asked.map((form) => form.get('grant_type'))).to.deep.equal(
      Array(3).fill('refresh_token'),
    )
    expect(smtp.shown).to.deep.equal([1, 2, 3].map((count) => `rotated-access-token-${count}`))
    const { values, version, history: after = [] } = await h.store.settings.read()
    expect(values['smtp_oauth_refresh_token']).to.match(/^eyJ/)
    expect(after).to.deep.equal([...before.slice(0, -1), { ...before.at(-1), version }])
  })

  it('stores a new refresh token later where that failed, also if the endpoint gives no other one then', async () => {
    const newest = 'refresh-token-newest-canary'
    const { settings } = h.store
    const { write } = settings
    next.push((_form, res) => {
      settings.write = async () => Promise.reject(new Error('the database is away'))
      const more = { refresh_token: newest }
      res.end(JSON.stringify({ access_token: 'access-token-x', expires_in: 60, ...more }))
    })
    await put({ smtp_oauth_refresh_token: REFRESH })
    const before = await settings.read()
    try {
      await sendOne()
      expect(await settings.read()).to.deep.equal(before)
    } finally {
      settings.write = write
    }
    await later(3_600_000)
    await sendOne()
    const restarted = await startHarness({ flows: { store: h.store, users: h.users } })
    answered.push(JSON.stringify(await adminOf(restarted).testMail({ to: 'me@users.example' })))
    await restarted.close()
    expect(tokens.asked.map((form) => form.get('refresh_token'))).to.deep.equal([
      REFRESH,
      newest,
      newest,
    ])
  })

  it('keeps no refresh token in the place of one that an admin set meanwhile', async () => {
    const other = 'refresh-token-of-the-admin-canary'
    next.push(async (_form, res) => {
      await put({ smtp_oauth_refresh_token: other })
      const more = { refresh_token: 'refresh-token-rotated-canary' }
      res.end(JSON.stringify({ access_token: 'access-token-x', expires_in: 60, ...more }))
    })
    await put({ smtp_oauth_refresh_token: REFRESH })
    await sendOne()
    await later(3_600_000)
    await sendOne()
    expect(tokens.asked.map((form) => form.get('refresh_token'))).to.deep.equal([REFRESH, other])
  })

  it('tries the refresh token that another process stored, where its own was used up a moment ago', async () => {
    const own = 'refresh-token-of-this-process-canary'
    const newer = 'refresh-token-of-another-process-canary'
    next.push(async (form, res) => {
      await put({ smtp_oauth_refresh_token: newer })
      refuse('invalid_grant')(form, res)
    })
    await put({ smtp_oauth_refresh_token: own })
    const user = await sendOne()
    expect(tokens.asked.map((form) => form.get('refresh_token'))).to.deep.equal([own, newer])
    expect(eventsOf(h, 'password_reset_mail_failed', user)).to.deep.equal([])
  })

  it('forgets both secrets with their endpoint, and asks no other one with them', async () => {
    await put({ smtp_oauth_refresh_token: REFRESH })
    const other = await startTokenServer()
    const { answer } = await admin.putSettings({ smtp_oauth_token_endpoint: other.endpoint })
    const told = (name: string) =>
      `smtp_oauth_token_endpoint changed without ${name}: the old value was deleted`
    expect(answer.warnings?.slice(0, 2)).to.deep.equal(
      ['smtp_oauth_client_secret', 'smtp_oauth_refresh_token'].map(told),
    )
    expect((await admin.getSettings()).answer).to.not.have.any.keys(
      'smtp_oauth_client_secret',
      'smtp_oauth_refresh_token',
    )
    const { of } = await tested()
    expect(of('configuration').message).to.include('smtp_oauth_client_secret missing')
    expect(other.asked).to.deep.equal([])
    await put({ smtp_oauth_client_secret: SECRET })
    await sendOne()
    expect(other.asked).to.have.length(1)
    await other.close()
  })

  it('shows no token to another mail server, nor that of one mailbox to another (SET-08)', async () => {
    await sendOne()
    const other = await startOAuthMailServer(() => true)
    const { answer } = await admin.putSettings({ smtp_port: String(other.port) })
    expect(answer.warnings?.join()).to.include(
      'smtp_port changed without smtp_oauth_client_secret: the old value was deleted',
    )
    const { mail_id } = await admin.sendReset({ id: (await newUser()).id })
    await outcomeOf(h, mail_id, 'waiting')
    const { checks } = await admin.testMail({
      to: 'me@users.example',
      settings: { smtp_port: String(smtp.port), smtp_username: MAILBOX },
    })
    answered.push(JSON.stringify(checks))
    expect(other.shown).to.deep.equal([])
    expect(tokens.asked).to.have.length(1)

    await put({ smtp_oauth_client_secret: SECRET })
    await outcomeOf(h, mail_id, 'sent')
    expect(other.shown).to.have.length(1)
    expect(tokens.asked).to.have.length(2)
    await put({ smtp_username: 'another@users.example' })
    await sendOne()
    expect(tokens.asked).to.have.length(3)
    await other.close()
  })

  it('tries no other endpoint with a stored secret, and names the secret that is missing then', async () => {
    await put({ smtp_password: 'password-canary' })
    const other = await startTokenServer()
    const tried = async (settings: Record<string, string>) => {
      const { checks } = await admin.testMail({ to: 'me@users.example', settings })
      answered.push(JSON.stringify(checks))
      return checks.find(({ step }) => step === 'configuration')
    }
    expect(await tried({ smtp_oauth_token_endpoint: other.endpoint })).to.include({
      status: 'warning',
      message:
        'The stored smtp_oauth_client_secret belongs to another smtp_host or smtp_port or smtp_oauth_token_endpoint and stays there: no login was tried.',
      advice: 'Give it again: --set smtp_oauth_client_secret asks for it.',
    })
    const moved = { smtp_host: 'localhost', smtp_oauth_client_secret: '' }
    expect((await tried(moved))?.message).to.include('smtp_oauth_client_secret missing')
    expect(other.asked).to.deep.equal([])
    expect((await tested()).ok).to.equal(true)
    await other.close()
    await admin.unsetSettings(['smtp_password'])
  })

  it('with a secret that no key opens, mails wait and nobody is asked, until it is given again', async () => {
    const { store, users } = h
    const user = await newUser()
    const secrets = [randomBytes(32)]
    const other = await startHarness({ flows: { store, users, secrets }, mayLogErrors: true })
    const { checks } = await adminOf(other).testMail({ to: 'me@users.example' })
    expect(checks[0]).to.include({ step: 'configuration', status: 'failed' })
    expect(tokens.asked).to.deep.equal([])
    await adminOf(other).putSettings({ smtp_oauth_client_secret: SECRET })
    await h.flows.stop({ withinMs: 2_000 })
    const { mail_id } = await adminOf(other).sendReset({ id: user.id })
    await outcomeOf(other, mail_id, 'sent')
    expect(tokens.asked.at(-1)?.get('client_secret')).to.equal(SECRET)
    await other.close()
    await h.flows.start()
    await put({ smtp_oauth_client_secret: SECRET })
    await sendOne()
  })

  const odd: [what: string, code: RegExp, advice: RegExp, answer: TokenAnswer][] = [
    [
      'refuses the client',
      /401 invalid_client/,
      /A secret may have expired/,
      refuse('invalid_client', 401),
    ],
    [
      'refuses the refresh token',
      /400 invalid_grant/,
      /new smtp_oauth_refresh_token/,
      refuse('invalid_grant'),
    ],
    [
      'repeats a secret as its error',
      /^(?!.*clientsecret).*400/,
      /smtp_oauth_token_endpoint/,
      refuse(SECRET.replaceAll(/\W/g, '')),
    ],
    [
      'does not let the client ask so',
      /400 unauthorized_client/,
      /Check smtp_oauth_client_id/,
      refuse('unauthorized_client'),
    ],
    [
      'says what no table knows',
      /400 odd_reason/,
      /Look up the error code of its answer/,
      refuse('odd_reason'),
    ],
    ['refuses the scope', /400 invalid_scope/, /outlook\.office365\.com/, refuse('invalid_scope')],
    ['fails', /503/, /smtp_oauth_token_endpoint/, (_form, res) => res.writeHead(503).end('busy')],
    [
      'leads elsewhere',
      /302/,
      /smtp_oauth_token_endpoint/,
      (_form, res) => res.writeHead(302, { location: '/other' }).end(),
    ],
    [
      'answers HTML',
      /not JSON/,
      /smtp_oauth_token_endpoint/,
      (_form, res) => res.end('<h1>Sign in</h1>'),
    ],
    [
      'answers too much',
      /not JSON/,
      /smtp_oauth_token_endpoint/,
      (_form, res) => res.end(`{"a":"${'x'.repeat(100_000)}"}`),
    ],
    [
      'answers null',
      /no token|not JSON/,
      /smtp_oauth_token_endpoint/,
      (_form, res) => res.end('null'),
    ],
    [
      'answers no token',
      /no token in it/,
      /smtp_oauth_token_endpoint/,
      (_form, res) => res.end('{}'),
    ],
    [
      'answers a token with a line break',
      /no token in it/,
      /smtp_oauth_token_endpoint/,
      (_form, res) => res.end(JSON.stringify({ access_token: 'a\r\nRSET' })),
    ],
    [
      'answers another kind of token',
      /another kind/,
      /smtp_oauth_token_endpoint/,
      (_form, res) => res.end(JSON.stringify({ access_token: 'x', token_type: 'mac' })),
    ],
    [
      'drops the connection',
      /ECONNRESET|UND_ERR_SOCKET/,
      /smtp_oauth_token_endpoint/,
      (_form, res) => res.destroy(),
    ],
  ]
  for (const [what, code, advice, answer] of odd) {
    it(`tells an endpoint that ${what}, in the step token, and mails wait`, async () => {
      const user = await newUser()
      next.push(answer)
      const report = await tested()
      expect(report.checks.map(({ step }) => step)).to.deep.equal([
        'configuration',
        'dns',
        'connect',
        'tls',
        'token',
        'auth',
        'from',
        'rcpt',
        'data',
      ])
      expect(report.of('token').status).to.equal('failed')
      expect(report.of('token').message).to.match(code)
      expect(report.of('token').advice).to.match(advice)
      expect(report.of('auth').status).to.equal('skipped')

      next.push(answer)
      const { mail_id } = await admin.sendReset({ id: user.id })
      await eventually('it failed', () => eventsOf(h, 'password_reset_mail_failed', user)[0])
      const details = eventsOf(h, 'password_reset_mail_failed', user)[0]?.details
      expect(details?.['step']).to.equal('token')
      expect(details?.['code']).to.match(code)
      const { summary } = await admin.userStatus({ id: user.id })
      expect(summary).to.match(/ while asking for an access token\.$/)
      await moveTime(60_000)
      await outcomeOf(h, mail_id, 'sent')
      expect((await tested()).ok).to.equal(true)
    })
  }

  it('gives an endpoint that hangs 10 seconds, and then says so', async () => {
    next.push(() => {})
    const checking = tested()
    await eventually('it is asked', () => tokens.asked.length === 1)
    await moveTime(10_000)
    expect((await checking).of('token').message).to.include('(out of time)')
    expect((await tested()).ok).to.equal(true)
  })

  it('tells an endpoint that nobody listens at', async () => {
    await tokens.close()
    expect((await tested()).of('token').message).to.include('(ECONNREFUSED)')
  })

  const refusals: [answer: string, message: RegExp, advice: RegExp][] = [
    [
      '534 5.7.9 Log in by browser first',
      /the access token .* \(534\)/,
      /smtp_username \(the mail/,
    ],
    ['550 5.7.0 No', /the access token .* \(550\)/, /smtp_oauth_scope/],
    ['454 4.7.0 Not now', /the access token .* \(454\)/, /^Try again in a few minutes\.$/],
    ['504 5.5.4 Unknown', /the login with AUTH XOAUTH2 \(504\)/, /does not support XOAUTH2/],
    ['538 5.7.11 Encrypt', /wants TLS before the login \(538\)/, /Set smtp_tls/],
  ]
  for (const [answer, message, advice] of refusals) {
    it(`advises nothing about a password where the mail server answers ${answer}`, async () => {
      const server = await startFaultySmtp({ offersAuth: true, fault: answers('AUTH', answer) })
      await put({ smtp_port: String(server.port), smtp_oauth_client_secret: SECRET })
      const { of } = await tested()
      expect(of('auth').message).to.match(message)
      expect(of('auth').advice)
        .to.match(advice)
        .and.to.not.match(/smtp_password|CRAM/)
      await server.close()
      await put({ smtp_port: String(smtp.port), smtp_oauth_client_secret: SECRET })
      expect((await tested()).ok).to.equal(true)
    })
  }

  it('advises nothing about a password where the mail server offers no login, or wants one that is not complete', async () => {
    const server = await startFaultySmtp({ fault: answers('MAIL', '530 5.7.0 Log in') })
    await put({ smtp_port: String(server.port), smtp_oauth_client_secret: SECRET })
    const { message, advice } = (await tested()).of('auth')
    expect(message).to.equal('A login is set, but the server offers no login here.')
    expect(advice).to.not.include('smtp_password')
    await put({ smtp_oauth_client_secret: '' })
    const incomplete = await tested()
    expect(incomplete.of('auth').message).to.equal('No login is set, and none was needed so far.')
    expect(incomplete.of('from').advice).to.include('or what smtp_auth xoauth2 needs')
    await server.close()
    await put({ smtp_port: String(smtp.port), smtp_oauth_client_secret: SECRET })
    expect((await tested()).ok).to.equal(true)
  })

  it('tells a token that the mail server does not take from one that does not come', async () => {
    isTaken = () => false
    for (const challenge of [true, false]) {
      challenges = challenge
      await Promise.all([tokens.close(), smtp.close()])
      await start()
      const { of } = await tested()
      expect(of('token')).to.include({ status: 'ok' })
      expect(of('auth').status).to.equal('failed')
      expect(of('auth').message).to.include('refuses the access token with AUTH XOAUTH2 (535)')
      expect(of('auth').reply).to.match(/^535/)
    }
  })
}
