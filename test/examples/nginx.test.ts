import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import bcrypt from 'bcrypt'
import { expect } from 'chai'
import { eventually } from '../support/eventually.ts'
import { smtpSettings } from '../support/example-requests.ts'
import { startExampleServer, type ExampleServer } from '../support/example-server.ts'
import { freePort } from '../support/free-port.ts'
import { startMailServer, type MailServer } from '../support/mail-server.ts'
import { nginxProgram, startNginx } from '../support/nginx.ts'
import { createRelyingParty, followWithin } from '../support/relying-party.ts'
import { leaveOut } from '../support/setup-advice.ts'
import { suiteFolder } from '../support/suite-folder.ts'
import { createUserAgent, type Answer, type UserAgent } from '../support/user-agent.ts'

const CLIENT = { client_id: 'app', client_secret: 'a-secret-of-the-tests-long-enough' }
const REDIRECT_URI = 'https://app.example/callback'
const PASSWORD = 'a password of the tests'
const NEW_PASSWORD = 'a brand new password'
/** What a stranger may send, in the hope that somebody believes it. */
const FORGED = {
  'x-forwarded-for': '203.0.113.9',
  'x-forwarded-host': 'evil.example',
  'x-forwarded-proto': 'http',
}
const TRUST_ANY = 'NODE_TLS_REJECT_UNAUTHORIZED'

const userNamed = (username: string, email_verified: boolean) => ({
  username,
  email: `${username}@example.com`,
  email_verified,
  password_hash: bcrypt.hashSync(PASSWORD, 4),
})

