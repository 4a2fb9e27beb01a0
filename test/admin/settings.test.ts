import { randomBytes } from 'node:crypto'
import { expect } from 'chai'
import type { Clock } from '../../src/clock.ts'
import { allSettings, settingNamed, type SettingTexts } from '../../src/settings/table.ts'
import { adminOf, bearer, problemOf, settingsOf, type SettingsRequest } from '../support/admin.ts'
import {
  onEachStore,
  PASSWORD,
  startHarness,
  type Harness,
  type Technology,
  suiteHarness,
} from '../support/harness.ts'
import { eventually } from '../support/eventually.ts'
import { describeWithMongo, freshDatabase } from '../support/mongod.ts'
import { records } from '../support/records.ts'
import { movableClock } from '../support/time.ts'

const CANARY = 'canary of the password'

/** Values by setting. How durations are written, and what is an address, test/settings/settings.test.ts shows. */
const host = 'smtp.example'
const durations = ['', '0', '0s', '-1h', '1', '1.5h', ' 1h', '1h\n', '1H', '30m1h', '1h30m?', '١h']
const booleans = ['', 'TRUE', 'True', '1', '0', 'yes', 'on', 'false ', ' true', 'null']
const lengths = ['', '0', '-1', '8.0', '1e1', ' 8', '8 ', '08', '٨', '73', 'eight', 'NaN', '0x8']
const limits = ['', '-1', '00', '01', '1.0', '1e3', ' 5', '5 ', '٥', '10001', 'none', '0x8']
const lines = ['a\r\nb', 'a\nb', 'a\0b', 'a\tb', 'x'.repeat(256), '\u202Ea', '\uD800']

const ports = ['', '0', '-1', '65536', '587.5', '5e2', '0x19', '587abc', ' 587', '587 ', '0587']
const hosts = ['a b', ' ', 'x'.repeat(300), 'a\0b', '..', '-', ':::', '[::1]', 'bücher.example']
const otherHosts = [`${host}\r\nX: y`, `${host}\n`, `${host}:25`, '127.0.0.1:25', `.${host}`]
const hostsInUrls = [`smtp://${host}`, `user@${host}`, `${host}/x`]

const notEndpoints = [
  ...lines,
  ...'token login.example/token ftp://login.example/token http://login.example/token'.split(' '),
  ...'https://me@login.example/ https://me:x@login.example/ https://login.example/#x'.split(' '),
  'javascript:alert(1)',
]

/** By key, each to be refused. */
const badValues: Record<string, string[]> = {
  password_reset_expiration: [...durations, '8d', '604801s'],
  email_verification_expiration: [...durations, '31d'],
  invitation_expiration: [...durations, '31d'],
  audit_retention: [...durations, '6d', '604799s', '3651d', '2h'],
  resend_cooldown: [...durations.filter((value) => value !== '0s'), '0m', '00s', '25h', '86401s'],
  requests_per_ip_per_minute: limits,
  mails_per_account_per_hour: limits,
  mails_per_minute: limits,
  reset_requires_verified_email: booleans,
  reset_verifies_email: booleans,
  require_email_verification: booleans,
  password_changed_email: booleans,
  smtp_port: [...ports, '+25', '٢٥', '[25]', 'smtp', 'NaN'],
  smtp_host: [...hosts, ...otherHosts, ...hostsInUrls],
  email_link_confirmation: ['', 'OFF', ' off', 'never', 'true'],
  smtp_tls: ['', 'AUTO', 'Auto', ' auto', 'auto ', 'tls', 'true', 'false', 'required', 'auto\n'],
  smtp_username: lines,
  smtp_auth: ['', 'PASSWORD', 'oauth2', 'xoauth2 ', 'true'],
  password_blocklist: ['', 'COMMON', 'true', 'pwned '],
  password_range_url: notEndpoints,
  smtp_oauth_token_endpoint: notEndpoints,
  smtp_oauth_client_id: lines,
  smtp_oauth_client_secret: lines,
  smtp_oauth_refresh_token: ['a b', 'a\r\nb', 'ä', 'x'.repeat(4097)],
  smtp_oauth_scope: lines,
  smtp_password: lines,
  smtp_from_name: [...lines, 'x'.repeat(65), ' a', 'a '],
  mail_reply_to: [
    'a',
    'A <a@b.example>',
    'a@b.example, c@d.example',
    'a@b.example\r\nBcc: c@d.example',
  ],
  smtp_from: ['a', 'a@.', 'A <a@b.example>', 'ä@b.example', 'a@b.example\r\nBcc: c@d.example'],
  validation_min_password_length: [...lengths, '65'],
  validation_max_password_length: lengths,
}

