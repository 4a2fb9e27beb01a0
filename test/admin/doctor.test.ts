import { randomBytes } from 'node:crypto'
import type { RequestListener } from 'node:http'
import bcrypt from 'bcrypt'
import { expect } from 'chai'
import { MongoClient } from 'mongodb'
import {
  type AdminApi,
  type AdminClient,
  createAdminClient,
  memoryMailbox,
  memoryStore,
} from '../../src/index.ts'
import {
  actionsOf,
  adminOf,
  codeOf,
  expectAudited,
  outcomeOf,
  refusalOf,
  suiteAdmin,
} from '../support/admin-calls.ts'
import { eventually } from '../support/eventually.ts'
import { answers, type FaultySmtp, startFaultySmtp, type Step } from '../support/mail-server.ts'
import { ADMIN_TOKEN, type Harness, type HarnessOptions, startHarness } from '../support/harness.ts'
import { startMongoProxy } from '../support/mongo-proxy.ts'
import { describeWithMongo, freshDatabase } from '../support/mongod.ts'
import { databaseOf } from '../support/observe.ts'
import { padding, startRangeServer } from '../support/range-server.ts'
import { serve } from '../support/serve.ts'
import { suiteHarness } from '../support/suite-harness.ts'

const OWN_STEPS = [
  'keys',
  'database',
  'indexes',
  'clock',
  'secrets',
  'settings',
  'recommended',
  'outbox',
  'base_url',
]
const MAIL_STEPS = ['configuration', 'dns', 'connect', 'tls', 'auth', 'from', 'rcpt', 'data']
const TO = 'ann@users.example'
const CANARY = 'canary-of-the-password'

/** The report, once it is known to be complete, in order, and true to itself. */
async function reportOf(admin: AdminClient, to?: string): Promise<AdminApi.CheckReport> {
  const report = await admin.runDoctor(to === undefined ? {} : { to })
  expect(report.checks.map(({ step }) => step)).to.deep.equal([...OWN_STEPS, ...MAIL_STEPS])
  expect(report.ok).to.equal(report.checks.every(({ status }) => status !== 'failed'))
  for (const { status, message, advice } of report.checks) {
    expect(message).to.match(/^\S.*\S$/)
    if (['failed', 'warning', 'advice'].includes(status)) expect(advice).to.match(/^\S.*\.$/)
  }
  const text = JSON.stringify(report)
  for (const secret of [ADMIN_TOKEN, CANARY]) expect(text).to.not.include(secret)
  return report
}

function checkOf({ checks }: AdminApi.CheckReport, step: string): AdminApi.Check {
  const found = checks.find((check) => check.step === step)
  if (!found) throw new Error(`no step ${step}`)
  return found
}

/** What is not ok of the server itself, and of the way to the mail server. */
function complaintsOf({ checks }: AdminApi.CheckReport): Record<string, string> {
  const isQuiet = (status: string) => ['ok', 'advice', 'skipped'].includes(status)
  const loud = checks.filter(({ status }) => !isQuiet(status))
  return Object.fromEntries(loud.map(({ step, status }) => [step, status]))
}

/** A h for one look, closed after. */
async function within<T>(options: HarnessOptions, work: (h: Harness) => Promise<T>): Promise<T> {
  const h = await startHarness({ mayLogErrors: true, ...options })
  try {
    return await work(h)
  } finally {
    await h.close()
  }
}

/** What every doctor of a store in memory says. */
const VOLATILE = { indexes: 'warning' }

