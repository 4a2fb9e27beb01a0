import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { expect } from 'chai'
import { AdminApiError, createAdminClient, type AdminClient } from '../../src/admin/client.ts'
import { expectAnswer, operationNames, type OperationName } from '../support/documented-answers.ts'
import { ADMIN_TOKEN } from '../support/harness.ts'
import { serve, type Served } from '../support/serve.ts'
import { suiteHarness } from '../support/suite-harness.ts'

async function thrownBy(work: () => Promise<unknown>): Promise<AdminApiError> {
  const thrown = await work().then(
    () => undefined,
    (error: unknown) => error,
  )
  if (!(thrown instanceof AdminApiError)) throw new Error(`no AdminApiError: ${String(thrown)}`)
  const { message, problem, code } = thrown
  for (const text of [
    message,
    String(thrown.stack),
    JSON.stringify({ ...thrown, problem, code }),
  ]) {
    expect(text).not.to.include(ADMIN_TOKEN)
  }
  return thrown
}

describe('createAdminClient()', () => {
  const h = suiteHarness({ basePath: '/accounts' })
  let admin: AdminClient

  before(async () => {
    admin = createAdminClient(h.baseUrl, ADMIN_TOKEN)
    await h.addUser({ username: 'ann' })
    await h.addUser({ username: 'new', emailVerified: false })
    await h.addUser({ username: 'invited', passwordHash: undefined })
  })

  const calls: Record<OperationName, () => Promise<unknown>> = {
    getSettings: async () => (await admin.getSettings()).answer,
    settingsHistory: async () => (await admin.settingsHistory()).answer,
    putSettings: async () => (await admin.putSettings({ smtp_from_name: 'Accounts' })).answer,
    unsetSettings: async () => (await admin.unsetSettings(['smtp_from_name'])).answer,
    testMail: () => admin.testMail({ to: 'ann@users.example' }),
    previewMail: () => admin.previewMail({ template: 'password-reset', locale: 'en' }),
    mailOutcome: () => admin.mailOutcome({ mail_id: 'none' }),
    runDoctor: () => admin.runDoctor(),
    userStatus: () => admin.userStatus({ user: 'ann' }),
    sendReset: () => admin.sendReset({ user: 'ann' }),
    sendVerification: () => admin.sendVerification({ user: 'new' }),
    inviteUser: () => admin.inviteUser({ user: 'invited' }),
    endSessions: () => admin.endSessions({ user: 'ann' }),
    verifyUser: () => admin.verifyUser({ user: 'ann' }),
    unverifyUser: () => admin.unverifyUser({ user: 'ann' }),
    forgetUser: () => admin.forgetUser({ id: 'nobody' }),
    listOutbox: () => admin.listOutbox({ state: 'waiting', limit: 5 }),
    showMail: () => admin.showMail({ mail_id: 'none' }),
    retryMails: () => admin.retryMails({ all_dead: true }),
    purgeMails: () => admin.purgeMails({ all_dead: true }),
    listAudit: () => admin.listAudit({ type: ['admin_action', 'settings_changed'], limit: 5 }),
    explainLink: () => admin.explainLink({ link: 'https://idp.example/no-link' }),
    rotateKeys: () => admin.rotateKeys(),
  }

  it('has a method for each operation, and no other', () => {
    expect(Object.keys(admin)).to.have.members(operationNames)
  })

  for (const name of operationNames) {
    it(`answers ${name}() as the server does`, async () => {
      const answer = await calls[name]()
      expectAnswer(name, answer)
    })
  }

  it('takes the base URL with and without a slash at its end', async () => {
    for (const url of [`${h.baseUrl}/`, `${h.baseUrl}//`, h.baseUrl]) {
      const { answer } = await createAdminClient(url, ADMIN_TOKEN).getSettings()
      expect(answer).to.include({ smtp_host: '127.0.0.1' })
    }
  })

  it('hands several values and a filter of the audit log on', async () => {
    await admin.putSettings({ smtp_from_name: 'For the audit log' })
    await admin.rotateKeys()
    const { events } = await admin.listAudit({ type: ['settings_changed'], limit: 1 })
    expect(events.map(({ type }) => type)).to.deep.equal(['settings_changed'])
    const both = await admin.listAudit({ type: ['settings_changed', 'admin_action'] })
    expect(new Set(both.events.map(({ type }) => type))).to.deep.equal(
      new Set(['settings_changed', 'admin_action']),
    )
  })

  it('tells the ETag, and changes nothing in a dry run or with a stale ETag', async () => {
    const { answer: before, etag } = await admin.getSettings()
    const tried = await admin.putSettings({ smtp_from_name: 'Tried' }, { dryRun: true })
    expect(tried.answer).to.include({ smtp_from_name: 'Tried' })
    expect(tried.etag).to.equal(etag)
    await admin.unsetSettings(['smtp_host'], { dryRun: true })
    expect(await admin.getSettings()).to.deep.equal({ answer: before, etag })

    const changed = await admin.putSettings({ smtp_from_name: 'Changed' }, { ifMatch: etag })
    for (const work of [
      () => admin.putSettings({ smtp_from_name: 'Stale' }, { ifMatch: etag }),
      () => admin.unsetSettings(['smtp_host'], { ifMatch: etag }),
    ]) {
      expect(await thrownBy(work)).to.include({ code: 'stale_settings', status: 412 })
    }
    expect(await admin.getSettings()).to.deep.equal({
      answer: { ...before, smtp_from_name: 'Changed' },
      etag: changed.etag,
    })
  })

  it('throws what is wrong with settings, key by key, and nothing changes', async () => {
    const before = await admin.getSettings()
    const thrown = await thrownBy(() => admin.putSettings({ smtp_port: '0', smtp_tls: 'auto' }))
    expect(thrown).to.include({ code: 'invalid_settings', status: 400, name: 'AdminApiError' })
    expect(thrown.message).to.equal(thrown.problem?.title)
    expect(thrown.problem?.errors).to.deep.equal([
      { key: 'smtp_port', expected: 'a decimal number from 1 to 65535', got: '"0"' },
    ])
    expect(await admin.getSettings()).to.deep.equal(before)
  })

  it('throws unauthorized where the token is wrong, and nothing changes', async () => {
    const before = await admin.getSettings()
    const stranger = createAdminClient(h.baseUrl, 'x'.repeat(32))
    for (const work of [
      () => stranger.getSettings(),
      () => stranger.putSettings({ smtp_from_name: 'X' }),
    ]) {
      expect(await thrownBy(work)).to.include({ code: 'unauthorized', status: 401 })
    }
    expect(await admin.getSettings()).to.deep.equal(before)
  })
})

