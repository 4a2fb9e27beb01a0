import { randomBytes } from 'node:crypto'
import type { RequestListener } from 'node:http'
import bcrypt from 'bcrypt'
import { expect } from 'chai'
import { memoryMailbox } from '../../src/index.ts'
import type * as AdminApi from '../../src/admin/client.ts'
import { createAdminClient, type AdminClient } from '../../src/admin/client.ts'
import { instead } from '../support/records.ts'
import {
  adminOf,
  codeOf,
  expectAudited,
  outcomeOf,
  problemOf,
  stepOf,
  suiteAdmin,
} from '../support/admin.ts'
import { cliOf, expectSaid } from '../support/cli.ts'
import { eventually } from '../support/eventually.ts'
import { answers, startFaultySmtp } from '../support/mail-server.ts'
import { SHORT_WAITS, suiteHarnessBehindProxy } from '../support/mongo-proxy.ts'
import {
  ADMIN_TOKEN,
  startHarness,
  type Harness,
  type HarnessOptions,
  suiteHarness,
} from '../support/harness.ts'
import { describeWithMongo } from '../support/mongod.ts'
import { padding, startRangeServer, serve } from '../support/serve.ts'
import { moveTime } from '../support/time.ts'
import { keptInMemory } from '../support/kept.ts'
import { systemClock } from '../../src/clock.ts'

const OWN_STEPS = 'keys database indexes clock secrets settings recommended outbox base_url'.split(
  ' ',
)
const MAIL_STEPS = 'configuration dns connect tls auth from rcpt data'.split(' ')
const TO = 'ann@users.example'
const CANARY = 'canary-of-the-password'

/** What every doctor of a store in memory says. */
const VOLATILE = { indexes: 'warning' }

/** The report, once it is known to be complete, in order, and true to itself. */
async function reportOf(admin: AdminClient, to?: string) {
  const { ok, checks } = await admin.runDoctor(to === undefined ? {} : { to })
  expect(checks.map(({ step }) => step)).to.deep.equal([...OWN_STEPS, ...MAIL_STEPS])
  expect(ok).to.equal(checks.every(({ status }) => status !== 'failed'))
  for (const { status, message, advice } of checks) {
    expect(message).to.match(/^\S.*\S$/)
    if (['failed', 'warning', 'advice'].includes(status)) expect(advice).to.match(/^\S.*\.$/)
  }
  const text = JSON.stringify(checks)
  for (const secret of [ADMIN_TOKEN, CANARY]) expect(text).to.not.include(secret)
  const loud = checks.filter(({ status }) => ['failed', 'warning'].includes(status))
  return {
    ok,
    text,
    /** What is not ok of the server itself, and of the way to the mail server. */
    complaints: Object.fromEntries(loud.map(({ step, status }) => [step, status])),
    check: (step: string): AdminApi.Check => stepOf(checks, step),
  }
}

/** A harness for one look, closed after. */
async function within<T>(options: HarnessOptions, work: (h: Harness) => Promise<T>): Promise<T> {
  const h = await startHarness({ mayLogErrors: true, ...options })
  try {
    return await work(h)
  } finally {
    await h.close()
  }
}