describe('The doctor', () => {
  const kept = memoryStore()
  let aheadMs = 0
  let isInspectable = true
  const h = suiteHarness({
    flows: {
      store: {
        ...kept,
        now: async () => new Date((await kept.now()).getTime() - aheadMs),
        async inspect() {
          if (isInspectable && kept.inspect) return kept.inspect()
          throw Object.assign(new Error(`not allowed with ${CANARY}`), { code: 13 })
        },
      },
    },
  })
  const admin = suiteAdmin(h)

  afterEach(async () => {
    ;[aheadMs, isInspectable] = [0, true]
    expect(complaintsOf(await reportOf(admin, TO))).to.deep.equal(VOLATILE)
  })

  it('finds everything in order, and asks the mail server whether it takes the address', async () => {
    const mails = h.mail.mails.length
    const report = await reportOf(admin, TO)
    expect(report.ok).to.equal(true)
    expect(complaintsOf(report)).to.deep.equal(VOLATILE)
    expect(checkOf(report, 'rcpt')).to.include({ status: 'ok', reply: '250 Accepted' })
    expect(checkOf(report, 'data').status).to.equal('skipped')
    expect(h.mail.mails).to.have.length(mails)
  })

  it('advises what is recommended, and that fails nothing', async () => {
    const asRecommended = {
      email_link_confirmation: 'other_browser',
      reset_requires_verified_email: 'true',
      resend_cooldown: '1m',
      password_blocklist: 'common',
      validation_min_password_length: '15',
    }
    const defaults = {
      email_link_confirmation: 'off',
      reset_requires_verified_email: 'false',
      resend_cooldown: '0s',
      password_blocklist: 'off',
      validation_min_password_length: '8',
    }
    const advised = async () => {
      const report = await reportOf(admin)
      expect(report.ok).to.equal(true)
      return checkOf(report, 'recommended')
    }
    const { status, message, advice } = await advised()
    expect(status).to.equal('advice')
    for (const name of Object.keys(defaults)) expect(message).to.include(name)
    expect(advice).to.include('settings apply recommended --dry-run')
    await h.put(asRecommended)
    expect((await advised()).status).to.equal('ok')
    await h.put({ resend_cooldown: '29s' })
    expect((await advised()).message)
      .to.include('resend_cooldown')
      .and.not.include('email')
    await h.put(defaults)
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

  it('asks about no recipient where none is given', async () => {
    const report = await reportOf(admin)
    expect(report.ok).to.equal(true)
    expect(checkOf(report, 'from').status).to.equal('ok')
    expect(checkOf(report, 'rcpt').status).to.equal('skipped')
  })

  it('refuses to ask about what is no address: 400', async () => {
    for (const to of ['ann', 'a@b.example, c@d.example', 'ann@users.example\r\nRCPT', '']) {
      expect(await codeOf(admin.runDoctor({ to }))).to.deep.equal([400, 'invalid_request'])
    }
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
      expect(checkOf(report, 'clock').status).to.equal(status)
      expect(checkOf(report, 'clock').message).to.match(said)
      expect(complaintsOf(report)).to.deep.equal({
        ...VOLATILE,
        ...(status !== 'ok' && { clock: status }),
      })
    })
  }

  it('says so where it may not look at the indexes, and goes on', async () => {
    isInspectable = false
    const report = await reportOf(admin, TO)
    expect(complaintsOf(report)).to.deep.equal({ indexes: 'failed' })
    expect(checkOf(report, 'outbox').status).to.equal('ok')
  })

  it('counts dead letters', async () => {
    const { id } = await h.addUser({ username: 'ann', disabled: true })
    for (const count of [1, 2]) {
      const { mail_id } = await admin.sendReset({ id })
      await outcomeOf(h, mail_id, 'dead')
      const check = checkOf(await reportOf(admin), 'outbox')
      expect(check).to.include({ status: 'warning', message: `Dead letters: ${count}.` })
    }
    expect(await admin.purgeMails({ all_dead: true })).to.deep.equal({ changed: 2 })
  })

  it('tells secrets that an old key sealed, and those that no key opens, until they are mended', async () => {
    const [old, next] = [randomBytes(32), randomBytes(32)]
    const shared = memoryStore()
    const process = (ring: Buffer[], work: (admin: AdminClient) => Promise<unknown>) =>
      within({ flows: { secrets: ring, store: shared } }, (each) => work(adminOf(each)))
    const secretsOf = async (asked: AdminClient) => checkOf(await reportOf(asked), 'secrets')
    await process([old], (first) =>
      first.putSettings({ smtp_username: 'mailer', smtp_password: CANARY }),
    )
    await process([next], async (second) => {
      const check = await secretsOf(second)
      expect(check.status).to.equal('failed')
      expect(check.message).to.include('smtp_password')
    })
    await process([next, old], async (both) => {
      const check = await secretsOf(both)
      expect(check.status).to.equal('warning')
      expect(check.message).to.include('smtp_password')
      expect((await both.rotateKeys()).resealed).to.deep.equal(['smtp_password'])
      expect((await secretsOf(both)).status).to.equal('ok')
    })
    await process([next], async (mended) => {
      expect((await secretsOf(mended)).status).to.equal('ok')
    })
  })
})

describe('The doctor names the failing step:', () => {
  const h = suiteHarness()
  const admin = suiteAdmin(h)

  it('a key of the ring that is too short', () =>
    within({ flows: { secrets: [randomBytes(32), randomBytes(16)] } }, async (weak) => {
      const report = await reportOf(adminOf(weak))
      expect(checkOf(report, 'keys')).to.include({
        status: 'failed',
        message: 'A key of the ring has fewer than 32 bytes.',
      })
      expect(complaintsOf(report)).to.deep.equal({ keys: 'failed', indexes: 'warning' })
    }))

  it('an admin token that can be guessed', async () => {
    const adminToken = ['a-guess', ADMIN_TOKEN]
    await within({ flows: { adminToken } }, async (weak) => {
      const report = await reportOf(createAdminClient(weak.baseUrl, 'a-guess'))
      expect(checkOf(report, 'keys')).to.include({
        status: 'failed',
        message: 'An admin token has fewer than 32 characters.',
      })
      expect(JSON.stringify(report)).to.not.include('a-guess')
    })
  })

  it('SMTP that is not configured, which is a warning with a development mailbox', async () => {
    await within({ flows: { initialSettings: {} } }, async (bare) => {
      const report = await reportOf(adminOf(bare), TO)
      expect(checkOf(report, 'configuration').status).to.equal('failed')
      expect(checkOf(report, 'configuration').message).to.match(/smtp_host.*smtp_port.*smtp_from/)
      for (const step of MAIL_STEPS.slice(1)) {
        expect(checkOf(report, step).status).to.equal('skipped')
      }
    })
    const flows = { initialSettings: {}, transport: memoryMailbox() }
    await within({ flows }, async (development) => {
      const report = await reportOf(adminOf(development), TO)
      expect(report.ok).to.equal(true)
      expect(checkOf(report, 'configuration').message).to.match(/development mailbox/)
      expect(complaintsOf(report)).to.deep.equal({ indexes: 'warning', configuration: 'warning' })
    })
  })

  it('a base URL that is not ours, or where nobody answers', async () => {
    const elsewhere: Record<string, [said: RegExp, listener: RequestListener]> = {
      "somebody else's issuer": [
        /not this issuer/,
        (_req, res) => res.end(JSON.stringify({ issuer: 'https://else.example' })),
      ],
      'no issuer at all': [/not this issuer/, (_req, res) => res.end('<h1>Hello</h1>')],
      null: [/not this issuer/, (_req, res) => res.end('null')],
      'not found': [/answers 404/, (_req, res) => res.writeHead(404).end('{}')],
      'a redirect': [
        /answers 302/,
        (_req, res) => res.writeHead(302, { location: h.oauthUrl }).end(),
      ],
      'a dropped connection': [/cannot be reached/, (req) => req.socket.destroy()],
    }
    let listener: RequestListener = () => {}
    const { url, close } = await serve((req, res) => listener(req, res))
    await within({ flows: { baseUrl: url } }, async (lost) => {
      async function expectLost(said: RegExp, what: string) {
        const report = await reportOf(adminOf(lost))
        const { status, message } = checkOf(report, 'base_url')
        expect([status, said.test(message)], `${what}: ${message}`).to.deep.equal(['failed', true])
        expect(complaintsOf(report)).to.deep.equal({ ...VOLATILE, base_url: 'failed' })
      }
      for (const [what, [said, answer]] of Object.entries(elsewhere)) {
        listener = answer
        await expectLost(said, what)
      }
      await close()
      await expectLost(/cannot be reached from this server \(ECONNREFUSED\)/, 'nobody')
    })
  })

  // Every other step is in test/smtp/check.test.ts.
  it('of the way to the mail server: the recipient, with the reply of the server', async () => {
    const reply = '550 5.1.1 Nobody here has this name'
    const smtp = await startFaultySmtp({ offersAuth: true, fault: answers('RCPT', reply) })
    const login = { smtp_username: 'mailer', smtp_password: CANARY }
    await h.put({ smtp_port: String(smtp.port), ...login })
    const report = await reportOf(admin, TO)
    expect(checkOf(report, 'rcpt')).to.include({ status: 'failed', reply })
    expect(checkOf(report, 'data').status).to.equal('skipped')
    for (const each of OWN_STEPS) expect(checkOf(report, each).status).to.not.equal('failed')
    await h.put({ smtp_port: String(h.mail.port) })
    await admin.unsetSettings(['smtp_username', 'smtp_password'])
    expect((await reportOf(admin, TO)).ok).to.equal(true)
    await smtp.close()
  })
})

describeWithMongo('The doctor on MongoDB [full]', () => {
  it('names indexes that are missing or another one, until start() made them anew', () =>
    within({ technology: 'mongodb' }, async (h) => {
      const admin = adminOf(h)
      expect(complaintsOf(await reportOf(admin, TO))).to.deep.equal({})
      const outbox = databaseOf(h).collection('mail_outbox')
      const names = (await outbox.indexes()).map(({ name = '' }) => name)
      const dropped = names.find((name) => name !== '_id_') ?? ''
      await outbox.dropIndex(dropped)
      const missing = checkOf(await reportOf(admin, TO), 'indexes')
      expect(missing.status).to.equal('failed')
      expect(missing.message).to.include(`mail_outbox.${dropped}`)
      await outbox.createIndex({ another: 1 }, { name: dropped })
      expect(checkOf(await reportOf(admin, TO), 'indexes').message).to.equal(missing.message)
      await outbox.dropIndex(dropped)
      await h.store.start()
      expect((await reportOf(admin, TO)).ok).to.equal(true)
    }))

  it('reports all the rest while the database is gone [full]', async () => {
    const fresh = await freshDatabase()
    const proxy = await startMongoProxy(fresh)
    const ms = 2_000
    const limits = { serverSelectionTimeoutMS: ms, connectTimeoutMS: ms, socketTimeoutMS: ms }
    const client = await MongoClient.connect(proxy.uri, { ...limits, heartbeatFrequencyMS: 500 })
    const database = { db: client.db(), drop: () => client.close() }
    await within({ technology: 'mongodb', database }, async (h) => {
      const admin = adminOf(h)
      expect((await reportOf(admin, TO)).ok).to.equal(true)
      for (const outage of ['sever', 'stall'] as const) {
        await proxy[outage]()
        const report = await reportOf(admin, TO)
        expect(complaintsOf(report)).to.deep.equal({ database: 'failed' })
        for (const step of OWN_STEPS.filter((each) => !['database', 'base_url'].includes(each)))
          expect(checkOf(report, step).status).to.equal('skipped')
        for (const step of ['base_url', 'configuration', 'connect', 'rcpt']) {
          expect(checkOf(report, step).status).to.equal('ok')
        }
        expect(JSON.stringify(report)).to.not.include(proxy.uri)
        await proxy.restore()
        await eventually('the driver finds the database again', async () => {
          return checkOf(await reportOf(admin, TO), 'outbox').status === 'ok'
        })
      }
    })
    await proxy.close()
    await fresh.drop()
  })
})

type Template = Parameters<AdminClient['previewMail']>[0]['template']

// Each step, and what is hidden of the replies, is in test/smtp/check.test.ts.
describe('A test mail (5)', () => {
  const secrets = ['d'.repeat(43)]
  const h = suiteHarness({ flows: { secrets } })
  const admin = suiteAdmin(h)

  /** The mail server of the settings answers this step with this reply. */
  async function faulty(at: Step, reply: string): Promise<FaultySmtp> {
    const smtp = await startFaultySmtp({ offersAuth: true, fault: answers(at, reply) })
    await h.put({ smtp_port: String(smtp.port), smtp_username: 'mailer', smtp_password: CANARY })
    return smtp
  }

  async function settled(smtp: FaultySmtp): Promise<void> {
    await h.put({ smtp_port: String(h.mail.port), smtp_from: 'accounts@idp.example' })
    await admin.unsetSettings(['smtp_username', 'smtp_password'])
    await smtp.close()
  }

  /** The report, once every step is there in its order. */
  async function tested(): Promise<Record<string, AdminApi.Check>> {
    const { ok, checks } = await admin.testMail({ to: TO })
    expect(checks.map(({ step }) => step)).to.deep.equal(MAIL_STEPS)
    expect(ok).to.equal(checks.every(({ status }) => status !== 'failed'))
    return Object.fromEntries(checks.map((check) => [check.step, check]))
  }

  it('arrives with the settings in force, and tells each step', async () => {
    const smtp = await startFaultySmtp({ offersAuth: true })
    await h.put({
      smtp_port: String(smtp.port),
      smtp_username: 'mailer',
      smtp_password: CANARY,
      smtp_from: 'service@idp.example',
    })
    const steps = await tested()
    expect(Object.values(steps).map(({ status }) => status)).to.deep.equal(
      MAIL_STEPS.map(() => 'ok'),
    )
    const [mail] = smtp.mails
    expect(mail).to.include({ from: 'service@idp.example', user: 'mailer' })
    expect(mail?.to).to.deep.equal([TO])
    expect(mail?.raw).to.match(/^From: service@idp\.example\r?$/m)
    expect(mail?.raw).to.match(/^Subject: Test email\r?$/m)
    expect(smtp.logins).to.deep.equal([{ user: 'mailer', password: CANARY, isSecure: false }])
    expect(smtp.mails).to.have.length(1)
    await settled(smtp)
  })

  it('is audited with who sent it, and not with the address', async () => {
    await tested()
    const event = actionsOf(h, 'mail_test').at(-1)
    expectAudited(event, 'mail_test')
    expect(JSON.stringify(event)).to.not.include(TO)
  })

  it('leaves no record in the outbox, and has no link', async () => {
    const count = h.mail.mails.length
    await tested()
    const { mail, link } = await h.mail.mailTo(TO, count + 1)
    expect(link).to.equal('')
    expect(mail.text).to.not.include('token')
    expect((await admin.listOutbox()).mails).to.deep.equal([])
  })

  it('uses settings that another process changed just now', async () => {
    const { store, users } = h
    const other = await startHarness({ flows: { store, users, secrets, initialSettings: {} } })
    const smtp = await startFaultySmtp()
    for (const from of ['one@idp.example', 'two@idp.example', 'three@idp.example']) {
      await other.put({ smtp_port: String(smtp.port), smtp_from: from })
      await tested()
      expect(smtp.mails.at(-1)?.from).to.equal(from)
    }
    await other.put({ smtp_port: String(h.mail.port), smtp_from: 'four@idp.example' })
    expect(JSON.stringify(await admin.runDoctor())).to.include('mail from four@idp.example')
    await other.close()
    await settled(smtp)
  })

  const faults: [step: string, at: Step, reply: string][] = [
    ['auth', 'AUTH', '535 5.7.8 Nobody may log in'],
    ['data', 'dot', '554 5.6.0 We do not like the words'],
  ]
  for (const [step, at, reply] of faults) {
    it(`that fails at ${step} (${at}) says so, with the reply of the server`, async () => {
      const smtp = await faulty(at, reply)
      const steps = await tested()
      expect(steps[step]).to.include({ status: 'failed', reply })
      expect(steps[step]?.advice).to.match(/^\S.*\.$/)
      const failedAt = MAIL_STEPS.indexOf(step)
      for (const each of MAIL_STEPS.slice(0, failedAt)) expect(steps[each]?.status).to.equal('ok')
      for (const each of MAIL_STEPS.slice(failedAt + 1)) {
        expect(steps[each]?.status).to.equal('skipped')
      }
      await settled(smtp)
      expect((await tested())['data']).to.include({ status: 'ok' })
    })
  }

  it('goes nowhere where `to` is not one plain address: 400', async () => {
    const smtp = await startFaultySmtp()
    await h.put({ smtp_port: String(smtp.port) })
    const actions = actionsOf(h).length
    const two = [`${TO}, bob@users.example`, `${TO}\r\nRCPT TO:<bob@users.example>`]
    const wrong = ['', 'ann', 'ann@', '@users.example', `Ann <${TO}>`, `${TO}\0`, ` ${TO}`, ...two]
    for (const to of [...wrong, 1, null, [TO]]) {
      const problem = await refusalOf(admin.testMail({ to: to as string }))
      expect([problem.status, problem.code]).to.deep.equal([400, 'invalid_request'])
      expect(problem.errors?.map(({ key }) => key)).to.deep.equal(['to'])
    }
    expect(await codeOf(admin.testMail({} as never))).to.deep.equal([400, 'invalid_request'])
    expect(smtp.connections).to.equal(0)
    expect(actionsOf(h)).to.have.length(actions)
    await tested()
    expect(smtp.mails).to.have.length(1)
    await settled(smtp)
  })
})

describe('A preview of a mail (5)', () => {
  const h = suiteHarness()
  const admin = suiteAdmin(h)

  const pages: Record<Template, string> = {
    'password-reset': '/reset-password',
    'email-verification': '/verify-email',
    'password-changed': '/forgot-password',
    invitation: '/accept-invitation',
  }
  for (const [name, page] of Object.entries(pages)) {
    it(`of ${name} has subject, text and HTML, and a link without a token`, async () => {
      const events = h.events.length
      const template = name as Template
      const mail = await admin.previewMail({ template })
      expect(mail.subject).to.match(/^\S.*\S$/)
      for (const part of [mail.text, mail.html]) {
        expect(part).to.include(h.oauthUrl + page)
        expect(part).to.not.match(/token|authorize_sig|undefined|\[object/)
      }
      expect(mail.html).to.match(/<html lang="en"/)
      expect(await admin.previewMail({ template, locale: 'en' })).to.deep.include({
        subject: mail.subject,
      })
      expect(h.events).to.have.length(events)
      expect(h.mail.mails).to.deep.equal([])
    })
  }

  const preview = 'password-reset'
  for (const [key, value] of [
    ['template', undefined],
    ['template', 'no-such-mail'],
    ['template', '../../package'],
    ['template', '__proto__'],
    ['template', 'test'],
    ['locale', 'xx'],
    ['locale', '../en'],
    ['locale', ''],
    ['locale', 'constructor'],
  ] as const) {
    it(`is refused for the ${key} ${JSON.stringify(value) ?? 'that is missing'}: 400, naming it`, async () => {
      const query = {
        ...(key === 'locale' && { template: preview }),
        ...(value !== undefined && { [key]: value }),
      }
      const problem = await refusalOf(admin.previewMail(query as never))
      expect([problem.status, problem.code]).to.deep.equal([400, 'invalid_request'])
      expect(problem.errors?.map((error) => error.key)).to.deep.equal([key])
      expect((await admin.previewMail({ template: preview })).text).to.include('http')
    })
  }
})
