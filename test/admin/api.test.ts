import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Validator } from '@seriousme/openapi-schema-validator'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import { expect } from 'chai'
import * as z from 'zod'
import { generatedFiles } from '../../docs/generate.ts'
import { openApiDocument } from '../../docs/generate/openapi.ts'
import { ADMIN_SCOPES } from '../../src/admin/options.ts'
import {
  AccountQuery,
  operations,
  type Operation,
  type OperationName,
} from '../../src/admin/all-operations.ts'
import { memoryUsers, type UserStore } from '../../src/index.ts'
import { createAdminClient, type AdminClient } from '../../src/admin/client.ts'
import { allSettings } from '../../src/settings/table.ts'
import {
  actionsOf,
  bearer,
  changesNothing,
  newNetwork,
  problemOf,
  refusalOf,
  suiteAdmin,
  thrownBy,
} from '../support/admin.ts'
import { cliOf } from '../support/cli.ts'
import { eventually } from '../support/eventually.ts'
import { ADMIN_TOKEN, startHarness, type Harness, suiteHarness } from '../support/harness.ts'
import { serve, type Served } from '../support/serve.ts'

const document = openApiDocument()
const ajv = new Ajv2020({ allErrors: true })
ajv.addVocabulary(['components'])
ajv.addFormat('date-time', (text: string) => new Date(text).toISOString() === text)

const compiled = new Map<string, ValidateFunction>()

/** Throws where a value is not as a schema of the document says. */
function expectDescribed(schema: object, value: unknown, what: string): void {
  const key = JSON.stringify(schema)
  const { schemas } = document.components
  const check = compiled.get(key) ?? ajv.compile({ ...schema, components: { schemas } })
  compiled.set(key, check)
  check(value)
  expect(check.errors ?? [], `${what}: ${JSON.stringify(value)}`).to.deep.equal([])
}

interface DescribedResponse {
  headers?: Record<string, object>
  content: Record<string, { schema: object }>
}

/** What the document says of each answer of an operation, by its status. */
function responsesOf(name: OperationName): Record<string, DescribedResponse> {
  const [method = '', path = ''] = operations[name].route.split(' ')
  const described = document.paths[path]?.[method.toLowerCase()]
  return Object(Reflect.get(Object(described), 'responses'))
}

interface Request {
  query?: Record<string, string> | URLSearchParams
  body?: unknown
  headers?: Record<string, string>
  /** In place of that of the operation. */
  method?: string
}

