import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { connect } from 'node:net'
import bcrypt from 'bcrypt'
import { expect } from 'chai'
import { createAccountFlows, type Log, memoryStore, memoryUsers } from '../../src/index.ts'
import { jsonLine, withoutValues } from '../../src/log.ts'
import { createBrowser, type Answer, createUserAgent } from '../support/user-agent.ts'
import { eventually } from '../support/eventually.ts'
import {
  type ExampleServer,
  forgot,
  outboxIsQuiet,
  putSettings,
  refusedExampleServer,
  smtpSettings,
  startExampleServer,
} from '../support/example-server.ts'
import { ADMIN_TOKEN, suiteHarness } from '../support/harness.ts'
import { type MailServer, startMailServer } from '../support/mail-server.ts'
import { type MongoProxy, startMongoProxy } from '../support/mongo-proxy.ts'
import { describeWithMongo, freshDatabase, type FreshDatabase } from '../support/mongod.ts'
import { tokenOf } from '../support/person.ts'
import { dumpOf, instead } from '../support/records.ts'
import { startProcess } from '../support/process.ts'

const PLAIN = /^[^\p{C}\p{Zl}\p{Zp}]*$/u

/** For the operator, and documented: everything else is JSON. */
const HUMAN = /^(?:Open https?:\/\/\S+|READY https?:\/\/\S+)$/

function linesOf(output: string): Record<string, unknown>[] {
  const lines = output.split('\n').filter((line) => line !== '' && !HUMAN.test(line))
  return lines.map((line) => {
    expect(line, 'an escaped line').to.match(PLAIN)
    const parsed: unknown = JSON.parse(line)
    expect(parsed).to.include.keys('time', 'level', 'message')
    return parsed as Record<string, unknown>
  })
}

describe('A line of the log (LOG-04)', () => {
  const hostile = {
    'C0 and DEL': '\0\u0001\b\t\n\v\f\r\u001b[31m\u007f',
    'C1, among them NEL and CSI': '\u0080\u0085\u009b31m\u009f',
    'line and paragraph separators': '\u2028\u2029',
    'bidirectional controls':
      '\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069',
    'what cannot be seen': '\u00ad\u200b\u200c\u200d\u2060\ufeff\u{e0001}\u{e0041}\ufff9',
    'halves of characters': '\ud800 \udc00',
    'the end of a line and another': 'x"}\n{"level":"info","message":"all is well"}',
  }
  for (const [what, text] of Object.entries(hostile)) {
    it(`escapes ${what}, in names and values, and loses nothing`, () => {
      const logged = { time: 'now', level: 'info', message: text, [text]: [text] }
      const line = jsonLine(logged)
      expect(line).to.match(PLAIN)
      expect(JSON.parse(line)).to.deep.equal(logged)
    })
  }

  it('leaves readable text as it is', () => {
    expect(jsonLine({ message: 'Grüße, 日本 🙂' })).to.equal('{"message":"Grüße, 日本 🙂"}')
  })

  it('is bounded, whatever is logged', () => {
    const cleaned: string[] = []
    const log = withoutValues((level, message, details) => {
      cleaned.push(jsonLine({ level, message, ...details }))
    })
    const long = { error: '\0 '.repeat(100_000), key: 'x'.repeat(100_000) }
    log('error', 'long '.repeat(100_000), long)
    log('error', 'many', { all: Array.from({ length: 10_000 }, (_, index) => `number ${index}`) })
    for (const line of cleaned) expect(line.length).to.be.below(20_001)
    expect(cleaned.map((line) => JSON.parse(line).level)).to.deep.equal(['error', 'error'])
  })

  it('is written even where a detail cannot be', () => {
    const circular: Record<string, unknown> = {}
    circular['itself'] = circular
    for (const details of [{ circular }, { big: 1n }]) {
      const line = jsonLine({ level: 'error', message: 'm', ...details })
      expect(JSON.parse(line)).to.include({ level: 'error', message: 'm', details: 'not readable' })
    }
  })
})

const secret = randomBytes(32).toString('base64url')