describe('The doctor', () => {
  let aheadMs = 0
  /** `undefined`: nobody may look. */
  let wrongIndexes: string[] | undefined = []
  const store = keptInMemory(systemClock, ({ now, inspect }) => ({
    now: async () => new Date((await now()).getTime() - aheadMs),
    async inspect() {
      if (wrongIndexes) return { ...(await inspect()), wrongIndexes }
      throw Object.assign(new Error(`not allowed with ${CANARY}`), { code: 13 })
    },
  }))
  const h = suiteHarness({ flows: { store: store.records } })
  const admin = suiteAdmin(h)

  afterEach(async () => {
    aheadMs = 0
    wrongIndexes = []
    expect((await reportOf(admin, TO)).complaints).to.deep.equal(VOLATILE)
  })

  it('finds everything in order, and asks the mail server whether it takes the address, where one is given', async () => {
    const mails = h.mail.mails.length
    const { ok, check } = await reportOf(admin, TO)
    expect(check('rcpt')).to.include({ status: 'ok', reply: '250 Accepted' })
    expect(check('data').status).to.equal('skipped')
    expect(h.mail.mails).to.have.length(mails)
    const without = await reportOf(admin)
    expect([ok, without.ok]).to.deep.equal([true, true])
    expect(without.check('from').status).to.equal('ok')
    expect(without.check('rcpt').status).to.equal('skipped')
  })

  it('advises what is recommended, and that fails nothing', async () => {
    const recommended: [name: string, value: string, byDefault: string][] = [
      ['email_link_confirmation', 'other_browser', 'off'],
      ['reset_requires_verified_email', 'true', 'false'],
      ['resend_cooldown', '1m', '0s'],
      ['password_blocklist', 'common', 'off'],
      ['validation_min_password_length', '15', '8'],
    ]
    const advised = async () => {
      const report = await reportOf(admin)
      expect(report.ok).to.equal(true)
      return report.check('recommended')
    }
    const { status, message, advice } = await advised()
    expect(status).to.equal('advice')
    for (const [name] of recommended) expect(message).to.include(name)
    expect(advice).to.include('settings apply recommended --dry-run')
    await h.put(Object.fromEntries(recommended))
    expect((await advised()).status).to.equal('ok')
    await h.put({ resend_cooldown: '29s' })
    const again = await advised()
    expect(again.message).to.include('resend_cooldown').and.not.include('email')
    await h.put(Object.fromEntries(recommended.map(([name, , value]) => [name, value])))
  })

  it('warns of a stored hash so dear that its account can be told by time, once that was compared', () =>
    within({}, async (h) => {
      const compare = async (cost: number) => {
        const passwordHash = await bcrypt.hash('x', cost)
        await h.flows.verifyPassword({ passwordHash, disabled: false }, 'wrong')
        const { checks } = await adminOf(h).runDoctor({})
        return checks.find(({ step }) => step === 'stored_hashes')
      }
      expect(await compare(6)).to.equal(undefined)
      const check = await compare(7)
      expect(check).to.include({ status: 'warning' })
      expect(check?.message).to.include('has the cost 7, and bcryptCost is 4')
    }))

  it('asks the range service of password_blocklist pwned, and says what it answers', async () => {
    const ranges = await startRangeServer(['password'])
    const said = async () => {
      const { checks } = await admin.runDoctor({})
      return checks.find(({ step }) => step === 'range_service')
    }
    expect(await said()).to.equal(undefined)
    await h.put({ password_blocklist: 'pwned', password_range_url: ranges.url })
    expect(await said()).to.include({ status: 'ok' })
    ranges.answer = (_req, res) => res.end(padding().join('\n'))
    expect(await said()).to.include({ status: 'warning' })
    await ranges.close()
    const down = await said()
    expect(down).to.include({ status: 'warning' })
    expect(down?.message).to.include('ECONNREFUSED')
    expect(down?.advice).to.include('password_range_url')
    await h.put({ password_blocklist: 'off', password_range_url: '' })
  })

  for (const [ms, status, said] of [
    [900, 'ok', /agree/],
    [5_000, 'warning', /ahead of the database/],
    [-5_000, 'warning', /behind the database/],
    [120_000, 'failed', /120\.\d s ahead of the database/],
    [-120_000, 'failed', /behind the database/],
  ] as const) {
    it(`says ${status} of a clock that is ${ms} ms ahead of the database`, async () => {
      aheadMs = ms
      const report = await reportOf(admin, TO)
      expect(report.check('clock').status).to.equal(status)
      expect(report.check('clock').message).to.match(said)
      const clock = status !== 'ok' && { clock: status }
      expect(report.complaints).to.deep.equal({ ...VOLATILE, ...clock })
    })
  }

  // Which ones these are on MongoDB is in test/store/mongodb-commands.test.ts.
  it('names indexes that are missing or another one, says so where it may not look, and goes on', async () => {
    for (const [indexes, said] of [
      [['mail_outbox.due'], 'mail_outbox.due'],
      [undefined, ''],
    ] as const) {
      wrongIndexes = indexes && [...indexes]
      const { check, complaints } = await reportOf(admin, TO)
      expect(complaints).to.deep.equal({ indexes: 'failed' })
      expect(check('indexes').message).to.include(said)
      expect(check('outbox').status).to.equal('ok')
    }
  })

  it('counts dead letters', async () => {
    const { id } = await h.addUser({ username: 'ann', disabled: true })
    for (const count of [1, 2]) {
      const { mail_id } = await admin.sendReset({ id })
      await outcomeOf(h, mail_id, 'dead')
      const check = (await reportOf(admin)).check('outbox')
      expect(check).to.include({ status: 'warning', message: `Dead letters: ${count}.` })
    }
    expect(await admin.purgeMails({ all_dead: true })).to.deep.equal({ changed: 2 })
  })
})