/** Asks for operations of the admin API; every answer, be it a refusal, must be one that the document describes. */
function documentedAnswers({ baseUrl }: Pick<Harness, 'baseUrl'>) {
  return async (name: OperationName, request: Request = {}) => {
    const [method = '', path] = operations[name].route.split(' ')
    const { query = {}, body, headers } = request
    const type = body !== undefined && { 'content-type': 'application/json' }
    const search = new URLSearchParams(query).toString()
    const response = await fetch(`${baseUrl}/admin/api${path}${search && `?${search}`}`, {
      method: request.method ?? method,
      headers: { ...bearer, ...type, ...headers },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    const text = await response.text()
    const { status } = response
    const described = responsesOf(name)[status]
    const media = described?.content[response.headers.get('content-type')?.split(';')[0] ?? '']
    if (!media) throw new Error(`${name} answers ${status}, which is not described: ${text}`)
    const json: Record<string, unknown> = JSON.parse(text)
    expectDescribed(media.schema, json, `${name} ${status}`)
    for (const header of Object.keys(described?.headers ?? {})) {
      expect(response.headers.has(header), `${name} ${status} has ${header}`).to.equal(true)
    }
    return { status, code: json['code'], headers: response.headers, json }
  }
}

const isRead = (name: OperationName) => operations[name].route.startsWith('GET ')

const READ = 'account-flows:read'
const SUPPORT = 'account-flows:support'
const SETTINGS = 'account-flows:settings'
const ALL = 'account-flows:admin'

type Sent = Record<string, unknown>

/** The scopes of operations that change something: others need `support`. Those that are here only look, or direct the mails. */
const SCOPES: Partial<Record<OperationName, string>> = {
  putSettings: SETTINGS,
  unsetSettings: SETTINGS,
  testMail: SETTINGS,
  rotateKeys: SETTINGS,
  userStatus: READ,
  explainLink: READ,
}

const scopeOf = (name: OperationName) => SCOPES[name] ?? (isRead(name) ? READ : SUPPORT)

/** What may be sent to an operation. Left out: an account to one on an account, and nothing to the others. */
const SENT: Partial<Record<OperationName, Sent>> = {
  putSettings: { smtp_from_name: 'Accounts' },
  unsetSettings: { key: 'smtp_from_name' },
  testMail: { to: 'ann@users.example' },
  previewMail: { template: 'password-reset' },
  mailOutcome: { mail_id: 'unknown' },
  runDoctor: { to: 'ann@users.example' },
  sendVerification: { user: 'new' },
  inviteUser: { user: 'invited' },
  emailChanged: { user: 'ann' },
  forgetUser: { id: 'nobody' },
  showMail: { mail_id: 'unknown' },
  retryMails: { all_dead: true },
  purgeMails: { all_dead: true },
  explainLink: { link: 'https://idp.example/no-link' },
}

function sentTo(name: OperationName): Sent {
  const { body }: Operation = operations[name]
  return SENT[name] ?? (body === AccountQuery ? { user: 'ann' } : {})
}

const aboutUsers = ['userStatus', 'sendReset', 'sendVerification', 'endSessions'] as const

const operationNames = Object.keys(operations).filter(
  (name): name is OperationName => name in operations,
)

/** As a request: GET takes a query. */
function requestOf(name: OperationName, sent: Sent = sentTo(name)) {
  const { body }: Operation = operations[name]
  return body ? { body: sent } : { query: new URLSearchParams(sent as Record<string, string>) }
}

/** By the client. */
function callOf(admin: AdminClient, name: OperationName, sent: Sent = sentTo(name)) {
  if (name === 'unsetSettings') return admin.unsetSettings([String(sent['key'])])
  return admin[name](sent as never)
}

const ROOT = new URL('../../', import.meta.url)
const read = (path: string) => readFile(new URL(path, ROOT), 'utf8')

describe('What is made out of the table of settings and the description of the admin API', () => {
  let made: Record<string, string>

  before(async function () {
    made = await generatedFiles()
  })

  const references = ['docs/reference.md', 'docs/reference-stores.md']
  const files = [
    'docs/settings.md',
    ...references,
    'docs/openapi.json',
    'docs/shapes.txt',
    'src/admin/routes.ts',
  ]
  for (const path of files) {
    it(`is in ${path} as it would be made now, and in no other file; otherwise: npm run docs`, async () => {
      expect(made).to.have.all.keys(files)
      expect(await read(path)).to.equal(made[path])
    })
  }

  it('is a valid OpenAPI 3.1 document, as a validator says that refuses what is none', async () => {
    const validator = new Validator()
    const { valid, errors } = await validator.validate(JSON.parse(await read('docs/openapi.json')))
    expect(errors ?? []).to.deep.equal([])
    expect([valid, validator.version]).to.deep.equal([true, '3.1'])
    const broken = { ...document, paths: { settings: {} } }
    expect((await new Validator().validate(broken)).valid).to.equal(false)
  })

  it('has every setting of the table, with its meaning, its default, its bounds and its values', async () => {
    const page = await read('docs/settings.md')
    const { components } = JSON.parse(await read('docs/openapi.json'))
    for (const schema of ['Settings', 'SettingsInForce']) {
      const names = Object.keys(components.schemas[schema].properties)
      expect(names.filter((name) => name !== 'warnings')).to.deep.equal(
        allSettings.map(({ name }) => name),
      )
    }
    expect(components.schemas.Settings.additionalProperties).to.equal(false)
    for (const setting of allSettings) {
      const described = components.schemas.Settings.properties[setting.name]
      expect(described.description).to.include(setting.meaning).and.include(setting.expected)
      expect(described.default).to.equal(setting.default)
      expect(described.enum).to.deep.equal(setting.values)
      const row = page.split('\n').find((line) => line.startsWith(`| \`${setting.name}\``))
      expect(row, setting.name).to.include(setting.meaning)
      expect(row?.includes('(secret)')).to.equal(setting.secret)
      expect(row).to.include(setting.default === undefined ? '| none ' : `\`${setting.default}\``)
      for (const value of setting.values ?? []) expect(row).to.include(`\`${value}\``)
      expect(row).to.include(setting.values ? '|' : (setting.bounds ?? setting.expected))
    }
  })

  it('has each operation once, by its name, with each of its answers and one of the three scopes; what changes nothing needs the first', () => {
    const { paths } = document
    expect(document).to.not.have.property('security')
    const described = Object.values(paths).flatMap((path) =>
      Object.values(path).map((one) => Reflect.get(one, 'operationId')),
    )
    expect(described).to.have.members(operationNames)
    for (const name of operationNames) {
      const { route, scope, status = 200 }: Operation = operations[name]
      const [method = '', path = ''] = route.split(' ')
      expect(paths[path]?.[method.toLowerCase()]).to.deep.include({
        security: [{ bearer: [scope] }],
      })
      expect(scope).to.be.oneOf(method === 'GET' ? [READ] : ADMIN_SCOPES)
      const statuses = Object.keys(responsesOf(name))
      const others = ['400', '401', '403', '429', '500', '503']
      expect(statuses).to.include.members([String(status), ...others])
    }
  })
})

describe('Each operation of the admin API, as docs/openapi.json says (5, 5.1):', () => {
  const tokenFor = (...scopes: string[]) => scopes.toSorted().join('+').padEnd(40, '-')
  const sets = [
    ...ADMIN_SCOPES.map((scope) => [scope]),
    ...ADMIN_SCOPES.map((left) => ADMIN_SCOPES.filter((scope) => scope !== left)),
    [ALL as 'account-flows:admin'],
  ]
  const adminToken = sets.map((scopes) => ({ token: tokenFor(...scopes), scopes }))
  const h = suiteHarness({
    flows: { trustedProxies: 1, adminToken: [ADMIN_TOKEN, ...adminToken] },
    mayLogErrors: true,
  })
  const admin = suiteAdmin(h)
  let ask: ReturnType<typeof documentedAnswers>

  before(async () => {
    ask = documentedAnswers(h)
    const ann = await h.addUser({ username: 'ann' })
    await h.addUser({ username: 'new', emailVerified: false })
    await h.addUser({ username: 'invited', passwordHash: undefined })
    await h.addUser({ username: 'twin' })
    await h.addUser({ username: 'another', id: 'twin' })
    await ann.signsIn()
  })

  it('the client has a method for each, and no other', () => {
    expect(Object.keys(admin)).to.have.members(operationNames)
  })

  for (const name of operationNames) {
    const { status = 200, body, query = z.object({}) }: Operation = operations[name]
    const needed = scopeOf(name)
    const right = requestOf(name)

    async function head(authorization: string) {
      const path = `${operations[name].route.split(' ')[1]}?${new URLSearchParams(right.query)}`
      const init = { method: 'HEAD', headers: { authorization } }
      return (await fetch(`${h.baseUrl}/admin/api${path}`, init)).status
    }

    it(`${name} answers ${status} to what is right`, async () => {
      expect((await ask(name, right)).status).to.equal(status)
    })

    it(`${name} answers 401 without a token and with a wrong one, and 405 to another method, whatever a header says of it (ADM-12)`, async () => {
      for (const authorization of ['', 'Bearer wrong']) {
        const headers = { ...newNetwork(), authorization }
        const refused = await ask(name, { ...right, headers })
        expect([refused.status, refused.code]).to.deep.equal([401, 'unauthorized'])
      }
      const routes = Object.values<Operation>(operations).map(({ route }) => route.split(' '))
      const there = routes
        .filter(([, path]) => operations[name].route.endsWith(` ${path}`))
        .map(([method]) => method)
      const override = { 'x-http-method-override': there[0] ?? '' }
      const others = ['POST', 'PATCH', 'DELETE', 'OPTIONS']
      for (const method of others.filter((each) => !there.includes(each))) {
        const wrong = await ask(name, { ...right, method, headers: override })
        expect(wrong.status).to.equal(405)
        const allowed = (wrong.headers.get('allow') ?? '').split(', ')
        expect(allowed.filter((each) => each !== 'HEAD')).to.have.members(there)
      }
    })

    it(`${name} takes ${needed}, also for HEAD, and not the two others together: 403 that names it, and nothing changes (ADM-15)`, async () => {
      await h.isIdle()
      const others = ADMIN_SCOPES.filter((scope) => scope !== needed)
      await changesNothing(h, async () => {
        const authorization = `Bearer ${tokenFor(...others)}`
        const { status, code, headers, json } = await ask(name, {
          ...right,
          headers: { authorization },
        })
        expect([status, code]).to.deep.equal([403, 'forbidden'])
        if (isRead(name)) expect(await head(authorization)).to.equal(403)
        expect(json['title']).to.equal(`This token lacks the scope ${needed}.`)
        expect(headers.get('www-authenticate')).to.equal(
          `Bearer realm="account-flows", error="insufficient_scope", scope="${needed}"`,
        )
      })
      const refused = h.eventsOf('admin_auth_failed').at(-1)
      expect(refused).to.include({ reason: 'insufficient_scope' })
      expect(refused?.details?.['scope']).to.equal(needed)
      expect(refused?.details?.['actor']).to.be.a('string').and.not.equal('')
      if (isRead(name)) expect(await head(`Bearer ${tokenFor(needed)}`)).to.equal(200)
      for (const scope of [needed, ALL]) {
        const answer = Object(await callOf(createAdminClient(h.baseUrl, tokenFor(scope)), name))
        const { schema = {} } = responsesOf(name)[status]?.content['application/json'] ?? {}
        expectDescribed(schema, 'etag' in answer ? answer.answer : answer, name)
      }
    })

    it(`${name} answers 400 to a parameter that it does not have`, async () => {
      const more = new URLSearchParams([...new URLSearchParams(right.query), ['x', '1']])
      const refused = await ask(name, { ...right, query: more })
      expect(refused.status).to.equal(400)
      expect(refused.json).to.deep.include({
        code: 'invalid_request',
        errors: [{ key: 'x', expected: 'the name of a parameter', got: 'another name' }],
      })
    })

    for (const [key, parameter] of Object.entries(query.shape)) {
      const isRequired = !z.safeParse(z.object({ [key]: parameter }), {}).success

      it(`${name} answers 400 where ${key} is ${isRequired ? 'missing or ' : ''}not as described`, async () => {
        if (isRequired) expect((await ask(name)).status).to.equal(400)
        const others = new URLSearchParams(right.query)
        for (const wrong of ['', `no such thing\0${'x'.repeat(9_000)}`]) {
          others.set(key, wrong)
          expect((await ask(name, { ...right, query: others })).status).to.equal(400)
        }
      })
    }

    if (body) {
      it(`${name} answers 400, 413 and 415 to bodies that are not as described, and nothing changes (SET-07)`, async () => {
        const texts = ['', ' ', '{', 'null', '[]', '[{}]', '26', 'true', '"text"', "{'to':'x'}"]
        const types = 'text/plain text/json application/jsonx application/x-www-form-urlencoded'
        await h.isIdle()
        await changesNothing(h, async () => {
          for (const wrong of [
            ...texts,
            '{"__proto__":"x"}',
            '{"x":"1"}'.padEnd(65_536),
            { x: '1' },
            { to: 1, user: 1, id: 1, link: 1, smtp_port: 1 },
            { to: '', user: '', id: '', link: '', smtp_port: 'x' },
            { to: 'no address', user: ['x'], id: {}, link: null },
          ]) {
            expect((await ask(name, { body: wrong })).status, JSON.stringify(wrong)).to.equal(400)
          }
          expect((await ask(name, { body: '{}'.padEnd(65_537) })).status).to.equal(413)
          for (const type of ['', 'multipart/form-data; boundary=b', ...types.split(' ')]) {
            const headers = { 'content-type': type }
            expect((await ask(name, { ...right, headers })).status, type).to.equal(415)
          }
        })
        expect((await ask(name, right)).status).to.equal(status)
      })
    }
  }

  type Refused = [name: OperationName, sent: Sent, named: string]

  /** Each of these values of one parameter is refused. */
  const values = (name: OperationName, key: string, ...wrong: unknown[]): Refused[] =>
    wrong.map((value) => [name, { [key]: value }, key])

  const noLimits = ['0', '1001', '-1', 'ten', '1.5', ['1', '2']]
  const noAddresses = ['', 'ann', 'ann@', '@b.example', 'Ann <a@b.example>', 'a@b.example\0']
  const twoAddresses = ['a@b.example, c@d.example', 'a@b.example\r\nRCPT TO:<c@d.example>']
  const noTimes = ['yesterday', '2026-01-01T00:00:00', '2026-13-01T00:00:00Z']

  /** What is refused with 400, and the parameters that the refusal names. */
  const refused: Refused[] = [
    ...values('listAudit', 'limit', ...noLimits),
    ...values('listAudit', 'type', 'password_reset_complete', '$ne', '__proto__'),
    ...values('listAudit', 'type', ['no_such_type', 'sessions_ended']),
    ...values('listAudit', 'recorded_from', ...noTimes),
    ...values('listAudit', 'account_id', ['a', 'b']),
    ...values('listAudit', 'accountId', 'a'),
    ...values('listAudit', 'account_id[$ne]', 'a'),
    ...values('listOutbox', 'limit', ...noLimits),
    ...values('listOutbox', 'state', 'sent'),
    ...(['retryMails', 'purgeMails'] as const).flatMap((name): Refused[] => [
      [name, {}, 'id'],
      [name, { all_dead: false }, 'id'],
      [name, { id: 'x', all_dead: true }, 'id'],
    ]),
    ['retryMails', { all_dead: true, before: 'yesterday' }, 'id'],
    ['purgeMails', { all_dead: true, before: new Date(0).toISOString() }, 'id'],
    ['previewMail', {}, 'template'],
    ...values('previewMail', 'template', 'no-such-mail', '../../package', '__proto__', 'test'),
    ...['xx', '../en', '', 'constructor'].map((locale): Refused => {
      return ['previewMail', { template: 'password-reset', locale }, 'locale']
    }),
    ['testMail', {}, 'to'],
    ...values('testMail', 'to', ...noAddresses, ...twoAddresses, 1, null, ['a@b.example']),
    ...values('runDoctor', 'to', ...noAddresses, ...twoAddresses),
    ...values('explainLink', 'link', '', 'x'.repeat(8193), 1, null, ['x'], { $ne: '' }),
    ...values('forgetUser', 'id', ''),
    ['forgetUser', { user: 'ann' }, 'user,id'],
    ...aboutUsers.flatMap((name): Refused[] => [
      [name, {}, 'user'],
      [name, { id: 'u1', user: 'ann' }, 'user'],
    ]),
  ]
  for (const [name, sent, named] of refused) {
    it(`${name} is refused with ${JSON.stringify(sent).slice(0, 60)}: 400 that names ${named}, and nothing changes`, async () => {
      await h.isIdle()
      await changesNothing(h, async () => {
        const problem = await refusalOf(callOf(admin, name, sent))
        expect([problem.status, problem.code]).to.deep.equal([400, 'invalid_request'])
        expect(problem.errors?.map(({ key }) => key).join()).to.equal(named)
      })
      expect(await callOf(admin, name)).to.be.an('object')
    })
  }

  it('a mail has an outcome, an account what happened to it, and a link what became of it; mails wait, and what is wrong is told, without SMTP', async () => {
    const user = await h.addUser({ username: 'full' })
    const { json } = await ask('sendReset', { body: { user: 'full' } })
    const query = { mail_id: String(json['mail_id']) }
    await eventually('the mail is sent', async () => {
      const { json } = await ask('mailOutcome', { query })
      return json['state'] === 'sent'
    })
    const { link } = await user.mail(1)
    const explained = async () => (await ask('explainLink', { body: { link } })).json
    expect(await explained()).to.include({ state: 'live', account_id: user.id })
    expect((await h.reset(link, 'a brand new password')).mode).to.equal('done')
    expect(await explained()).to.include({ state: 'used', account_id: user.id })
    const status = await ask('userStatus', { body: { id: user.id } })
    expect(status.json['links']).to.have.length(1)
    expect(status.json['events']).not.to.deep.equal([])
    const audit = await ask('listAudit', { query: { account_id: user.id, limit: '3' } })
    expect(audit.json['events']).to.have.length(3)

    const { smtp_host = '' } = (await admin.getSettings()).answer
    await h.put({ smtp_host: '' })
    const waiting = (await ask('sendReset', { body: { user: 'ann' } })).json
    await eventually('the mail waits for SMTP', async () => {
      const { mails } = (await ask('listOutbox', { query: { state: 'waiting' } })).json
      return JSON.stringify(mails).includes(String(waiting['mail_id']))
    })
    expect((await ask('runDoctor', { body: {} })).json).to.include({ ok: false })
    expect((await ask('testMail', { body: { to: 'a@b.example' } })).json).to.include({ ok: false })
    await h.put({ smtp_host })
    await h.isIdle()
  })

  it('404, 409 and 412 to what is not there, or not one alone, or another by now', async () => {
    const headers = { 'if-match': '"stale"' }
    const answers: [
      names: readonly OperationName[],
      request: Request,
      status: number,
      code: string,
    ][] = [
      [['retryMails', 'purgeMails'], { body: { id: 'nothing' } }, 404, 'unknown_mail'],
      [['putSettings'], { ...requestOf('putSettings'), headers }, 412, 'stale_settings'],
      [['unsetSettings'], { ...requestOf('unsetSettings'), headers }, 412, 'stale_settings'],
      [aboutUsers, { body: { user: 'nobody' } }, 404, 'unknown_account'],
      [aboutUsers, { body: { user: 'twin' } }, 409, 'ambiguous_account'],
    ]
    await h.isIdle()
    await changesNothing(h, async () => {
      for (const [names, request, status, code] of answers) {
        for (const name of names) {
          const refused = await ask(name, request)
          expect([refused.status, refused.code]).to.deep.equal([status, code])
          if (status === 409) expect(refused.json['candidates']).to.have.length(2)
        }
      }
    })
  })

  it('404 to a path that there is not', async () => {
    for (const path of ['', 'setting', 'settings/', 'Settings', 'settings%2f', '%2e%2e%2fx']) {
      const response = await fetch(`${h.baseUrl}/admin/api/${path}`, { headers: bearer })
      const problem = await problemOf(response, 404, 'not_found')
      expectDescribed({ $ref: '#/components/schemas/Problem' }, problem, path)
    }
  })

  it('the audit log names a token by its scopes', async () => {
    for (const [scopes, actor] of [
      [[SUPPORT], 'admin_token:support'],
      [[READ, SUPPORT], 'admin_token:read+support'],
      [[SUPPORT, SETTINGS], 'admin_token:support+settings'],
      [[ALL], 'admin_token'],
    ] as const) {
      await createAdminClient(h.baseUrl, tokenFor(...scopes)).endSessions({ user: 'ann' })
      expect(actionsOf(h, 'end_sessions').at(-1)?.details).to.include({ actor })
    }
    await admin.endSessions({ user: 'ann' })
    expect(actionsOf(h, 'end_sessions').at(-1)?.details).to.include({ actor: 'admin_token' })
  })

  for (const [code, status] of [
    ['ERR_STORE_UNAVAILABLE', 503],
    ['ERR_OF_THE_HOST', 500],
  ] as const) {
    it(`${status} where the users of the host fail with ${code}, without a word of theirs`, async () => {
      const fails = async (): Promise<never> => {
        throw Object.assign(new Error('canary of the host'), { code })
      }
      const failing = { findById: fails, findByUsername: fails, findByVerifiedEmail: fails }
      const users: UserStore = { ...memoryUsers(), ...failing }
      const broken = await startHarness({ flows: { users }, mayLogErrors: true })
      const ask = documentedAnswers(broken)
      for (const name of aboutUsers) {
        const failed = await ask(name, requestOf(name))
        expect(failed.status).to.equal(status)
        expect(JSON.stringify(failed.json)).not.to.include('canary')
      }
      expect((await ask('getSettings')).status).to.equal(200)
      await broken.close()
    })
  }
})

describe('createAdminClient()', () => {
  const h = suiteHarness({ basePath: '/accounts' })
  const admin = suiteAdmin(h)

  it('takes the base URL with and without a slash at its end', async () => {
    for (const url of [`${h.baseUrl}/`, `${h.baseUrl}//`, h.baseUrl]) {
      const { answer } = await createAdminClient(url, ADMIN_TOKEN).getSettings()
      expect(answer).to.include({ smtp_host: '127.0.0.1' })
    }
  })

  it('throws what was refused with its status, its code, its words and what was wrong, and nothing changes', () =>
    changesNothing(h, async () => {
      const stranger = createAdminClient(h.baseUrl, 'x'.repeat(32))
      const refusals: [code: string, status: number, work: () => Promise<unknown>][] = [
        ['stale_settings', 412, () => admin.unsetSettings(['smtp_host'], { ifMatch: '"stale"' })],
        ['unauthorized', 401, () => stranger.putSettings({ smtp_port: '1' })],
        ['invalid_settings', 400, () => admin.putSettings({ smtp_port: '0' })],
      ]
      for (const [code, status, work] of refusals) {
        const thrown = await thrownBy(work())
        expect(thrown).to.include({ code, status, name: 'AdminApiError' })
        expect(thrown.message).to.equal(thrown.problem?.title)
        if (status !== 400) continue
        const expected = 'a decimal number from 1 to 65535'
        expect(thrown.problem?.errors).to.deep.equal([{ key: 'smtp_port', expected, got: '"0"' }])
      }
    }))
})

describe('The admin API at another path (adminPath)', () => {
  const h = suiteHarness({ basePath: '/accounts', flows: { adminPath: '/staff' } })

  it('answers there, to a client that knows the path, and nowhere else', async () => {
    const admin = createAdminClient(h.baseUrl, ADMIN_TOKEN, '/staff')
    expect((await admin.getSettings()).answer).to.include({ smtp_host: '127.0.0.1' })
    const asked = createAdminClient(h.baseUrl, ADMIN_TOKEN).getSettings()
    expect(await thrownBy(asked)).to.include({ code: 'not_an_admin_api', status: 404 })
  })

  it('is what doctor asks there, and it names no other path', async () => {
    const { stdout } = await cliOf(h).run(['doctor', '--admin-path', '/staff'])
    expect(stdout)
      .to.match(/^ok +admin_api: /m)
      .and.match(/^ok +token: /m)
    expect(stdout).to.not.include('/admin/api')
    const { stdout: other } = await cliOf(h).ended(['doctor'], 3)
    expect(other).to.match(/^FAILED +admin_api: \S+\/admin\/api answers 404/m)
  })
})

describe('createAdminClient(), where there is no admin API,', () => {
  let served: Served
  let answer: (req: IncomingMessage, res: ServerResponse) => void
  let client: AdminClient

  beforeEach(async () => {
    served = await serve((req, res) => answer(req, res))
    client = createAdminClient(served.url, ADMIN_TOKEN)
  })
  afterEach(() => served.close())

  it('throws unreachable, with the address and the reason, where nobody listens, or the connection breaks off', async () => {
    answer = (req) => req.socket.destroy()
    expect(await thrownBy(client.rotateKeys())).to.include({ code: 'unreachable' })
    await served.close()
    const thrown = await thrownBy(client.getSettings())
    expect(thrown).to.include({ code: 'unreachable', status: undefined, problem: undefined })
    expect(thrown.message).to.equal(`${served.url} cannot be reached: ECONNREFUSED.`)
  })

  for (const type of ['application/json', 'text/html']) {
    it(`reads no answer of ${type} that never ends`, async () => {
      const closed = new Promise((resolve) => {
        answer = (req, res) => {
          res.writeHead(200, { 'content-type': type })
          const more = () => {
            while (res.write('['.repeat(65_536))) continue
          }
          res.on('drain', more)
          more()
          req.socket.once('close', resolve)
        }
      })
      const thrown = await thrownBy(client.getSettings())
      expect(thrown).to.include({ code: 'not_an_admin_api', status: 200 })
      await closed
    })
  }

  it('ends a request that is aborted, before and after it is sent', async () => {
    let closed: Promise<unknown> | undefined
    const stop = new AbortController()
    answer = (req) => {
      closed = once(req.socket, 'close')
      stop.abort()
    }
    const { signal } = stop
    expect(await thrownBy(client.listAudit({}, { signal }))).to.include({ code: 'aborted' })
    await closed
    expect(await thrownBy(client.putSettings({}, { signal }))).to.include({ code: 'aborted' })
  })

  it('follows no redirect, and sends the token to nobody else', async () => {
    const reached: string[] = []
    const elsewhere = await serve((req, res) => {
      reached.push(JSON.stringify(req.headers))
      res.writeHead(200, { 'content-type': 'application/json' }).end('{}')
    })
    const location = `${elsewhere.url}/admin/api/settings`
    for (const status of [301, 302, 303, 307, 308]) {
      answer = (_req, res) => res.writeHead(status, { location }).end()
      for (const work of [() => client.getSettings(), () => client.putSettings({})]) {
        expect(await thrownBy(work())).to.include({ code: 'not_an_admin_api', status })
      }
    }
    expect(reached).to.deep.equal([])
    await elsewhere.close()
  })

  it('refuses a path that is none of the service, which may lead to another host, and sends nothing', async () => {
    const reached: string[] = []
    answer = (req, res) => {
      reached.push(`${req.url}`)
      res.writeHead(404).end()
    }
    const { host } = new URL(served.url)
    const others = ['', '/', 'staff', '/staff/', '//staff', '/a b', '/a?x', '/a#x', ':1/staff']
    for (const bad of [`@${host}/staff`, `.idp.example/staff`, ...others, null, 42]) {
      const ask = () => createAdminClient(served.url, ADMIN_TOKEN, bad as string).getSettings()
      expect(ask, String(bad)).to.throw(TypeError, 'adminPath')
    }
    expect(reached).to.deep.equal([])
    const honest = createAdminClient(served.url, ADMIN_TOKEN, '/shop/admin').getSettings()
    expect(await thrownBy(honest)).to.include({ status: 404 })
    expect(reached).to.deep.equal(['/shop/admin/settings'])
  })

  const problem = (more: string) => `{"title":"t","code":"c","status":400,${more}}`
  const others: Record<string, [status: number, type: string, body: string]> = {
    'a page': [200, 'text/html', '<p>Welcome</p>'],
    'a page that is missing': [404, 'text/html', '<p>Not found</p>'],
    'another object': [200, 'application/json', '{}'],
    'JSON that is a list': [200, 'application/json', '[]'],
    'JSON that is null': [200, 'application/json', 'null'],
    'JSON that is a text': [200, 'application/json', '"settings"'],
    'broken JSON': [200, 'application/json', '{"smtp_host":'],
    'JSON of another type': [200, 'text/plain', '{}'],
    nothing: [204, 'application/json', ''],
    'an error of another kind': [500, 'application/json', '{"error":"internal"}'],
    'a problem without a code': [400, 'application/problem+json', '{"title":"Bad"}'],
  }
  for (const more of ['"errors":5', '"errors":null', '"errors":[null]', '"candidates":"x"'])
    others[`a problem with ${more}`] = [400, 'application/problem+json', problem(more)]
  const nobody = '"candidates":[{"id":5,"username":null}]'
  others[`a problem with ${nobody}`] = [400, 'application/problem+json', problem(nobody)]
  for (const [what, [status, type, body]] of Object.entries(others)) {
    it(`throws not_an_admin_api, with the status, where the answer is ${what}`, async () => {
      answer = (_req, res) => res.writeHead(status, { 'content-type': type }).end(body)
      for (const work of [() => client.getSettings(), () => client.userStatus({ user: 'ann' })]) {
        const thrown = await thrownBy(work())
        expect(thrown).to.include({ code: 'not_an_admin_api', status, problem: undefined })
        expect(thrown.message).to.include(served.url).and.include(String(status))
      }
    })
  }

  it('throws a TypeError for what is no URL, without a secret in it, and for what is no token', () => {
    const others = ['', 'idp.example', '/admin', 'ftp://idp.example', 'javascript:alert(1)']
    const more = ['?x=1', '#x'].map((end) => `https://idp.example${end}`)
    const withUser = ['user', 'user:canary'].map((user) => `https://${user}@idp.example`)
    const urls = [...others, ...more, ...withUser, undefined, null, 42]
    for (const bad of urls) {
      expect(() => createAdminClient(bad as string, ADMIN_TOKEN), String(bad))
        .to.throw(TypeError, 'url')
        .with.property('message')
        .that.does.not.include('canary')
    }
    for (const bad of ['', ' ', 'two words', 'line\nbreak', 'ümlaut', undefined, null, 42]) {
      const create = () => createAdminClient('https://idp.example', bad as string)
      expect(create, String(bad)).to.throw(TypeError, 'token')
    }
  })
})