/** By key, each to be accepted, one after the other; the last one of each agrees with the others. Left out: each listed value, and the default. */
const goodValues: Partial<Record<keyof SettingTexts, string[]>> = {
  password_reset_expiration: ['1s', '90m', '1h30m', '7d', '604800s', '2h'],
  require_email_verification: ['true', 'false'],
  email_verification_expiration: ['1s', '30d', '1d12h', '24h'],
  invitation_expiration: ['1s', '30d', '1d12h', '7d'],
  audit_retention: ['7d', '168h', '400d', '3650d'],
  email_link_confirmation: ['other_browser', 'off'],
  smtp_host: [
    ...'localhost 192.0.2.1 ::1 a_b.example SMTP-1.example xn--bcher-kva.example'.split(' '),
    '',
    host,
  ],
  smtp_port: ['1', '25', '587', '65535'],
  smtp_username: ['a b', 'me@idp.example', 'Jürgen K', 'x'.repeat(255), '', 'mailer'],
  smtp_password: ['hunter2', 'with = and -- and "quotes"', ' spaces ', '密码', 'x'.repeat(255), ''],
  smtp_auth: ['xoauth2', 'password'],
  smtp_oauth_token_endpoint: [
    'https://login.example/a/oauth2/v2.0/token?x=1',
    'http://localhost:8080/token',
    '',
  ],
  smtp_oauth_client_id: ['b6f5-11', ''],
  smtp_oauth_client_secret: ['with ~ and = "quotes"', 'x'.repeat(255), ''],
  smtp_oauth_refresh_token: ['0.AX~x/y+z==', 'x'.repeat(4096), ''],
  smtp_oauth_scope: ['https://outlook.office365.com/.default', 'a b', ''],
  smtp_from: ['a@b.example', "o'neill+tag@sub.b.example", '', 'no-reply@idp.example'],
  mail_reply_to: ['help@b.example', ''],
  smtp_from_name: ['Support', 'Ünïcode, Inc.', 'x'.repeat(64), ''],
  password_changed_email: ['false', 'true'],
  reset_requires_verified_email: ['true', 'false'],
  reset_verifies_email: ['true', 'false'],
  requests_per_ip_per_minute: ['0', '1', '10000', '60'],
  mails_per_account_per_hour: ['0', '1', '10000', '10'],
  resend_cooldown: ['0s', '1s', '5m', '1d', '86400s', '30s'],
  mails_per_minute: ['0', '1', '10000', '600'],
  smtp_tls: ['implicit', 'starttls', 'none', 'auto'],
  password_blocklist: ['common', 'pwned', 'off'],
  password_range_url: ['https://ranges.example/range/', 'http://127.0.0.1:8080/?prefix=', ''],
  validation_min_password_length: ['1', '64', '8'],
  validation_max_password_length: ['8', '72', '64'],
}

const badNames = [
  '',
  ' smtp_port',
  'smtp_port ',
  ...'unknown warnings _id version values $set'.split(' '),
  ...'SMTP_PORT smtpPort values.smtp_port settings.smtp_port'.split(' '),
  ...'constructor prototype toString hasOwnProperty'.split(' '),
]