describe('What is logged of an error (LOG-01)', () => {
  const quoting = {
    'a driver that quotes a key': `MongoServerError: E11000 duplicate key error collection: a.users index: email_1 dup key: { email: "canary", b: 1 }`,
    'a parser that quotes its input': `SyntaxError: Unexpected token 'c', "canary" is not valid JSON`,
    'an input that is cut off': `SyntaxError: Bad string in "canary`,
    'a host that names a user': 'Error: no user with the address canary@users.example',
    'an address with a query': 'Error: GET https://id.example/reset-password?token=canary failed',
    'an address with a password': 'Error: cannot connect to mongodb://canary:canary@db.example/',
    'a quote in a quote': `Error: "a \\"canary\\" b" and "canary`,
    'an apostrophe in a quote': "Error: no user named 'it's canary'",
    'a quote after an equals sign': 'Error: token="canary canary"',
    'a token': `Error: ${secret.replace(/^.{6}/, 'canary')} is not known`,
    'a value in backquotes': 'Error: value `canary` is not allowed',
    'a text that is cut within a token': `${'word '.repeat(798)}canary${secret}`,
  }
  for (const [what, text] of Object.entries(quoting)) {
    it(`holds nothing of ${what}`, () => {
      const logged: unknown[] = []
      withoutValues((...line) => logged.push(line))('error', text, { error: text })
      expect(JSON.stringify(logged)).not.to.include('canary')
      expect(JSON.stringify(logged)).to.include(text.slice(0, 5))
    })
  }

  it('keeps what an admin needs: names, codes, reasons, and the ids of jobs', () => {
    const logged: unknown[] = []
    const details = {
      job: randomBytes(16).toString('base64url'),
      error: "TypeError: Cannot read properties of undefined, which can't be (reading name)",
      reason: 'ERR_MAIL_FAILED',
      odd: '"65f0c0ffee65f0c0ffee65f0"',
      path: '/reset-password',
    }
    const line = ['warn', 'The mail was not sent (451 4.7.1)', details] as const
    withoutValues((...given) => logged.push(given))(...line)
    expect(logged).to.deep.equal([line])
  })

  it('is the same for a log of the host', async () => {
    const logged: string[] = []
    const log: Log = (...line) => logged.push(JSON.stringify(line))
    const options = { baseUrl: 'http://localhost', secrets: [secret], users: memoryUsers(), log }
    const flows = createAccountFlows({ ...options, store: memoryStore() })
    flows.events.on('audit', () => {
      throw new Error('a listener that quotes "canary"')
    })
    await flows.endSessions('somebody')
    expect(logged.join()).to.include('a listener').and.not.to.include('canary')
  })
})

describe('What is logged of a request that fails (LOG-09)', () => {
  let logged: Parameters<Log>[] = []
  const h = suiteHarness({ flows: { log: (...line) => logged.push(line) } })
  beforeEach(() => (logged = []))

  it('holds no token, nor does the page', async () => {
    const login = await h.blockedLogin()
    const token = tokenOf(login.link)
    const fails = () => () => Promise.reject(new Error(`no luck with ${token}`))
    const failed = await instead(h.users, 'findById', fails, () => login.opensElsewhere())
    expect(failed.status).to.equal(500)
    expect(failed.text).not.to.include(token).and.not.to.include('no luck')
    const lines = JSON.stringify(logged)
    expect(lines).to.include('request failed').and.not.to.include(token.slice(4, 24))
    await login.stillGetsIn()
  })

  it('says where it failed, at a page and at the admin API, and the answer does not', async () => {
    const message = 'no luck\n    at canary (canary.ts:1:1)'
    const failDeeply = (depth: number): never => {
      if (depth > 0) return failDeeply(depth - 1)
      throw new Error(message)
    }
    const fails = (depth: number) => () => async () => failDeeply(depth)
    const agent = createUserAgent()
    const page = await instead(h.store.resetTokens, 'find', fails(20), () =>
      agent.get(`${h.oauthUrl}/reset-password?token=${secret}`),
    )
    const answer = await instead(h.users, 'findByUsername', fails(0), () =>
      agent.request('POST', `${h.baseUrl}/admin/api/users/status`, {
        headers: { authorization: `Bearer ${ADMIN_TOKEN}`, 'content-type': 'application/json' },
        body: '{"user":"ann"}',
      }),
    )
    for (const { status, text } of [page, answer]) {
      expect(status).to.equal(500)
      expect(text).not.to.match(/failDeeply|canary|\.ts:\d/)
    }
    const texts = logged.map(([, text]) => text)
    expect(texts).to.deep.equal(['request failed', 'admin request failed'])
    for (const [, , details] of logged) {
      expect(details?.['at']).to.be.an('array').with.length.within(2, 8)
      expect(details?.['at']).to.match(/^at failDeeply .*logs\.test\.ts:\d+:\d+/)
      expect(JSON.stringify(details?.['at'])).not.to.include('canary')
    }
  })
})