describe('The admin API at another path (adminPath)', () => {
  const h = suiteHarness({ basePath: '/accounts', flows: { adminPath: '/staff' } })

  it('answers there, to a client that knows the path, and nowhere else', async () => {
    const admin = createAdminClient(h.baseUrl, ADMIN_TOKEN, '/staff')
    expect((await admin.getSettings()).answer).to.include({ smtp_host: '127.0.0.1' })
    const asked = createAdminClient(h.baseUrl, ADMIN_TOKEN).getSettings()
    expect(await thrownBy(() => asked)).to.include({ code: 'not_an_admin_api', status: 404 })
  })
})

describe('createAdminClient(), where there is no admin API,', () => {
  let served: Served
  let answer: (req: IncomingMessage, res: ServerResponse) => void

  beforeEach(async () => {
    served = await serve((req, res) => answer(req, res))
  })
  afterEach(() => served.close())

  const client = () => createAdminClient(served.url, ADMIN_TOKEN)

  it('throws unreachable, with the address and the reason, where nobody listens', async () => {
    await served.close()
    const thrown = await thrownBy(() => client().getSettings())
    expect(thrown).to.include({ code: 'unreachable', status: undefined, problem: undefined })
    expect(thrown.message).to.equal(`${served.url} cannot be reached: ECONNREFUSED.`)
  })

  it('throws unreachable where the connection breaks off', async () => {
    answer = (req) => req.socket.destroy()
    expect(await thrownBy(() => client().rotateKeys())).to.include({ code: 'unreachable' })
  })

  for (const more of [
    '"errors":5',
    '"errors":null',
    '"errors":[null]',
    '"candidates":"x"',
    '"candidates":[{"id":5,"username":null}]',
  ]) {
    it(`takes no problem with ${more}`, async () => {
      answer = (_req, res) =>
        res
          .writeHead(400, { 'content-type': 'application/problem+json' })
          .end(`{"title":"t","code":"c","status":400,${more}}`)
      expect(await thrownBy(() => client().getSettings())).to.include({
        code: 'not_an_admin_api',
        problem: undefined,
      })
    })
  }

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
      const thrown = await thrownBy(() => client().getSettings())
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
    expect(await thrownBy(() => client().listAudit({}, { signal }))).to.include({ code: 'aborted' })
    await closed
    expect(await thrownBy(() => client().putSettings({}, { signal }))).to.include({
      code: 'aborted',
    })
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
      for (const work of [
        () => client().getSettings(),
        () => client().putSettings({ smtp_port: '25' }),
      ]) {
        expect(await thrownBy(work)).to.include({ code: 'not_an_admin_api', status })
      }
    }
    expect(reached).to.deep.equal([])
    await elsewhere.close()
  })

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
  for (const [what, [status, type, body]] of Object.entries(others)) {
    it(`throws not_an_admin_api, with the status, where the answer is ${what}`, async () => {
      answer = (_req, res) => res.writeHead(status, { 'content-type': type }).end(body)
      for (const work of [
        () => client().getSettings(),
        () => client().userStatus({ user: 'ann' }),
      ]) {
        const thrown = await thrownBy(work)
        expect(thrown).to.include({ code: 'not_an_admin_api', status, problem: undefined })
        expect(thrown.message).to.include(served.url).and.include(String(status))
      }
    })
  }

  for (const bad of [
    '',
    'idp.example',
    '/admin',
    'ftp://idp.example',
    'javascript:alert(1)',
    'https://idp.example?x=1',
    'https://idp.example#x',
    'https://user@idp.example',
    'https://user:canary@idp.example',
    undefined,
    null,
    42,
  ]) {
    it(`throws a TypeError for the URL ${JSON.stringify(bad) ?? 'undefined'}, without a secret in it`, () => {
      expect(() => createAdminClient(bad as string, ADMIN_TOKEN))
        .to.throw(TypeError, 'url')
        .with.property('message')
        .that.does.not.include('canary')
    })
  }

  for (const bad of ['', ' ', 'two words', 'line\nbreak', 'ümlaut', undefined, null, 42]) {
    it(`throws a TypeError for the token ${JSON.stringify(bad) ?? 'undefined'}`, () => {
      const create = () => createAdminClient('https://idp.example', bad as string)
      expect(create).to.throw(TypeError, 'token')
    })
  }
})