describe('The example in production, behind examples/deploy/nginx.conf [full]', function () {
  this.timeout(120_000)
  const file = suiteFolder()
  const ends: (() => Promise<unknown>)[] = []
  let server: ExampleServer
  let mail: MailServer
  let plain: number
  let baseUrl: string

  before(async function () {
    const program = await nginxProgram().catch((error: Error) => leaveOut(this, error.message))
    mail = await startMailServer()
    ends.unshift(() => mail.close())
    const users = [userNamed('ann', true), userNamed('ben', false), userNamed('cy', false)]
    const clients = [{ ...CLIENT, redirect_uris: [REDIRECT_URI] }]
    const settings = { ...smtpSettings(mail.port), require_email_verification: 'true' }
    await writeFile(file('seed.json'), JSON.stringify({ users, clients }))
    await writeFile(file('settings.json'), JSON.stringify(settings))
    const [tls, service] = [await freePort(), await freePort()]
    plain = await freePort()
    server = await startExampleServer({
      PORT: String(service),
      BASE_URL: `https://localhost:${tls}`,
      NODE_ENV: 'production',
      TRUST_PROXY: '1',
      SEED_FILE: file('seed.json'),
      SETTINGS_FILE: file('settings.json'),
    })
    ends.unshift(server.kill)
    baseUrl = server.baseUrl
    ends.unshift(await startNginx(program, file('nginx'), { plain, tls, service }))
    process.env[TRUST_ANY] = '0'
  })

  after(async () => {
    delete process.env[TRUST_ANY]
    for (const end of ends) await end()
  })

  const follow = async (agent: UserAgent, answer: Promise<Answer>) =>
    followWithin(agent, baseUrl, await answer)
  const party = () =>
    createRelyingParty(`${baseUrl}/oauth2`, {
      clientId: CLIENT.client_id,
      clientSecret: CLIENT.client_secret,
      redirectUri: REDIRECT_URI,
    })

  async function logIn(agent: UserAgent, url: URL, username: string, password = PASSWORD) {
    const page = await follow(agent, agent.get(url))
    expect(page.page, page.text).to.equal('login')
    const form = { ...page.hidden, username, password }
    return follow(agent, agent.post(`${baseUrl}/oauth2/login`, form, { ...FORGED }))
  }

  async function expectTokens(
    { exchange }: Awaited<ReturnType<typeof party>>,
    request: Parameters<typeof exchange>[0],
    { location = 'none:' }: Answer,
  ) {
    expect((await exchange(request, location)).claims()?.iss).to.equal(`${baseUrl}/oauth2`)
  }

  async function logs() {
    const names = (await readdir(file('nginx'))).filter((name) => name.endsWith('.log'))
    const texts = await Promise.all(
      names.map((name) => readFile(join(file('nginx'), name), 'utf8')),
    )
    return texts.join('')
  }

  it('resets a password, and takes no word of a stranger for an address or a host', async () => {
    const agent = createUserAgent()
    const form = { identifier: 'ann' }
    const sent = await agent.post(`${baseUrl}/oauth2/forgot-password`, form, FORGED)
    expect([sent.status, sent.mode]).to.deep.equal([200, 'sent'])
    const { link } = await mail.mailTo('ann@example.com')
    expect(link).to.match(new RegExp(`^${baseUrl}/oauth2/reset-password\\?token=`))
    const page = await agent.get(link, FORGED)
    expect([page.status, page.mode]).to.deep.equal([200, 'form'])
    const passwords = { password: NEW_PASSWORD, confirm_password: NEW_PASSWORD }
    const url = `${baseUrl}/oauth2/reset-password`
    const done = await agent.post(url, { ...page.hidden, ...passwords }, FORGED)
    expect([done.status, done.mode]).to.deep.equal([200, 'done'])

    const app = await party()
    const request = await app.begin()
    await expectTokens(app, request, await logIn(agent, request.url, 'ann', NEW_PASSWORD))
    const headers = { authorization: `Bearer ${server.adminToken}` }
    const events = await agent.get(
      `${baseUrl}/admin/api/audit?type=password_reset_completed`,
      headers,
    )
    expect(events.text).to.include('127.0.0.1').and.to.not.include(FORGED['x-forwarded-for'])
    const discovery = await agent.get(`${baseUrl}/oauth2/.well-known/openid-configuration`, FORGED)
    expect(discovery.text).to.include(`${baseUrl}/oauth2/token`).and.not.include('evil.example')
    expect(discovery.text).to.not.include('http:')
  })

  it('verifies an address in the login, and the client gets its code', async () => {
    const app = await party()
    const request = await app.begin()
    const agent = createUserAgent()
    const blocked = await logIn(agent, request.url, 'ben')
    expect([blocked.status, blocked.mode]).to.deep.equal([200, 'blocked'])
    const { link } = await mail.mailTo('ben@example.com')
    await expectTokens(app, request, await follow(agent, agent.get(link, FORGED)))
  })

  it('takes a long authorization request, and gives all of its state back', async () => {
    const app = await party()
    const state = 'x'.repeat(12_000)
    const request = await app.begin({ state })
    const agent = createUserAgent()
    const blocked = await logIn(agent, request.url, 'cy')
    expect([blocked.status, blocked.mode]).to.deep.equal([200, 'blocked'])
    const { link } = await mail.mailTo('cy@example.com')
    const answer = await follow(agent, agent.get(link))
    await expectTokens(app, { ...request, state }, answer)
  })

  it('sends cookies and pages as they should go over TLS, uncompressed and stored by nobody', async () => {
    const { url } = await (await party()).begin()
    const { headers } = await createUserAgent().get(url)
    const cookies = headers.getSetCookie()
    expect(cookies).to.have.length.greaterThan(0)
    for (const cookie of cookies) expect(cookie).to.match(/; secure/i)
    const page = await createUserAgent().get(`${baseUrl}/oauth2/forgot-password`)
    expect(page.headers.get('strict-transport-security')).to.equal('max-age=31536000')
    expect(page.headers.get('cache-control')).to.include('no-store')
    expect(page.headers.get('content-encoding')).to.equal(null)
    const redirect = await createUserAgent().get(`http://127.0.0.1:${plain}/oauth2/auth?a=b`)
    expect([redirect.status, redirect.location]).to.deep.equal([301, `${baseUrl}/oauth2/auth?a=b`])
  })

  it('refuses a form that is too long, as the service does', async () => {
    const url = `${baseUrl}/oauth2/forgot-password`
    const answer = await createUserAgent().post(url, { identifier: 'x'.repeat(65_536) })
    expect(answer.status).to.equal(413)
  })

  it('has no token of a link in its logs, also while the service does not answer', async () => {
    await server.kill()
    const [{ link } = expect.fail()] = mail.mails
    expect((await createUserAgent().get(link)).status).to.equal(502)
    // It is written once the answer has left.
    await eventually('the request is in the log', async () =>
      (await logs()).includes('/oauth2/reset-password 502'),
    )
    const written = await logs()
    expect(written)
      .to.include('/oauth2/reset-password 502')
      .and.to.include('/oauth2/verify-email 30')
    // Of three links, and of the "This wasn't me" of four mails.
    expect(mail.tokensSeen().size).to.equal(7)
    for (const token of mail.tokensSeen()) expect(written).to.not.include(token)
    expect(written).to.not.include('x'.repeat(100))
    // Where it has no connection left, nginx quotes the request in an `alert`.
    const site = await readFile(join(file('nginx'), 'site.conf'), 'utf8')
    expect(site.match(/(?<=error_log \S+ )\w+/g)).to.deep.equal(['emerg', 'emerg'])
  })
})