// The steps of the way to the mail server are in test/mail/check.test.ts.
describe('The doctor names the failing step:', () => {
  const h = suiteHarness()
  const admin = suiteAdmin(h)

  it('a database that does not answer, and keeps nobody waiting for longer than five seconds', async () => {
    const hangs = () => () => new Promise<never>(() => {})
    const report = await instead(h.records, 'now', hangs, async () => {
      let given: Awaited<ReturnType<typeof reportOf>> | undefined
      void reportOf(admin).then((each) => (given = each))
      return eventually('the doctor gives up', async () => {
        await moveTime(5_000)
        return given
      })
    })
    expect(report.check('database')).to.include({ status: 'failed' })
    expect(report.check('database').message).to.include('ERR_STORE_UNAVAILABLE')
    expect((await reportOf(admin)).check('database').status).to.equal('ok')
  })

  it('a key of the ring that is too short, and an admin token that can be guessed', async () => {
    await within({ flows: { secrets: [randomBytes(32), randomBytes(16)] } }, async (weak) => {
      const { check, complaints } = await reportOf(adminOf(weak))
      expect(check('keys').message).to.equal('A key of the ring has fewer than 32 bytes.')
      expect(complaints).to.deep.equal({ ...VOLATILE, keys: 'failed' })
    })
    await within({ flows: { adminToken: ['a-guess', ADMIN_TOKEN] } }, async (weak) => {
      const { check, text } = await reportOf(createAdminClient(weak.baseUrl, 'a-guess'))
      const message = 'An admin token has fewer than 32 characters.'
      expect(check('keys')).to.include({ status: 'failed', message })
      expect(text).to.not.include('a-guess')
    })
  })

  it('SMTP that is not configured, which is a warning with a development mailbox', async () => {
    await within({ flows: { initialSettings: {} } }, async (bare) => {
      const { check } = await reportOf(adminOf(bare), TO)
      expect(check('configuration').status).to.equal('failed')
      expect(check('configuration').message).to.match(/smtp_host.*smtp_port.*smtp_from/)
      for (const step of MAIL_STEPS.slice(1)) expect(check(step).status).to.equal('skipped')
    })
    const flows = { initialSettings: {}, transport: memoryMailbox() }
    await within({ flows }, async (development) => {
      const { ok, check, complaints } = await reportOf(adminOf(development), TO)
      expect(ok).to.equal(true)
      expect(check('configuration').message).to.match(/development mailbox/)
      expect(complaints).to.deep.equal({ ...VOLATILE, configuration: 'warning' })
    })
  })

  it('a base URL that is not ours, or where nobody answers', async () => {
    const issuer = JSON.stringify({ issuer: 'https://else.example' })
    const location = h.oauthUrl
    const elsewhere: [what: string, said: RegExp, listener: RequestListener][] = [
      ["somebody else's issuer", /not this issuer/, (_req, res) => res.end(issuer)],
      ['no issuer at all', /not this issuer/, (_req, res) => res.end('<h1>Hello</h1>')],
      ['null', /not this issuer/, (_req, res) => res.end('null')],
      ['not found', /answers 404/, (_req, res) => res.writeHead(404).end('{}')],
      ['a redirect', /answers 302/, (_req, res) => res.writeHead(302, { location }).end()],
      ['a dropped connection', /cannot be reached/, (req) => req.socket.destroy()],
    ]
    let listener: RequestListener = () => {}
    const { url, close } = await serve((req, res) => listener(req, res))
    await within({ flows: { baseUrl: url } }, async (lost) => {
      async function expectLost(said: RegExp, what: string) {
        const { check, complaints } = await reportOf(adminOf(lost))
        expect(check('base_url').message, what).to.match(said)
        expect(complaints, what).to.deep.equal({ ...VOLATILE, base_url: 'failed' })
      }
      for (const [what, said, answer] of elsewhere) {
        listener = answer
        await expectLost(said, what)
      }
      await close()
      await expectLost(/cannot be reached from this server \(ECONNREFUSED\)/, 'nobody')
    })
  })
})