/** Two processes on one store, and what is the same in both as long as nobody changed anything. */
function twoProcesses(technology: Technology = 'memory') {
  const h = {} as Harness
  const other = {} as Harness
  const [settings, elsewhere] = [settingsOf(h), settingsOf(other)]
  let round = 0

  before(async () => {
    const secrets = [randomBytes(32)]
    Object.assign(h, await startHarness({ technology, flows: { secrets } }))
    Object.assign(other, await startHarness({ flows: { secrets, store: h.records } }))
    await h.put({ smtp_username: 'm', smtp_password: CANARY })
  })
  after(async () => {
    await other.close()
    await h.close()
  })

  const told = () => [...h.eventsOf('settings_changed'), ...other.eventsOf('settings_changed')]

  async function state() {
    const response = await settings.get()
    const seen = [response.headers.get('etag'), await response.json(), await elsewhere.shown()]
    return [...seen, told().length]
  }

  async function stillWorks() {
    round += 1
    const body = { smtp_from_name: `Name ${round}` }
    const response = await settings.put({ body, ifMatch: await settings.etag() })
    expect(response.status).to.equal(200)
    expect(await elsewhere.shown()).to.include(body)
  }

  /** Whatever is refused: nothing changed, and an honest request still works. */
  async function unchangedBy(work: () => Promise<unknown>) {
    const before = await state()
    await work()
    expect(await state()).to.deep.equal(before)
    await stillWorks()
  }

  return { h, settings, elsewhere, told, stillWorks, unchangedBy }
}