describe('The output of a process that goes wrong (LOG-09)', () => {
  async function output(code: string, closeErrors = false) {
    const source = `await import('./examples/server/logging.ts'); ${code}`
    const args = ['--import', 'tsx/esm', '--input-type=module', '-e', source]
    const child = startProcess(process.execPath, args, process.env)
    if (closeErrors) child.process.stderr.destroy()
    return { exitCode: await child.exited, out: child.stdout(), errors: child.stderr() }
  }

  for (const [what, code, exitCode, count] of [
    ['an error that nobody caught', "throw new Error('at {canary}')", 1, 1],
    ['a rejection that nobody handled', "void Promise.reject(Error('/x?token=canary'))", 1, 1],
    ['a rejection with no error', "void Promise.reject('someone@canary')", 1, 1],
    [
      'warnings, and what libraries print',
      `process.emitWarning('about "canary"')
       console.error(new Error('for \`canary\`\\n\\x1b[31mred'))
       console.warn('%s of %s', 'x@canary', '\\u2028')`,
      0,
      3,
    ],
  ] as const) {
    it(`is JSON lines without values, for ${what}`, async () => {
      const { errors, ...rest } = await output(code)
      expect(rest).to.deep.equal({ exitCode, out: '' })
      expect(linesOf(errors)).to.have.length(count)
      expect(errors).not.to.include('canary')
    })
  }

  it('ends nothing when nobody reads it any more (FLT-18)', async () => {
    const { exitCode, out } = await output(
      `const { setTimeout: sleep } = await import('node:timers/promises')
       for (let i = 0; i < 5; i++) { console.error('x'); await sleep(50) }
       console.log('still here')`,
      true,
    )
    expect([exitCode, out]).to.deep.equal([0, 'still here\n'])
  })

  it('names no password of MONGODB_URI when the start is refused [full]', async function () {
    for (const uri of [
      'mongodb://user:canary@127.0.0.1:1/db?serverSelectionTimeoutMS=100',
      'mongodb://user:canary@@127.0.0.1',
    ]) {
      const { exitCode, errors } = await refusedExampleServer({ MONGODB_URI: uri })
      expect(exitCode).to.equal(2)
      expect(errors)
        .to.match(/^MONGODB_URI cannot be used/m)
        .and.not.to.include('canary')
    }
  })
})