describeWithMongo('While the database is gone [full]', () => {
  const logged: string[] = []
  const { h, proxy } = suiteHarnessBehindProxy(SHORT_WAITS, {
    flows: { log: (level, message) => logged.push(`${level} ${message}`) },
    mayLogErrors: true,
  })
  const admin = suiteAdmin(h)
  const cli = cliOf(h)

  beforeEach(async () => {
    const { ok, complaints } = await reportOf(admin, TO)
    expect([ok, complaints]).to.deep.equal([true, {}])
  })
  afterEach(async () => {
    await proxy.restore()
    await eventually('the driver finds the database again', async () => {
      return (await reportOf(admin, TO)).check('outbox').status === 'ok'
    })
    await cli.done(['doctor'])
  })

  for (const outage of ['sever', 'stall'] as const) {
    it(`the doctor reports all the rest (${outage}), also on the command line: exit 1`, async () => {
      await proxy[outage]()
      const { check, complaints, text } = await reportOf(admin, TO)
      expect(complaints).to.deep.equal({ database: 'failed' })
      for (const step of OWN_STEPS.filter((each) => !['database', 'base_url'].includes(each)))
        expect(check(step).status).to.equal('skipped')
      for (const step of ['base_url', 'configuration', 'connect', 'rcpt'])
        expect(check(step).status).to.equal('ok')
      expect(text).to.not.include(proxy.uri)
      const { stdout } = await cli.ended(['doctor'], 1)
      const accepted = /^ok +token: the token is accepted$/m
      expectSaid(stdout, /^ok +admin_api: /m, accepted, /^FAILED +database: /m)
    })
  }

  it('a wrong token is told all the same, and the log says that it was not recorded (7)', async () => {
    const before = (await admin.getSettings()).answer
    await proxy.sever()
    for (const headers of [{}, { authorization: 'Bearer canary-guess' }]) {
      const refused = await fetch(`${h.baseUrl}/admin/api/settings`, { headers })
      expect(refused.headers.get('www-authenticate')).to.match(/^Bearer/)
      await problemOf(refused, 401, 'unauthorized')
    }
    const wrong = await cli.ended(['doctor'], 4, { env: { ACCOUNT_FLOWS_TOKEN: 'wrong' } })
    expect(wrong.stdout).to.match(/^FAILED +token: /m)
    expect((await codeOf(admin.putSettings({ resend_cooldown: '1s' })))[0]).to.equal(503)
    expect(logged).to.include('error a failed admin authentication was not recorded')
    expect(logged.join()).not.to.include('canary')
    await proxy.restore()
    const now = await eventually('the settings are read again', () =>
      admin.getSettings().catch(() => undefined),
    )
    expect(now.answer).to.deep.equal(before)
  })
})