describe('The settings over HTTP (2.5, 4.5)', () => {
  const { h, settings, elsewhere, told, unchangedBy } = twoProcesses()
  const { shown, put, unset } = settings

  /** What is stored, without secrets: defaults are not. */
  const stored = async () => (await adminOf(h).settingsHistory()).answer.versions[0]?.settings ?? {}

  beforeEach(() => h.put({ smtp_host: '127.0.0.1', smtp_username: 'm', smtp_password: CANARY }))

  const itRefuses = (title: string, work: () => Promise<unknown>) =>
    it(title, () => unchangedBy(work))

  it('are answered by their names, as strings, with their defaults; to HEAD without a body', async () => {
    const response = await settings.get()
    expect(response.status).to.equal(200)
    expect(response.headers.get('content-type')).to.match(/^application\/json/)
    expect(response.headers.get('cache-control')).to.equal('no-store')
    const settingsInForce: Record<string, unknown> = await response.json()
    expect(settingsInForce).to.include({
      password_reset_expiration: '1h',
      require_email_verification: 'true',
      smtp_host: '127.0.0.1',
      smtp_port: String(h.mail.port),
      smtp_tls: 'auto',
      requests_per_ip_per_minute: '60',
    })
    expect(settingsInForce).not.to.have.any.keys('smtp_oauth_client_id', 'version')
    for (const value of Object.values(settingsInForce)) expect(value).to.be.a('string')
    const url = `${h.baseUrl}/admin/api/settings`
    const head = await fetch(url, { method: 'HEAD', headers: bearer })
    expect([head.status, await head.text()]).to.deep.equal([200, ''])
  })

  it('are recorded with the keys of what changed, never a secret (SET-16)', async () => {
    const before = told().length
    await h.put({ smtp_password: 'S3cr3t canary', smtp_port: String(h.mail.port) })
    await h.put({ smtp_username: 'n' })
    const keys = told().map(({ details }) => details?.['keys'])
    expect(keys.slice(before)).to.deep.equal([['smtp_password'], ['smtp_username']])
    expect(JSON.stringify(h.events)).not.to.include('canary')
  })

  describe('refuse a body with one bad setting: 400 that names it, and applies none (SET-01, SET-03, SET-09, SET-10, MAIL-07, MAIL-08):', () => {
    const innocent = { password_reset_expiration: '4h', email_verification_expiration: '5h' }

    async function isRefused(bad: Record<string, unknown>) {
      const { errors = [] } = await problemOf(put({ body: { ...innocent, ...bad } }), 400)
      const what = JSON.stringify(bad)
      expect(errors.map(({ key }) => key)).to.have.members(Object.keys(bad), what)
      for (const { expected } of errors) expect(expected).to.be.a('string').and.not.equal('')
    }

    for (const [key, values] of Object.entries(badValues)) {
      for (const value of values) {
        itRefuses(`${key}: ${JSON.stringify(value).slice(0, 60)}`, () =>
          isRefused({ [key]: value }),
        )
      }
    }

    for (const value of [26, 0, null, true, [], ['26'], { $gt: '' }, { smtp_port: '26' }, 1e400]) {
      itRefuses(`a value that is no string: ${JSON.stringify(value)}`, async () => {
        for (const key of ['smtp_port', 'require_email_verification', 'smtp_password']) {
          await isRefused({ [key]: value })
        }
      })
    }

    for (const key of badNames) {
      itRefuses(`a name that is none: ${JSON.stringify(key)}`, () => isRefused({ [key]: '26' }))
    }

    itRefuses('__proto__, as text or as an object with settings in it', async () => {
      for (const value of ['x', { smtp_port: '26' }, { isAdmin: 'true' }]) {
        const body = Object.fromEntries([
          ['smtp_from', 'b@idp.example'],
          ['__proto__', value],
        ])
        await problemOf(put({ body }), 400)
      }
      expect(Reflect.get({}, 'smtp_port')).to.equal(undefined)
      expect(Reflect.get({}, 'isAdmin')).to.equal(undefined)
    })

    itRefuses('every bad key of one body is listed (SET-06)', () =>
      isRefused({ smtp_port: '0', nonsense: 'x', smtp_host: 25, smtp_from: '@' }),
    )

    itRefuses('a minimum above the maximum, of the same body or in force (SET-05)', async () => {
      const [min, max] = ['validation_min_password_length', 'validation_max_password_length']
      for (const bad of [{ [min]: '20', [max]: '19' }, { [min]: '65' }, { [max]: '7' }]) {
        const problem = await problemOf(put({ body: { ...innocent, ...bad } }), 400)
        expect(JSON.stringify(problem)).to.include('validation_m')
      }
    })

    itRefuses('a secret is never shown, nor what came for an unknown name', async () => {
      for (const body of [
        { smtp_password: `${CANARY}\n` },
        { smtp_password: CANARY.repeat(30) },
        { smtp_password: [CANARY] },
        { smtp_pasword: CANARY },
        { SMTP_PASSWORD: CANARY },
        { smtp_pass: { word: CANARY } },
        { smtp_password: CANARY, smtp_port: 'x' },
      ]) {
        await problemOf(put({ body }), 400, 'invalid_settings')
      }
      const answer = await put({ body: { smtp_port: 'a visible mistake' } })
      expect(await answer.text()).to.include('a visible mistake')
    })
  })

  describe('are tried in a dry run, which', () => {
    const dry = { query: 'dry_run=true' }

    it('answers what would be, without its secrets, with the ETag of what is, and changes nothing', () =>
      unchangedBy(async () => {
        const etag = await settings.etag()
        const body = { password_reset_expiration: '5h', smtp_from: 'x@idp.example' }
        const answer = await put({ ...dry, body: { ...body, smtp_password: `new ${CANARY}` } })
        expect([answer.status, answer.headers.get('etag')]).to.deep.equal([200, etag])
        const text = await answer.text()
        expect(JSON.parse(text)).to.deep.include({ ...(await shown()), ...body })
        expect(text).not.to.include('canary')
      }))

    it('tells that a password would be forgotten, by setting or by unsetting its host, and forgets none', () =>
      unchangedBy(async () => {
        const query = 'key=smtp_username&key=smtp_host&dry_run=true'
        const unsetting = await (await unset({ query })).json()
        expect(unsetting).not.to.have.any.keys('smtp_username', 'smtp_host')
        const smtp_host = 'mail.example'
        const setting = await (await put({ ...dry, body: { smtp_host } })).json()
        expect(setting).to.include({ smtp_host })
        for (const answered of [unsetting, setting]) {
          expect(answered).not.to.have.property('smtp_password')
          expect(answered.warnings.join()).to.include('is deleted')
        }
      }))

    itRefuses('refuses a setting that is given a value and unset at once, dry or not', async () => {
      for (const query of ['unset=smtp_password', 'unset=smtp_password&dry_run=true']) {
        const body = { smtp_password: '***', smtp_username: 'x' }
        const { errors = [] } = await problemOf(put({ query, body }), 400)
        expect(errors.map(({ key }) => key)).to.deep.equal(['smtp_password'])
      }
      for (const key of ['toString', 'constructor', 'smtp_form']) {
        const body = { smtp_username: 'x' }
        const { errors } = await problemOf(put({ query: `unset=${key}`, body }), 400)
        const expected = 'the name of a setting'
        expect(errors).to.deep.equal([{ key, expected, got: 'an unknown name' }])
      }
    })

    itRefuses('tells every problem, as without it, and honours If-Match', async () => {
      const body = { smtp_port: '0', smtp_form: 'x', password_reset_expiration: '1h' }
      const tried = await problemOf(put({ ...dry, body }), 400)
      expect(tried).to.deep.equal(await problemOf(put({ body }), 400))
      expect(tried.errors?.map(({ key }) => key)).to.deep.equal(['smtp_port', 'smtp_form'])
      await problemOf(unset({ query: 'key=smtp_form&dry_run=true' }), 400, 'invalid_settings')
      const request = { ...dry, body: { smtp_port: '2525' }, ifMatch: await settings.etag() }
      expect((await put(request)).status).to.equal(200)
      await problemOf(put({ ...request, ifMatch: '"another"' }), 412, 'stale_settings')
    })

    it('is none with false', async () => {
      const body = { smtp_from_name: 'No dry run' }
      expect((await put({ query: 'dry_run=false', body })).status).to.equal(200)
      expect(await shown()).to.include(body)
    })

    const misspelled = [
      'dryrun=true dry-run=true DRY_RUN=true dry_run=1 dry_run=yes dry_run=True dry_run= dry_run',
      'dry_run=true&dry_run=true dry_run=true&dry_run=false dry_run[]=true dry_run=true&x=1',
      'dry_run%00=true __proto__=true =true',
    ]
    for (const query of misspelled.join(' ').split(' ')) {
      itRefuses(`misspelled as ?${query} is refused: 400, and nothing changes`, async () => {
        const body = { smtp_from_name: 'X' }
        const problem = await problemOf(put({ query, body }), 400, 'invalid_request')
        expect(problem.errors).to.have.length(1)
        await problemOf(unset({ query: `key=smtp_username&${query}` }), 400, 'invalid_request')
        await problemOf(settings.get({ query }), 400)
      })
    }
  })

  describe('are unset, and', () => {
    const keys = ['password_reset_expiration', 'smtp_from_name', 'smtp_password']

    it('have their defaults back, or no value where there is none; a secret is forgotten; audited by name', async () => {
      await h.put({ password_reset_expiration: '5h', smtp_from_name: 'Somebody' })
      const events = told().length
      const answer = await unset({ query: keys.map((key) => `key=${key}`).join('&') })
      const { status, headers } = answer
      expect([status, headers.get('etag')]).to.deep.equal([200, await settings.etag()])
      const inForce = await shown()
      expect(await answer.json()).to.deep.include(inForce)
      expect(inForce).to.include({ password_reset_expiration: '1h' })
      expect(inForce).not.to.have.any.keys('smtp_from_name', 'smtp_password')
      expect(await elsewhere.shown()).to.deep.equal(inForce)
      expect(await stored()).not.to.have.any.keys(keys)
      const details = told().map((event) => event.details)
      expect(details.slice(events)).to.deep.equal([{ keys, actor: 'admin_token' }])
    })

    it('the password goes with its host, and does not come back with it; what has no value changes nothing, and is not audited', async () => {
      const answer = await unset({ query: 'key=smtp_host&key=smtp_from_name' })
      expect((await answer.json()).warnings.join()).to.include('is deleted')
      await h.put({ smtp_host: '127.0.0.1' })
      expect(await shown()).not.to.have.property('smtp_password')
      await unchangedBy(async () => {
        const query = 'key=smtp_from_name&key=smtp_from_name&key=resend_cooldown'
        expect((await unset({ query })).status).to.equal(200)
      })
    })

    itRefuses(
      'what is no setting is refused, with the settings beside it, and nothing at all: 400',
      async () => {
        for (const key of ['smtp_form', 'SMTP_HOST', ' smtp_host', '__proto__', 'constructor']) {
          const query = `key=smtp_username&${new URLSearchParams({ key })}`
          const problem = await problemOf(unset({ query }), 400, 'invalid_settings')
          expect(problem.errors?.map((error) => error.key)).to.deep.equal([key])
        }
        for (const query of ['', 'dry_run=true', 'keys=x', 'key=', 'key=smtp_username&key='])
          await problemOf(unset({ query }), 400, 'invalid_request')
      },
    )

    it('a minimum or a maximum that its default would exclude is refused, and changes nothing', async () => {
      const [min, max] = ['validation_min_password_length', 'validation_max_password_length']
      await h.put({ [min]: '4', [max]: '6' })
      await unchangedBy(async () => {
        const problem = await problemOf(unset({ query: `key=${min}` }), 400)
        expect(problem.errors).to.deep.equal([
          { key: min, expected: `at most ${max}, which is 6`, got: '"8"' },
        ])
      })
      expect((await unset({ query: `key=${min}&key=${max}` })).status).to.equal(200)
      expect(await shown()).to.include({ [min]: '8', [max]: '64' })
    })
  })

  it('are sent back as they were answered, all or none, which changes nothing, and keeps the secret; with one change, that one alone', async () => {
    await unchangedBy(async () => {
      const response = await settings.get()
      const ifMatch = response.headers.get('etag') ?? ''
      const body = await response.json()
      expect(body).to.include({ smtp_password: '***', email_verification_expiration: '24h' })
      const answer = await put({ body, ifMatch })
      expect([answer.status, answer.headers.get('etag')]).to.deep.equal([200, ifMatch])
      expect(await answer.json()).to.deep.include(body)
      expect((await put({ body: {} })).status).to.equal(200)
    })
    const [before, events] = [await stored(), told().length]
    const smtp_from_name = `Name ${events}`
    expect((await put({ body: { ...(await shown()), smtp_from_name } })).status).to.equal(200)
    expect(await stored()).to.deep.equal({ ...before, smtp_from_name })
    const keys = told().map(({ details }) => details?.['keys'])
    expect(keys.slice(events)).to.deep.equal([['smtp_from_name']])
  })

  const warningsOf = async (asked: Promise<Response>) =>
    String((await (await asked).json()).warnings ?? '')
  const warnings = (body: Record<string, string>) =>
    warningsOf(put({ query: 'dry_run=true', body }))

  it('are answered with a warning where verification is required and SMTP is not configured', async () => {
    const on = { require_email_verification: 'true' }
    for (const missing of ['smtp_host', 'smtp_from']) {
      const warned = await warnings({ ...on, [missing]: '' })
      expect(warned).to.match(/require_email_verification.*cannot sign in/)
    }
    expect(await warnings(on)).to.equal('')
    const off = await warnings({ require_email_verification: 'false', smtp_host: '' })
    expect(off).to.include('SMTP is not configured').and.not.include('sign in')
  })

  it('are answered with a warning where a link waits for a login, and no login waits', async () => {
    const careful = { email_link_confirmation: 'other_browser' }
    const required = { ...careful, require_email_verification: 'true' }
    const optional = { ...careful, require_email_verification: 'false' }
    expect(await warnings(optional)).to.include('no mailed link confirms an address')
    expect(await warnings(required)).to.equal('')
  })

  it('are answered with a warning where only one of user name and password is given', async () => {
    expect(await warnings({ smtp_username: '' })).to.include('only one of')
    expect(await warnings({ smtp_password: '' })).to.include('only one of')
    expect(await warnings({ smtp_username: '', smtp_password: '' })).to.equal('')
    const query = 'key=smtp_password&dry_run=true'
    expect(await warningsOf(unset({ query }))).to.include('only one of')
  })

  describe('take a good value, and it is in force:', () => {
    const others = allSettings
      .filter(({ name }) => !(name in goodValues))
      .map(
        ({ name, values = [], default: byDefault = '' }) => [name, [...values, byDefault]] as const,
      )
    for (const [key, values] of [...Object.entries(goodValues), ...others]) {
      for (const value of values) {
        it(`${key}: ${JSON.stringify(value).slice(0, 60)}`, async () => {
          const { [key]: _, warnings: __, ...others } = await shown()
          const response = await put({ body: { [key]: value } })
          expect(response.status).to.equal(200)
          const given = settingNamed(key)?.secret && value !== '' ? '***' : value
          const inForce = await shown()
          const { warnings: ___, ...answered }: Record<string, unknown> = await response.json()
          expect(inForce).to.deep.include(answered)
          if (['smtp_host', 'smtp_port'].includes(key)) delete others['smtp_password']
          expect(inForce).to.deep.include({ ...others, ...(given !== '' && { [key]: given }) })
          if (given === '') expect(inForce).not.to.have.property(key)
        })
      }
    }
  })
})

