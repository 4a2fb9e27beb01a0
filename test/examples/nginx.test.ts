import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { newCertificate } from '../support/certificates.ts'
import { eventually } from '../support/eventually.ts'
import {
  PASSWORD,
  seedUser,
  smtpSettings,
  startExampleServer,
  type ExampleServer,
} from '../support/example-server.ts'
import {
  followWithin,
  expectPage,
  createUserAgent,
  type Answer,
  type UserAgent,
} from '../support/user-agent.ts'
import { startServer } from '../support/process.ts'
import { freePort } from '../support/serve.ts'
import { startMailServer, type MailServer } from '../support/mail-server.ts'
import { aptGet, leaveOut, onPath, whyNotInstall } from '../support/missing.ts'
import { createRelyingParty } from '../support/relying-party.ts'
import { ROOT, suiteFolder } from '../support/folders.ts'

const CLIENT = { client_id: 'app', client_secret: 'a-secret-of-the-tests-long-enough' }
const REDIRECT_URI = 'https://app.example/callback'
const NEW_PASSWORD = 'a brand new password'
/** What a stranger may send, in the hope that somebody believes it. */
const FORGED = {
  'x-forwarded-for': '203.0.113.9',
  'x-forwarded-host': 'evil.example',
  'x-forwarded-proto': 'http',
}
const TRUST_ANY = 'NODE_TLS_REJECT_UNAUTHORIZED'

describe('The example in production, behind examples/deploy/nginx.conf [full]', function () {
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
    const unverified = { email_verified: false, password: PASSWORD }
    const ann = seedUser('ann', { password: PASSWORD })
    const users = [ann, seedUser('ben', unverified), seedUser('cy', unverified)]
    const clients = [{ ...CLIENT, redirect_uris: [REDIRECT_URI] }]
    const settings = { ...smtpSettings(mail.port), require_email_verification: 'true' }
    await writeFile(file('seed.json'), JSON.stringify({ users, clients }))
    await writeFile(file('settings.json'), JSON.stringify(settings))
    const tls = await freePort()
    plain = await freePort()
    server = await startExampleServer({
      BASE_URL: `https://localhost:${tls}`,
      NODE_ENV: 'production',
      TRUST_PROXY: '1',
      SEED_FILE: file('seed.json'),
      SETTINGS_FILE: file('settings.json'),
    })
    ends.unshift(server.kill)
    baseUrl = server.baseUrl
    ends.unshift(await startNginx(program, file('nginx'), { plain, tls, service: server.port }))
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
    const textOf = (name: string) => readFile(join(file('nginx'), name), 'utf8')
    return (await Promise.all(names.map(textOf))).join('')
  }

  it('resets a password, and takes no word of a stranger for an address or a host', async () => {
    const agent = createUserAgent()
    const forgot = `${baseUrl}/oauth2/forgot-password`
    const sent = await agent.post(forgot, { identifier: 'ann' }, FORGED)
    expectPage(sent, 200, 'forgot-password', 'sent')
    const { link } = await mail.mailTo('ann@example.com')
    expect(link).to.match(new RegExp(`^${baseUrl}/oauth2/reset-password\\?token=`))
    const page = await agent.get(link, FORGED)
    expectPage(page, 200, 'reset-password', 'form')
    const passwords = { password: NEW_PASSWORD, confirm_password: NEW_PASSWORD }
    const url = `${baseUrl}/oauth2/reset-password`
    const done = await agent.post(url, { ...page.hidden, ...passwords }, FORGED)
    expectPage(done, 200, 'reset-password', 'done')

    const app = await party()
    const request = await app.begin()
    await expectTokens(app, request, await logIn(agent, request.url, 'ann', NEW_PASSWORD))
    const headers = { authorization: `Bearer ${server.adminToken}` }
    const audit = `${baseUrl}/admin/api/audit?type=password_reset_completed`
    const events = await agent.get(audit, headers)
    expect(events.text).to.include('127.0.0.1').and.to.not.include(FORGED['x-forwarded-for'])
    const discovery = await agent.get(`${baseUrl}/oauth2/.well-known/openid-configuration`, FORGED)
    expect(discovery.text).to.include(`${baseUrl}/oauth2/token`).and.not.include('evil.example')
    expect(discovery.text).to.not.include('http:')
  })

  for (const [what, username, state] of [
    ['verifies an address in the login, and the client gets its code', 'ben', 'a state'],
    ['gives all of the state of a long authorization request back', 'cy', 'x'.repeat(12_000)],
  ] as const) {
    it(what, async () => {
      const app = await party()
      const request = await app.begin({ state })
      const agent = createUserAgent()
      const blocked = await logIn(agent, request.url, username)
      expectPage(blocked, 200, 'verify-email', 'blocked')
      const { link } = await mail.mailTo(`${username}@example.com`)
      const answer = await follow(agent, agent.get(link, FORGED))
      await expectTokens(app, { ...request, state }, answer)
    })
  }

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
    const written = await eventually('the request is in the log', async () => {
      const texts = await logs()
      return texts.includes('/oauth2/reset-password 502') && texts
    })
    expect(written).to.include('/oauth2/verify-email 30')
    // Of three links, and of the "This wasn't me" of four mails.
    expect(mail.tokensSeen().size).to.equal(7)
    for (const token of mail.tokensSeen()) expect(written).to.not.include(token)
    expect(written).to.not.include('x'.repeat(100))
    // Where it has no connection left, nginx quotes the request in an `alert`.
    const site = await readFile(join(file('nginx'), 'site.conf'), 'utf8')
    expect(site.match(/(?<=error_log \S+ )\w+/g)).to.deep.equal(['emerg', 'emerg'])
  })
})