// Each step, and what is hidden of the replies, is in test/mail/check.test.ts.
describe('A test mail (5)', () => {
  const secrets = ['d'.repeat(43)]
  const h = suiteHarness({ flows: { secrets } })
  const admin = suiteAdmin(h)

  /** The report, once every step is there in its order. */
  async function tested(): Promise<AdminApi.Check[]> {
    const { ok, checks } = await admin.testMail({ to: TO })
    expect(checks.map(({ step }) => step)).to.deep.equal(MAIL_STEPS)
    expect(ok).to.equal(checks.every(({ status }) => status !== 'failed'))
    return checks
  }

  it('arrives with the settings in force, tells each step, and is audited without the address; it is in no outbox, and has no link; one that fails says why, with the reply of the server, and what to do', async () => {
    const reply = '554 5.6.0 We do not like the words'
    const refusal = answers('dot', reply)
    let fails = false
    const smtp = await startFaultySmtp({
      offersAuth: true,
      fault: (...at) => (fails ? refusal(...at) : undefined),
    })
    const login = { smtp_username: 'mailer', smtp_password: CANARY }
    await h.put({ smtp_port: String(smtp.port), smtp_from: 'service@idp.example', ...login })
    for (const { status } of await tested()) expect(status).to.equal('ok')
    expect(smtp.mails).to.have.length(1)
    const [mail] = smtp.mails
    expect(mail).to.deep.include({ from: 'service@idp.example', user: 'mailer', to: [TO] })
    expect(mail?.raw).to.match(/^From: service@idp\.example\r?$/m)
    expect(mail?.raw).to.match(/^Subject: Test email\r?$/m)
    expect(mail?.raw).to.not.match(/https?:|token/)
    expect(smtp.logins).to.deep.equal([{ user: 'mailer', password: CANARY, isSecure: false }])
    expect(JSON.stringify(expectAudited(h, 'mail_test'))).to.not.include(TO)
    expect((await admin.listOutbox()).mails).to.deep.equal([])
    expect((await reportOf(admin, TO)).check('auth').status).to.equal('ok')
    fails = true
    const failed = (await tested()).at(-1)
    expect(failed).to.include({ step: 'data', status: 'failed', reply })
    expect(failed?.advice).to.match(/^\S.*\.$/)
    await admin.unsetSettings(['smtp_username', 'smtp_password'])
    await smtp.close()
  })

  it('uses settings that another process changed just now', async () => {
    const { users } = h
    const other = await startHarness({
      flows: { store: h.records, users, secrets, initialSettings: {} },
    })
    const smtp = await startFaultySmtp()
    for (const from of ['one@idp.example', 'two@idp.example', 'three@idp.example']) {
      await other.put({ smtp_port: String(smtp.port), smtp_from: from })
      await tested()
      expect(smtp.mails.at(-1)?.from).to.equal(from)
    }
    await other.put({ smtp_port: String(h.mail.port), smtp_from: 'four@idp.example' })
    expect(JSON.stringify(await admin.runDoctor())).to.include('mail from four@idp.example')
    await other.close()
    await smtp.close()
  })
})

describe('A preview of a mail (5)', () => {
  const h = suiteHarness()
  const admin = suiteAdmin(h)

  it('of signs-in-elsewhere has subject, text and HTML, and no link', async () => {
    const mail = await admin.previewMail({ template: 'signs-in-elsewhere' })
    expect(mail.subject).to.match(/^\S.*\S$/)
    for (const part of [mail.text, mail.html]) {
      expect(part).to.include('You sign in with Google')
      expect(part).to.not.match(/https?:|href|token|undefined|\[object/)
    }
    expect(h.mail.mails).to.deep.equal([])
  })

  for (const [template, page] of [
    ['password-reset', '/reset-password'],
    ['email-verification', '/verify-email'],
    ['password-changed', '/forgot-password'],
    ['invitation', '/accept-invitation'],
  ] as const) {
    it(`of ${template} has subject, text and HTML, and a link without a token`, async () => {
      const events = h.events.length
      const mail = await admin.previewMail({ template })
      expect(mail.subject).to.match(/^\S.*\S$/)
      for (const part of [mail.text, mail.html]) {
        expect(part).to.include(h.oauthUrl + page)
        expect(part).to.not.match(/token|authorize_sig|undefined|\[object/)
      }
      expect(mail.html).to.match(/<html lang="en"/)
      const { subject } = await admin.previewMail({ template, locale: 'en' })
      expect(subject).to.equal(mail.subject)
      expect(h.events).to.have.length(events)
      expect(h.mail.mails).to.deep.equal([])
    })
  }

  it('of email-changed has no link, as the mail has none', async () => {
    const { subject, text, html } = await admin.previewMail({ template: 'email-changed' })
    expect(subject).to.equal('Your email address was changed')
    for (const part of [text, html]) expect(part).not.to.match(/https?:|undefined|\[object/)
  })
})
