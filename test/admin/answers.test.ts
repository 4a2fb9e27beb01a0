import { expect } from 'chai'
import * as z from 'zod'
import { memoryUsers, type AccountFlowsOptions, type UserStore } from '../../src/index.ts'
import { operations, type Operation } from '../../src/admin/description.ts'
import { ADMIN_AUDIENCE, ADMIN_ISSUER, tokenIssuer } from '../support/admin-tokens.ts'
import {
  documentedAnswers,
  expectDescribed,
  operationNames,
  type DocumentedRequest,
  type OperationName,
} from '../support/documented-answers.ts'
import { eventually } from '../support/eventually.ts'
import { ADMIN_TOKEN, startHarness, type Harness } from '../support/harness.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { createUserAgent } from '../support/user-agent.ts'

/** A request of each operation that is right. */
const RIGHT: Record<OperationName, DocumentedRequest> = {
  getSettings: {},
  settingsHistory: {},
  putSettings: { body: { smtp_from_name: 'Accounts' } },
  unsetSettings: { query: 'key=smtp_from_name' },
  testMail: { body: { to: 'ann@users.example' } },
  previewMail: { query: 'template=password-reset' },
  mailOutcome: { query: 'mail_id=unknown' },
  runDoctor: { body: { to: 'ann@users.example' } },
  userStatus: { body: { user: 'ann' } },
  sendReset: { body: { user: 'ann' } },
  sendVerification: { body: { user: 'new' } },
  inviteUser: { body: { user: 'invited' } },
  endSessions: { body: { user: 'ann' } },
  verifyUser: { body: { user: 'ann' } },
  unverifyUser: { body: { user: 'ann' } },
  forgetUser: { body: { id: 'nobody' } },
  listOutbox: {},
  showMail: { query: 'mail_id=unknown' },
  retryMails: { body: { all_dead: true } },
  purgeMails: { body: { all_dead: true } },
  listAudit: {},
  explainLink: { body: { link: 'https://idp.example/no-link' } },
  rotateKeys: {},
}