const run = promisify(execFile)
const UNPACKED = join(ROOT, '.cache/nginx')

/** nginx as a program. Debian's package is unpacked and not installed: that would start a server on port 80. */
async function nginxProgram(): Promise<string> {
  const program = join(UNPACKED, 'usr/sbin/nginx')
  const found = onPath('nginx') ?? (existsSync(program) ? program : undefined)
  if (found !== undefined) return found
  const obstacle = whyNotInstall()
  if (obstacle) throw new Error(`nginx cannot be fetched, as ${obstacle}: put it on the PATH`)
  console.warn('Fetching nginx with apt-get.')
  await mkdir(join(UNPACKED, '..'), { recursive: true })
  const folder = await mkdtemp(`${UNPACKED}-`)
  await aptGet(['update'])
  await aptGet(['download', 'nginx'], { cwd: folder })
  await run('/bin/sh', ['-c', 'dpkg -x ./*.deb unpacked'], { cwd: folder })
  await rename(join(folder, 'unpacked'), UNPACKED).catch((error: unknown) => {
    if (!existsSync(program)) throw error
  })
  await rm(folder, { recursive: true, force: true })
  return program
}

interface Ports {
  plain: number
  tls: number
  service: number
}

/** The file of `examples/deploy`, with ports and paths of a test, among the defaults that Debian has. */
async function startNginx(
  program: string,
  folder: string,
  ports: Ports,
): Promise<() => Promise<void>> {
  const site = await readFile(join(ROOT, 'examples/deploy/nginx.conf'), 'utf8')
  const { cert, key } = newCertificate({ names: ['localhost'] })
  await mkdir(folder)
  await writeFile(join(folder, 'fullchain.pem'), cert)
  await writeFile(join(folder, 'privkey.pem'), key)
  await writeFile(join(folder, 'site.conf'), asOfTest(site, folder, ports))
  await writeFile(join(folder, 'nginx.conf'), aroundIt(folder))
  const args = ['-p', folder, '-e', 'stderr', '-c', join(folder, 'nginx.conf')]
  const isUp = () =>
    new Promise<boolean>((resolve) => {
      const socket = connect(ports.tls, '127.0.0.1', () => resolve(true))
      socket.once('error', () => resolve(false)).once('connect', () => socket.destroy())
    })
  return startServer(program, args, isUp)
}

function asOfTest(site: string, folder: string, { plain, tls, service }: Ports): string {
  return site
    .replaceAll(/^ *listen \[::\].*$/gm, '')
    .replace('listen 80;', `listen 127.0.0.1:${plain};`)
    .replace('listen 443 ', `listen 127.0.0.1:${tls} `)
    .replace('127.0.0.1:3000', `127.0.0.1:${service}`)
    .replaceAll(/(Host \$server_name|https:\/\/id\.example\.com)/g, `$1:${tls}`)
    .replaceAll('/etc/ssl/id.example.com', folder)
    .replaceAll('/var/log/nginx', folder)
    .replaceAll('id.example.com', 'localhost')
}

function aroundIt(folder: string): string {
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  return `
daemon off;
${process.getuid?.() === 0 ? 'user root;' : ''}
pid ${folder}/pid;
events {}
http {
  gzip on;
  ${temporary.map((name) => `${name}_temp_path ${folder}/${name};`).join('\n  ')}
  include ${folder}/site.conf;
}
`
}