describeWithMongo(
  'Every output of the example server (LOG-01, LOG-02, LINK-09, TOK-02, PWD-15) [full]',
  () => {
    const canary = (what: string) => `canary-${what}-${randomBytes(9).toString('hex')}`
    const hostile = '\u0085\u009b31m"},{"level":"info"}'
    const secrets = {
      adminToken: canary('admin-token'),
      wrongAdminToken: canary('wrong-admin-token'),
      smtpPassword: canary('smtp-password'),
      signingKey: randomBytes(32).toString('base64url'),
      olderKey: randomBytes(32).toString('base64url'),
      password: canary('password'),
      wrongPassword: canary('wrong-password'),
      newPassword: canary('new-password'),
      mismatch: canary('mismatch'),
      setting: canary('setting'),
      cookie: canary('cookie'),
      forgedToken: randomBytes(32).toString('base64url'),
    }
    /** Carried for its owner, so it is stored and answered. */
    const state = canary('state')
    /** Not a secret setting: whoever sent it is told what came, and nobody else. */
    const mistyped = canary('port')
    const typed = {
      username: canary('username'),
      address: `${canary('address')}@nobody.example`,
      hostile: `${canary('hostile')}\r\n\u001b[31m\u2028{"level":"info","message":"${canary('m')}"}`,
    }
    const userAgent = `${canary('user-agent')} ${hostile} ${'x'.repeat(2_000)}`
    const forwarded = `${canary('forwarded')}, 10.0.0.1`
    const headers = { 'user-agent': userAgent, 'x-forwarded-for': forwarded }
    const answers: Answer[] = []
    const refused: Answer[] = []
    let database: FreshDatabase
    let proxy: MongoProxy
    let mail: MailServer
    let server: ExampleServer

    before(async function () {
      database = await freshDatabase()
      proxy = await startMongoProxy(database)
      let deferred = 0
      mail = await startMailServer({
        login: { username: 'mailer', password: secrets.smtpPassword },
        answer: (recipient) => {
          if (recipient.startsWith('refused')) return 'refuse'
          return recipient.startsWith('quoted') && deferred++ === 0 ? 'defer after data' : 'take'
        },
      })
      server = await startExampleServer({
        MONGODB_URI: proxy.uri,
        ADMIN_TOKEN: secrets.adminToken,
        SIGNING_KEYS: `${secrets.signingKey},${secrets.olderKey}`,
      })
    })

    after(async () => {
      await server?.kill()
      await mail?.close()
      await proxy?.close()
      await database?.drop()
    })

    async function keep(asked: Promise<Answer>, list = answers): Promise<Answer> {
      const answer = await asked
      list.push(answer)
      return answer
    }
    const url = (path: string) => `${server.baseUrl}/oauth2${path}`
    const post = (path: string, form: Record<string, string>, list = answers) =>
      keep(createUserAgent().post(url(path), form, headers), list)
    const get = (path: string, list = answers) =>
      keep(createUserAgent().get(url(path), headers), list)

    async function addUser(username: string, emailVerified: boolean) {
      const email = `${username}@example.com`
      await database.db.collection<{ _id: string }>('users').insertOne({
        _id: `id of ${username}`,
        username,
        email,
        email_verified: emailVerified,
        password_hash: await bcrypt.hash(secrets.password, 4),
        password_changed_at: null,
        disabled: false,
      } as never)
      return email
    }

    async function useAdminApi() {
      await putSettings(server, {
        ...smtpSettings(mail.port),
        smtp_username: 'mailer',
        smtp_password: secrets.smtpPassword,
        require_email_verification: 'true',
      })
      const agent = createUserAgent()
      const admin = `${server.baseUrl}/admin/api/settings`
      const bearer = (token: string) => ({ authorization: `Bearer ${token}`, ...headers })
      const json = { 'content-type': 'application/json' }
      const put = (body: string, token = secrets.adminToken) =>
        keep(agent.request('PUT', admin, { headers: { ...bearer(token), ...json }, body }))
      await keep(agent.get(admin, bearer(secrets.adminToken)))
      await keep(agent.get(admin, bearer(secrets.wrongAdminToken)))
      await keep(agent.get(`${admin}?access_token=${secrets.adminToken}`, headers))
      await keep(agent.get(`${admin}/${secrets.adminToken}`, headers))
      await put(JSON.stringify({ smtp_port: mistyped, smtp_password: `${secrets.setting}\0` }))
      await put(`{"smtp_host": "${secrets.setting}`)
      await put(JSON.stringify({ smtp_password: secrets.setting }), secrets.wrongAdminToken)
    }

    async function useForms(link: string) {
      const token = tokenOf(link)
      const form = { token, password: secrets.newPassword, confirm_password: secrets.newPassword }
      for (const identifier of Object.values(typed)) {
        await post('/forgot-password', { identifier, state })
        await post('/resend-verification', { username: identifier, state })
      }
      await post('/reset-password', { ...form, confirm_password: secrets.mismatch })
      await post('/reset-password', { ...form, token: secrets.forgedToken }, refused)
      await get(`/reset-password/${token}`, refused)
      await get(`/nothing-here?token=${token}`, refused)
      await get(`/verify-email?token=${token}&authorize_sig=${secrets.forgedToken}`, refused)
      const odd = { 'content-type': 'application/json', cookie: `c=${secrets.cookie}`, ...headers }
      for (const [method, path] of [
        ['POST', '/reset-password'],
        ['PUT', `/reset-password?token=${token}`],
        ['DELETE', `/verify-email?token=${token}`],
      ] as const) {
        const init = { headers: odd, body: JSON.stringify(form) }
        await keep(createUserAgent().request(method, url(path), init), refused)
      }
      const opened = `GET /oauth2/reset-password?token=${token}`
      await brokenRequest(`${opened} HTTP/1.1\r\nHost: a b\r\n\r\n`)
      await brokenRequest(`${opened} HTTP/9.9\r\n\u001b: ${token}\r\n\r\n`)
      expect((await post('/reset-password', form)).mode).to.equal('done')
      await post('/reset-password', form, refused)
    }

    const brokenRequest = (text: string) =>
      new Promise<void>((resolve) => {
        const socket = connect(server.port, '127.0.0.1', () => socket.end(text))
        socket.on('error', () => {}).on('close', () => resolve())
        socket.resume()
      })

    async function signIn(username: string, password: string) {
      const browser = createBrowser(server.baseUrl)
      const page = await keep(browser.visit('/demo/start'))
      const form = { ...page.hidden, username, password }
      return keep(browser.submit('/oauth2/login', form, headers))
    }

    async function withoutDatabase(links: string[]) {
      await proxy.sever()
      await Promise.all([
        ...links.map((link) => keep(createUserAgent().get(link, headers), refused)),
        ...Object.values(typed).map((identifier) => post('/forgot-password', { identifier })),
        get(`/auth?client_id=${state}&state=${state}`, refused),
      ])
      await proxy.restore()
      expect(refused.slice(-3).map(({ status }) => status)).to.include(503)
    }

    it('holds no token, password, key or typed identifier, and is JSON lines', async () => {
      const { db } = database
      await useAdminApi()
      const verified = await addUser('reader', true)
      const unverified = await addUser('unverified', false)
      const quoted = await addUser('quoted', true)
      await addUser('refused', true)
      await forgot(server, 'reader')
      await forgot(server, 'quoted')
      await forgot(server, 'refused')
      const reset = await mail.mailTo(verified)
      await signIn('reader', secrets.wrongPassword)
      await signIn(typed.username, secrets.wrongPassword)
      expect((await signIn('unverified', secrets.password)).mode).to.equal('blocked')
      const verification = await mail.mailTo(unverified)
      await useForms(reset.link)
      const tampered = verification.link.replace(/state=[^&]*/, `state=${state}`)
      await keep(createUserAgent().get(tampered, headers), refused)
      await mail.mailTo(quoted)
      await db.collection<{ _id: string }>('client').insertOne({
        _id: 'broken',
        payload: { client_id: 'broken', redirect_uris: state },
      } as never)
      await get(`/auth?client_id=broken&state=${state}&login_hint=${typed.username}`, refused)
      await withoutDatabase([verification.link, reset.link])
      const verify = async () => (await createUserAgent().get(verification.link, headers)).status
      await eventually('the database is back', async () => (await verify()) === 302)
      // A mail that was being sent when the database went is taken up again after a minute.
      await outboxIsQuiet({ db }, 90_000)

      const lines = linesOf(server.output())
      const tokens = Object.fromEntries([...mail.tokensSeen()].map((token) => [token, token]))
      expect(Object.keys(tokens)).to.have.length(9)
      expect(lines.filter(({ reason }) => reason === 'ERR_MAIL_FAILED')).to.have.length(1)
      expect(lines.filter(({ reason }) => reason === 'ERR_MAIL_REFUSED')).to.have.length(1)
      expect(lines.map(({ message }) => message)).to.include('the provider failed')
      expect(lines.filter(({ code }) => code === 'ERR_STORE_UNAVAILABLE')).not.to.deep.equal([])

      const log = lines.map((line) => JSON.stringify(line)).join('\n')
      const stored = await dumpOf(database)
      const args = await readFile(`/proc/${server.pid}/cmdline`, 'utf8').catch(() => '')
      for (const [where, text] of Object.entries({ log, stored, args })) {
        expect(found(text, { ...secrets, ...typed, ...tokens, mistyped }), where).to.deep.equal([])
      }
      const notNotified = { state, userAgent: userAgent.slice(0, 20), forwarded }
      expect(found(log, notNotified), 'the log').to.deep.equal([])
      expect(found(stored, { forwarded: forwarded.slice(0, 20) }), 'stored').to.deep.equal([])
      expect(found(textOf(answers), secrets), 'the answers').to.deep.equal([])
      expect(found(textOf(refused), { ...secrets, ...tokens }), 'the refusals').to.deep.equal([])
      for (const { text } of [...answers, ...refused]) {
        expect(text).not.to.match(/^ +at |node_modules|MongoServerError|file:\/\//m)
      }
    })

    it('tells the user agent in the audit log alone, cut and as it came', async () => {
      const events = await database.db.collection('audit_events').find().toArray()
      const agents = events.map((event) => String(event['user_agent'] ?? ''))
      expect(agents.filter((agent) => agent.includes('canary-user-agent'))).not.to.deep.equal([])
      for (const agent of agents) expect(agent.length).to.be.at.most(256)
      const failed = events.filter(({ type }) => type === 'admin_auth_failed')
      const reasons = ['no_token', 'no_token', 'wrong_token', 'wrong_token']
      expect(failed.map(({ reason }) => reason)).to.have.members(reasons)
    })

    function textOf(list: Answer[]): string {
      const whole = ({ text, headers: sent }: Answer) => JSON.stringify([text, [...sent]])
      return list.map(whole).join('\n')
    }

    /** The names of those that a text holds, as they are or encoded. */
    function found(text: string, wanted: Record<string, string>): string[] {
      return Object.entries(wanted)
        .filter(([, value]) => formsOf(value).some((form) => text.includes(form)))
        .map(([name]) => name)
    }

    function formsOf(value: string): string[] {
      const bytes = Buffer.from(value)
      const inJson = JSON.stringify(value).slice(1, -1)
      const asBytes = [bytes.toString('hex'), bytes.toString('base64url')]
      return [value, inJson, encodeURIComponent(value), ...asBytes]
    }
  },
)