describe('Every answer of the admin API is as docs/openapi.json says:', () => {
  const h = suiteHarness({ flows: { trustedProxies: 1 }, mayLogErrors: true })
  let ask: ReturnType<typeof documentedAnswers>
  let networks = 0

  before(async () => {
    ask = documentedAnswers(h)
    await h.addUser({ username: 'ann' })
    await h.addUser({ username: 'new', emailVerified: false })
    await h.addUser({ username: 'invited', passwordHash: undefined })
    await h.addUser({ username: 'twin' })
    await h.addUser({ username: 'another', id: 'twin' })
    await h.signIn(createUserAgent(), 'ann')
  })

  // Failures are limited by network.
  const fromAnywhere = () => {
    networks += 1
    return { 'x-forwarded-for': `10.1.${networks >> 8}.${networks & 255}` }
  }

  for (const name of operationNames) {
    const { status = 200, body, query = z.object({}) }: Operation = operations[name]

    it(`${name} answers ${status} to what is right`, async () => {
      expect((await ask(name, RIGHT[name])).status).to.equal(status)
    })

    it(`${name} answers 401 without a token and with a wrong one, and 405 to another method`, async () => {
      for (const authorization of ['', 'Bearer wrong']) {
        const headers = { ...fromAnywhere(), authorization }
        const refused = await ask(name, { ...RIGHT[name], headers })
        expect(refused.status).to.equal(401)
        expect(refused.json).to.include({ status: 401, code: 'unauthorized' })
      }
      const wrong = await ask(name, { method: 'PATCH' })
      expect(wrong.status).to.equal(405)
      const [, path] = operations[name].route.split(' ')
      const routes = Object.values<Operation>(operations).map(({ route }) => route.split(' '))
      const there = routes.filter((one) => one[1] === path)
      expect(
        (wrong.headers.get('allow') ?? '').split(', ').filter((method) => method !== 'HEAD'),
      ).to.have.members(there.map(([method]) => method))
    })

    it(`${name} answers 400 to a parameter that it does not have`, async () => {
      const { query: right } = RIGHT[name]
      const refused = await ask(name, { ...RIGHT[name], query: `${right ? `${right}&` : ''}x=1` })
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
        const others = new URLSearchParams(RIGHT[name].query)
        others.delete(key)
        others.append(key, '')
        expect((await ask(name, { ...RIGHT[name], query: String(others) })).status).to.equal(400)
        others.set(key, `no such thing\0${'x'.repeat(9_000)}`)
        expect((await ask(name, { ...RIGHT[name], query: String(others) })).status).to.equal(400)
      })
    }

    if (body) {
      it(`${name} answers 400, 413 and 415 to bodies that are not as described`, async () => {
        const { query: right } = RIGHT[name]
        const send = (wrong: unknown, headers = {}) =>
          ask(name, { ...(right !== undefined && { query: right }), body: wrong, headers })
        for (const wrong of [
          '',
          '{',
          'null',
          '[]',
          '"text"',
          { x: '1' },
          '{"__proto__":"x"}',
          { to: 1, user: 1, id: 1, link: 1, smtp_port: 1 },
          { to: '', user: '', id: '', link: '', smtp_port: 'x' },
          { to: 'no address', user: ['x'], id: {}, link: null },
        ]) {
          expect((await send(wrong)).status, JSON.stringify(wrong)).to.equal(400)
        }
        expect((await send('{}'.padEnd(65_537))).status).to.equal(413)
        const typed = { 'content-type': 'text/plain' }
        expect((await send('{}', typed)).status).to.equal(415)
        expect((await ask(name, { ...RIGHT[name] })).status).to.equal(status)
      })
    }
  }

  it('each mail has a preview, in a locale that there is', async () => {
    for (const template of ['password-reset', 'email-verification', 'password-changed']) {
      const { json } = await ask('previewMail', { query: `template=${template}&locale=en` })
      expect(json['subject']).to.be.a('string').and.not.equal('')
    }
    const refused = await ask('previewMail', { query: 'template=password-reset&locale=tlh' })
    expect([refused.status, refused.json['code']]).to.deep.equal([400, 'invalid_request'])
  })

  it('a mail has an outcome, an account what happened to it, and a link what became of it', async () => {
    const user = await h.addUser({ username: 'full' })
    const asked = await ask('sendReset', { body: { user: 'full' } })
    const mailId = String(asked.json['mail_id'])
    const sent = await eventually('the mail is sent', async () => {
      const { json } = await ask('mailOutcome', { query: `mail_id=${mailId}` })
      return json['state'] === 'sent' ? json : undefined
    })
    expect(sent).to.include({ mail_id: mailId, state: 'sent' })
    const { link } = await h.mail.mailTo(user.email ?? '')
    const live = await ask('explainLink', { body: { link } })
    expect(live.json).to.include({ state: 'live', account_id: user.id })
    expect((await h.reset(link, 'a brand new password')).mode).to.equal('done')
    const used = await ask('explainLink', { body: { link } })
    expect(used.json).to.include({ state: 'used', account_id: user.id })
    const { json } = await ask('userStatus', { body: { id: user.id } })
    expect(json['links']).to.have.length(1)
    expect(json['events']).not.to.deep.equal([])
    const audit = await ask('listAudit', { query: `account_id=${user.id}&limit=3` })
    expect(audit.json['events']).to.have.length(3)
  })

  it('mails that wait and dead letters are listed', async () => {
    const patient = await startHarness({ settings: { smtp_host: '' } })
    const askPatient = documentedAnswers(patient)
    const user = await patient.addUser({ username: 'patient' })
    await askPatient('sendReset', { body: { user: 'patient' } })
    const listed = await eventually('the mail waits for SMTP', async () => {
      const { json } = await askPatient('listOutbox', { query: `account_id=${user.id}` })
      return [json['mails']].flat().length === 1 ? json : undefined
    })
    expect(listed['mails']).to.have.length(1)
    expect((await askPatient('runDoctor', { body: {} })).json).to.have.property('ok')
    expect((await askPatient('testMail', { body: { to: 'a@b.example' } })).json).to.include({
      ok: false,
    })
    await patient.close()
  })

  it('404, 409 and 412 to what is not there, or not one alone, or another by now', async () => {
    for (const name of ['userStatus', 'sendReset', 'sendVerification', 'endSessions'] as const) {
      const unknown = await ask(name, { body: { user: 'nobody' } })
      expect([unknown.status, unknown.json['code']]).to.deep.equal([404, 'unknown_account'])
      const two = await ask(name, { body: { user: 'twin' } })
      expect([two.status, two.json['code']]).to.deep.equal([409, 'ambiguous_account'])
      expect(two.json['candidates']).to.have.length(2)
      const both = await ask(name, { body: { user: 'ann', id: 'u1' } })
      expect([both.status, both.json['code']]).to.deep.equal([400, 'invalid_request'])
    }
    for (const name of ['retryMails', 'purgeMails'] as const) {
      const unknown = await ask(name, { body: { id: 'nothing' } })
      expect([unknown.status, unknown.json['code']]).to.deep.equal([404, 'unknown_mail'])
    }
    for (const name of ['putSettings', 'unsetSettings'] as const) {
      const headers = { 'if-match': '"stale"' }
      const stale = await ask(name, { ...RIGHT[name], headers })
      expect([stale.status, stale.json['code']]).to.deep.equal([412, 'stale_settings'])
    }
  })

  it('404 to a path that there is not', async () => {
    for (const path of [
      '',
      'setting',
      'settings/',
      'Settings',
      'settings%2f',
      '__proto__',
      '%2e%2e%2fx',
    ]) {
      const response = await fetch(`${h.baseUrl}/admin/api/${path}`, {
        headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
      })
      const problem = await response.json()
      expectDescribed('Problem', problem)
      expect([response.status, problem.code]).to.deep.equal([404, 'not_found'])
    }
  })

  it('429 where too many show no right token', async () => {
    const headers = { ...fromAnywhere(), authorization: 'Bearer wrong' }
    for (let count = 0; count < 60; count += 1) await ask('getSettings', { headers })
    for (const name of operationNames) {
      const refused = await ask(name, { ...RIGHT[name], headers })
      expect([refused.status, refused.json['code']]).to.deep.equal([429, 'too_many_requests'])
    }
  })
})