onEachStore('Two admins who change settings (RFC 9110)', (technology) => {
  const { h, settings, elsewhere, told, stillWorks, unchangedBy } = twoProcesses(technology)

  it('see by the ETag whether anything changed, in every process alike, be it a secret of which nothing else can be seen', async () => {
    const etag = await settings.etag()
    expect(etag).to.match(/^"[\x21\x23-\x7e]+"$/)
    expect([await settings.etag(), await elsewhere.etag()]).to.deep.equal([etag, etag])
    const changed = await settings.put({ body: { smtp_from_name: 'Another' } })
    expect(changed.headers.get('etag')).not.to.equal(etag)
    expect(changed.headers.get('etag')).to.equal(await elsewhere.etag())

    const [shown, before] = [await settings.shown(), await settings.etag()]
    await h.put({ smtp_password: `${CANARY} 2` })
    expect(await settings.shown()).to.deep.equal(shown)
    expect(await settings.etag()).not.to.equal(before)
  })

  if (technology !== 'memory') {
    it('see by the ETag that somebody edited the record by hand, also one that was never read since', async () => {
      const etag = await settings.etag()
      const byHand = { $set: { 'values.smtp_from_name': 'Hand' } }
      if (h.db) await records(h, 'settings').updateOne({ _id: 'settings' }, byHand)
      await h.database?.pool?.query(
        `UPDATE settings SET "values" = jsonb_set("values"::jsonb, '{smtp_from_name}', '"Hand"')`,
      )
      const put = settings.put({ body: { smtp_from_name: 'X' }, ifMatch: etag })
      await problemOf(put, 412, 'stale_settings')
      expect(await settings.shown()).to.include({ smtp_from_name: 'Hand' })
      expect(await settings.etag()).not.to.equal(etag)
      await stillWorks()
    })
  }

  describe('say with If-Match what they have seen, and', () => {
    const matching: Record<string, (etag: string) => string> = {
      'the right ETag': (etag) => etag,
      'any with *': () => '*',
      'a list with the right ETag': (etag) => `"other", ${etag},"another"`,
      'white space around it': (etag) => ` ${etag} `,
    }
    for (const [what, ifMatch] of Object.entries(matching)) {
      it(`are served with ${what}`, async () => {
        const body = { smtp_from_name: what.replaceAll('*', 'x') }
        const put = await settings.put({ body, ifMatch: ifMatch(await settings.etag()) })
        expect(put.status).to.equal(200)
        expect(await elsewhere.shown()).to.include(body)
        const query = 'key=smtp_from_name'
        const unset = await settings.unset({ query, ifMatch: ifMatch(await settings.etag()) })
        expect(unset.status).to.equal(200)
        expect(await elsewhere.shown()).not.to.have.property('smtp_from_name')
      })
    }

    const others: Record<string, (etag: string) => string> = {
      'another ETag': () => '"another"',
      'an empty ETag': () => '""',
      'nothing in it': () => '',
      'the right ETag as a weak one (RFC 9110, 13.1.1)': (etag) => `W/${etag}`,
      'the right ETag without quotes': (etag) => etag.replaceAll('"', ''),
      'the right ETag in other quotes': (etag) => etag.replaceAll('"', "'"),
      'a part of the right ETag': (etag) => `${etag.slice(0, -2)}"`,
      'the version alone': (etag) => etag.replace(/-.*/, '"'),
      'a list of others': () => '"a", "b"',
      '* in a list': () => '"a", *',
      '* in quotes': () => '"*"',
      garbage: () => '{"$ne":""}, __proto__,,,',
      'more than a screen of it': () => '"a",'.repeat(1_000),
    }
    const body = { smtp_from_name: 'X' }
    const requests: [(request: SettingsRequest) => Promise<Response>, SettingsRequest][] = [
      [settings.put, { body }],
      [settings.put, { body, query: 'dry_run=true' }],
      [settings.put, { body: { smtp_port: 'none' } }],
      [settings.put, { body: {} }],
      [settings.unset, { query: 'key=smtp_from_name' }],
      [elsewhere.put, { body }],
    ]
    for (const [what, other] of Object.entries(others)) {
      it(`are refused with ${what}: 412, and nothing changes`, () =>
        unchangedBy(async () => {
          const ifMatch = other(await settings.etag())
          for (const [ask, request] of requests) {
            await problemOf(ask({ ...request, ifMatch }), 412, 'stale_settings')
          }
        }))
    }

    it('are refused with what was right before somebody else changed something', async () => {
      const ifMatch = await settings.etag()
      await stillWorks()
      await unchangedBy(() => problemOf(settings.put({ body, ifMatch }), 412, 'stale_settings'))
    })

    it('are not both served with one ETag at the same time: one is, of 20 too', async () => {
      for (const many of [2, 20]) {
        const [ifMatch, events] = [await settings.etag(), told().length]
        const answers = await Promise.all(
          Array.from({ length: many }, (_, index) => {
            const smtp_from_name = `One of ${many}: ${index}`
            return (index % 2 ? settings : elsewhere).put({ body: { smtp_from_name }, ifMatch })
          }),
        )
        const served = answers.filter(({ status }) => status === 200)
        expect(served).to.have.length(1)
        expect(answers.filter(({ status }) => status === 412)).to.have.length(many - 1)
        const { smtp_from_name } = Object(await served[0]?.json())
        expect(await settings.shown()).to.include({ smtp_from_name })
        expect(served[0]?.headers.get('etag')).to.equal(await elsewhere.etag())
        expect(told()).to.have.length(events + 1)
      }
    })
  })

  it('and change a minimum and a maximum that exclude each other: one of them is refused', async () => {
    const [min, max] = ['validation_min_password_length', 'validation_max_password_length']
    await h.put({ [min]: '8', [max]: '64' })
    const answers = await Promise.all([
      settings.put({ body: { [min]: '40' } }),
      elsewhere.put({ body: { [max]: '20' } }),
    ])
    expect(answers.map(({ status }) => status)).to.have.members([200, 400])
    const shown = await settings.shown()
    expect(Number(shown[min])).to.be.at.most(Number(shown[max]))
  })
})

/** What follows the settings looks at its start, and then not for an hour: all else is for the requests. */
const following: Clock = {
  ...movableClock,
  sleep: (ms, options) => movableClock.sleep(options?.ref === false ? 3_600_000 : ms, options),
}

describeWithMongo('Settings are held in memory and followed, so that [full]', () => {
  let commands: string[] = []
  const h = suiteHarness(async () => ({
    database: await freshDatabase('standalone', ({ commandName, command }) => {
      commands.push(`${commandName} ${command[commandName]}`)
    }),
    flows: { clock: following },
  }))

  before(async () => {
    // Workers ask the database by themselves.
    await h.flows.stop({ withinMs: 2_000 })
    commands = []
    await h.flows.start({ workers: false })
    const isDone = () => ofSettings().length >= 2 && commands.includes('update key_rings')
    await eventually('it has followed the settings, and noted its keys, once', isDone)
  })

  beforeEach(() => {
    commands = []
  })

  const ofSettings = () => commands.filter((command) => command.endsWith(' settings'))

  it('GET settings costs one command, a refused change and a dry run no more; a change is seen to cost a write', async () => {
    const { get, put } = settingsOf(h)
    const body = { smtp_from_name: 'X' }
    expect((await get()).status).to.equal(200)
    expect((await put({ body: { smtp_port: 'x' } })).status).to.equal(400)
    expect((await put({ body, query: 'dry_run=true' })).status).to.equal(200)
    expect(commands).to.deep.equal(['find settings', 'find settings', 'find settings'])
    expect((await put({ body })).status).to.equal(200)
    expect(ofSettings()).to.include('update settings')
  })

  it('requests in the flows cost none for settings', async () => {
    const [verified, waiting] = [await h.addVerified(), await h.addUnverified()]
    commands = []
    expect((await verified.signsIn()).location).to.include('code=')
    expect((await waiting.signsIn()).page).to.be.a('string')
    expect((await h.forgot(verified.username)).mode).to.equal('sent')
    await h.resend(waiting.username)
    await waiting.agent.get(`${h.oauthUrl}/forgot-password`)
    await waiting.agent.get(`${h.oauthUrl}/reset-password?token=${'x'.repeat(43)}`)
    await h.reset(`${h.oauthUrl}/reset-password?token=${'x'.repeat(43)}`, PASSWORD)
    await waiting.agent.get(`${h.oauthUrl}/verify-email?token=${'x'.repeat(43)}`)
    expect(commands).not.to.deep.equal([])
    expect(ofSettings()).to.deep.equal([])
  })
})