describe('Every answer of the admin API is as docs/openapi.json says, where it fails:', () => {
  const running: Harness[] = []

  afterEach(async () => {
    for (const h of running.splice(0)) await h.close()
  })

  async function start(flows: Partial<AccountFlowsOptions>) {
    const h = await startHarness({ flows, mayLogErrors: true })
    running.push(h)
    return h
  }

  it('403 to a genuine token without the scope', async () => {
    const issuer = tokenIssuer()
    const h = await start({
      adminToken: undefined,
      adminJwt: {
        issuer: ADMIN_ISSUER,
        audience: ADMIN_AUDIENCE,
        algorithms: ['RS256'],
        keys: issuer.jwks,
      },
    })
    await h.addUser({ username: 'ann' })
    const narrow = documentedAnswers(h, issuer.token({ scope: 'openid' }))
    for (const name of operationNames) {
      const refused = await narrow(name, RIGHT[name])
      expect([refused.status, refused.json['code']]).to.deep.equal([403, 'forbidden'])
    }
    expect((await documentedAnswers(h, issuer.token())('getSettings')).status).to.equal(200)
  })

  for (const [code, status] of [
    ['ERR_STORE_UNAVAILABLE', 503],
    ['ERR_OF_THE_HOST', 500],
  ] as const) {
    it(`${status} where the users of the host fail with ${code}, without a word of theirs`, async () => {
      const failing = async (): Promise<never> => {
        throw Object.assign(new Error('canary of the host'), { code })
      }
      const users: UserStore = {
        ...memoryUsers(),
        findById: failing,
        findByUsername: failing,
        findByVerifiedEmail: failing,
      }
      const ask = documentedAnswers(await start({ users }))
      for (const name of ['userStatus', 'sendReset', 'sendVerification', 'endSessions'] as const) {
        const failed = await ask(name, RIGHT[name])
        expect(failed.status).to.equal(status)
        expect(JSON.stringify(failed.json)).not.to.include('canary')
      }
      expect((await ask('getSettings')).status).to.equal(200)
    })
  }
})
