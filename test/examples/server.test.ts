import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { readdir, stat, writeFile } from 'node:fs/promises'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import bcrypt from 'bcrypt'
import { expect } from 'chai'
import { CompactEncrypt } from 'jose'
import { readEnvironment, StartRefused } from '../../examples/server/environment.ts'
import { checkoutSigningKeys, derivedKey, sharedProviderKeys } from '../../examples/server/keys.ts'
import { keysIn } from '../../examples/server/storage.ts'
import { createPasswordCheck } from '../../examples/server/password-check.ts'
import { createHashQueue } from '../../src/crypto/hash-queue.ts'
import { createVerifyPassword } from '../../src/crypto/hashing.ts'
import { hashToken } from '../../src/crypto/token.ts'
import { memoryUsers } from '../../src/index.ts'
import { bcryptWork } from '../support/bcrypt-work.ts'
import {
  createBrowser,
  type Browser,
  expectPage,
  decodeEntities,
  type Answer,
} from '../support/user-agent.ts'
import { compiledCheckout } from '../support/compiled-checkout.ts'
import {
  mailedLink,
  mailsAt,
  refusedExampleServer,
  seedUser,
  startExampleServer,
  suiteExampleServer,
  type ExampleServer,
  type Variables,
} from '../support/example-server.ts'
import { describeWithMongo, suiteDatabase } from '../support/mongod.ts'
import { ROOT, suiteFolder } from '../support/folders.ts'

const { scripts }: { scripts: { start: string } } = JSON.parse(
  readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
)

const [OLD, NEW, LOST] = ['old', 'new', 'lost'].map((name) =>
  Buffer.alloc(32, name).toString('base64url'),
) as [string, string, string]

/** The address of the first link to such a path. */
function hrefTo(path: string, { text }: Answer): string {
  const [, href = ''] = new RegExp(`href="([^"]*${path}[^"]*)"`).exec(text) ?? []
  return decodeEntities(href)
}

async function signIn(
  browser: Browser,
  username: string,
  password = `${username}-password`,
  { path = '/demo/start', loginPath = '/oauth2/login', headers = {} } = {},
): Promise<Answer> {
  const page = await browser.visit(path)
  expectPage(page, 200, 'login', 'form')
  return browser.submit(loginPath, { ...page.hidden, username, password }, headers)
}

/** Types into the form for a new password, behind a mailed link. */
async function choosePassword(browser: Browser, link: string, password: string, url = '') {
  const { hidden } = await browser.get(link)
  const form = { ...hidden, password, confirm_password: password }
  return browser.postForm(url || '/oauth2/reset-password', form)
}

async function settingsAt({ baseUrl, adminToken }: ExampleServer) {
  const headers = { authorization: `Bearer ${adminToken}` }
  const answer = await fetch(`${baseUrl}/admin/api/settings`, { headers })
  return { status: answer.status, settings: (await answer.json()) as Record<string, string> }
}

/** Types the command of the front page into a shell, as it stands there. */
async function runsItsCommand({ baseUrl, adminToken }: ExampleServer): Promise<string> {
  const { text } = await createBrowser(baseUrl).get('/')
  const [, command = ''] = /<pre[^>]*>\n([^<]*)/.exec(text) ?? []
  const { stdout } = spawnSync('/bin/sh', ['-c', decodeEntities(command)], {
    cwd: ROOT,
    env: { PATH: process.env['PATH'], ADMIN_TOKEN: adminToken },
    encoding: 'utf8',
  })
  return stdout
}

const SEED = {
  users: [
    seedUser('dora', { password: 'dora-password' }),
    seedUser('emil'),
    seedUser('gina', { password: 'gina-password' }),
    seedUser('fred', { password: 'fred-password', disabled: true }),
  ],
  clients: [
    {
      client_id: 'app',
      client_secret: 'a-secret-of-the-tests',
      redirect_uris: ['{base_url}/callback', 'https://app.example/callback'],
      post_logout_redirect_uris: ['https://app.example/'],
      grant_types: ['authorization_code', 'refresh_token'],
    },
    {
      client_id: 'native',
      client_name: 'Native app',
      application_type: 'native',
      token_endpoint_auth_method: 'none',
      redirect_uris: ['com.example.app:/callback'],
    },
  ],
}

/** A request of a client of the seed. */
const authorization = (extra: Record<string, string> = {}) =>
  `/auth?${new URLSearchParams({
    response_type: 'code',
    client_id: 'app',
    redirect_uri: 'https://app.example/callback',
    scope: 'openid',
    state: 'the-state',
    ...extra,
  })}`
const SILENT = authorization({ prompt: 'none' })

describe('The example server', () => {
  const file = suiteFolder()
  before(async () => {
    await writeFile(file('settings.json'), '{"require_email_verification":"true"}')
    await writeFile(file('seed.json'), JSON.stringify(SEED))
  })
  const server = suiteExampleServer(() => ({ SETTINGS_FILE: file('settings.json') }))
  const browserAt = () => createBrowser(server.baseUrl)

  /** Of servers that a test has to itself. */
  const ends: (() => Promise<void>)[] = []
  afterEach(() => Promise.all(ends.splice(0).map((end) => end())))

  describe('start [full]', () => {
    const byHand = { ADMIN_TOKEN: '', RESPONSE_DELAY_FLOOR_MS: '' }
    for (const [what, variables, mode] of [
      ['with the settings that are shipped', {}, 'off'],
      ['with the recommended ones where nothing tells of a script', byHand, 'other_browser'],
    ] as const) {
      it(`is what \`npm start\` starts, ${what}`, async () => {
        const shipped = await startExampleServer(variables, scripts.start)
        ends.push(shipped.kill)
        const answer = await signIn(createBrowser(shipped.baseUrl), 'bob')
        expectPage(answer, 200, 'verify-email', 'blocked')
        const { settings } = await settingsAt(shipped)
        expect(settings['email_link_confirmation']).to.equal(mode)
        expect(shipped.output()).to.not.include('WARNING')
        expect(await runsItsCommand(shipped)).to.include('bob@example.com')
      })
    }

    it('prints the address to open, and READY with the base URL alone on a line, which is that of the issuer', async () => {
      expect(server.output()).to.match(/^Open http:\/\/localhost:\d+\/$/m)
      expect(server.output().trimEnd().split('\n')).to.include(`READY ${server.baseUrl}`)
      const response = await fetch(`${server.baseUrl}/oauth2/.well-known/openid-configuration`)
      expect(await response.json()).to.include({
        issuer: `${server.baseUrl}/oauth2`,
        token_endpoint: `${server.baseUrl}/oauth2/token`,
      })
    })

    it('listens on this machine alone, unless HOST says where', async () => {
      const addresses = Object.values(networkInterfaces()).flatMap((each = []) => each)
      const outside = addresses.find(({ internal, family }) => !internal && family === 'IPv4')
      const isOpen = ({ port }: ExampleServer) =>
        fetch(`http://${outside?.address ?? '127.0.0.2'}:${port}/`).then(
          () => true,
          () => false,
        )
      expect(await isOpen(server)).to.equal(false)
      const everywhere = await startExampleServer({ HOST: '0.0.0.0', ADMIN_TOKEN: undefined })
      ends.push(everywhere.kill)
      expect(await isOpen(everywhere)).to.equal(true)
      expect((await createBrowser(everywhere.baseUrl).get('/')).text).to.not.include('<pre')
      const answer = await signIn(createBrowser(everywhere.baseUrl), 'alice')
      expectPage(answer, 200, 'demo', 'signed_in')
    })

    const production = { NODE_ENV: 'production', SIGNING_KEYS: OLD }

    it('shows its admin token to nobody but the developer at this machine', () => {
      const shows = (variables: Variables) => readEnvironment(variables).isPlayground
      expect(shows({})).to.equal(true)
      for (const variables of [
        { HOST: '0.0.0.0' },
        { BASE_URL: 'https://id.example' },
        { MONGODB_URI: 'mongodb://localhost/id' },
        { DATABASE_URL: 'postgres://localhost/id' },
        { SEED_FILE: 'own.json' },
        { ...production, SEED_FILE: 'own.json' },
      ])
        expect(shows(variables), JSON.stringify(variables)).to.equal(false)
    })

    it('has a mailbox on the embedded store, or where somebody asks for it', () => {
      const on = { MONGODB_URI: 'mongodb://localhost/id' }
      const has = (variables: Variables) => readEnvironment(variables).hasMailbox
      expect([{}, on, { ...on, MAILBOX: 'true' }].map(has)).to.deep.equal([true, false, true])
      expect(has({ MAILBOX: 'false' })).to.equal(false)
    })

    for (const [name, value, more = {}] of [
      ['PORT', 'eighty'],
      ['PORT', '0'],
      ['BASE_URL', 'localhost:3000'],
      ['BASE_URL', 'https://id.example/?tenant=1'],
      ['BASE_URL', 'http://id.example', production],
      ['OAUTH_PATH', '/oauth2/'],
      ['SIGNING_KEYS', undefined, { NODE_ENV: 'production' }],
      ['SIGNING_KEYS', 'c2hvcnQ', { NODE_ENV: 'production' }],
      ['SIGNING_KEYS', 'not base64url!'],
      ['SIGNING_KEYS', `${OLD},`],
      ['ADMIN_TOKEN', 'short', production],
      ['SEED_FILE', undefined, production],
      ['SEED_FILE', 'examples/seed.json', production],
      ['RESPONSE_DELAY_FLOOR_MS', '-1'],
      ['RESPONSE_DELAY_JITTER_MS', '1.5'],
      ['TRUST_PROXY', 'yes'],
      ['BCRYPT_COST', '3'],
      ['MAILBOX', 'yes'],
    ] as const) {
      const variables = { ...more, [name]: value }
      it(`is refused by the name of the variable for ${JSON.stringify(variables)}`, () => {
        expect(() => readEnvironment(variables)).to.throw(StartRefused, new RegExp(`^${name} must`))
      })
    }

    const wrongFiles: Record<string, object> = {
      'wrong-settings.json': { password_reset_expiration: 'soon' },
      'wrong-seed.json': {
        clients: [{ client_id: 'odd', client_secret: 'secret', redirect_uris: ['nowhere'] }],
      },
    }
    for (const [what, name, value, words, more = {}] of [
      ['published passwords in production', 'SEED_FILE', undefined, /your own/, production],
      ['a database that is none', 'MONGODB_URI', 'localhost', /\w/],
      ['an address that is not of this machine', 'HOST', '192.0.2.1', /\w/],
      ['a file that is not there', 'SEED_FILE', '/nowhere/seed.json', /\w/],
      ['a setting', 'SETTINGS_FILE', 'wrong-settings.json', /password_reset_expiration/],
      ['a client', 'SEED_FILE', 'wrong-seed.json', /odd.*redirect_uris/],
    ] as const) {
      it(`is refused with exit code 2 and one sentence for ${what}, by the name of the variable`, async () => {
        const content = wrongFiles[value ?? '']
        if (content) await writeFile(file(value ?? ''), JSON.stringify(content))
        const given = content ? file(value ?? '') : value
        const { exitCode, errors } = await refusedExampleServer({ [name]: given, ...more })
        const said = errors.split('\n').filter((line) => line && !line.startsWith('{'))
        expect(exitCode).to.equal(2)
        expect(said).to.have.length(1)
        expect(said[0]).to.match(new RegExp(`^${name}\\b.*${words.source}`))
      })
    }
  })

  describe('pages', () => {
    it('tells a newcomer the users, their passwords and where to begin', async () => {
      const { text } = await browserAt().get('/')
      for (const said of ['alice-password', 'bob-password', '/demo/start', '/mailbox'])
        expect(text).to.include(said)
      expect(text).to.include('$ADMIN_TOKEN').and.not.include(server.adminToken)
      const stylesheet = await browserAt().get('/example.css')
      expect(stylesheet.headers.get('content-type')).to.include('text/css')
    })

    it('has things to try that work as written: a reset that leads back to the client, and a sign-in that asks who, also somebody signed in', async () => {
      const browser = browserAt()
      await signIn(browser, 'alice')
      const home = await browser.visit('/')
      const asked = await browser.visit(hrefTo('forgot-password', home))
      expectPage(asked, 200, 'forgot-password', 'form')
      const redirectUri = `${server.baseUrl}/demo/callback`
      expect(asked.hidden).to.include({ client_id: 'demo', redirect_uri: redirectUri })
      expectPage(await browser.visit(hrefTo('prompt=login', home)), 200, 'login', 'form')
    })

    it('shows the login page with the way to a new password, which carries the request', async () => {
      const page = await browserAt().visit('/demo/start')
      expectPage(page, 200, 'login', 'form')
      expect(page.hidden).to.have.keys('interaction')
      const href = hrefTo('forgot-password', page)
      expect(href).to.match(/^\/oauth2\/forgot-password\?client_id=demo&redirect_uri=http/)
      const policy = page.headers.get('content-security-policy')
      expect(policy).to.include(`form-action 'self' ${server.baseUrl}`)
    })

    it('answers the well-known address for changing passwords; an unknown path with 404, a wrong method with 405', async () => {
      const page = await browserAt().visit('/.well-known/change-password')
      expectPage(page, 200, 'forgot-password', 'form')
      for (const path of ['/.well-known/resource-that-should-not-exist', '/nothing'])
        expect((await browserAt().get(path)).status).to.equal(404)
      const wrong = await browserAt().postForm('/mailbox', {})
      expect([wrong.status, wrong.headers.get('allow')]).to.deep.equal([405, 'GET, HEAD'])
    })
  })

  describe('login', () => {
    it('signs in to the demo client by username, and by verified address in any case', async () => {
      for (const username of ['alice', 'Alice@Example.com']) {
        const answer = await signIn(browserAt(), username, 'alice-password')
        expectPage(answer, 200, 'demo', 'signed_in')
        expect(answer.text)
          .to.include('You are signed in as alice')
          .and.include('alice@example.com')
      }
    })

    it('refuses a wrong password and an unknown user with the same page and 401', async () => {
      const pages = []
      for (const [username, password] of [
        ['alice', 'wrong-password'],
        ['nobody', 'alice-password'],
        ['bob@example.com', 'bob-password'],
        ['', ''],
      ] as const) {
        const answer = await signIn(browserAt(), username, password)
        expectPage(answer, 401, 'login', 'refused')
        const own = /value="[^"]*"|href="[^"]*forgot-password[^"]*"/g
        pages.push(answer.text.replace(`value="${username}"`, 'value=""').replace(own, ''))
      }
      expect(new Set(pages)).to.have.property('size', 1)
    })

    it('is silent the second time, and asks again after sign-out', async () => {
      const browser = browserAt()
      const signedIn = await signIn(browser, 'alice')
      expect((await browser.visit('/demo/start')).mode).to.equal('signed_in')

      const asked = await browser.visit(hrefTo('session/end', signedIn))
      expect(asked.page).to.equal('logout')
      const action = /action="([^"]*)"/.exec(asked.text)?.[1] ?? ''
      const home = await browser.submit(action, { ...asked.hidden, logout: 'yes' })
      expect(home.page).to.equal('home')
      expect((await browser.visit('/demo/start')).page).to.equal('login')
    })

    it('fills in the username from login_hint, as text, and hands ui_locales on', async () => {
      const browser = browserAt()
      const url = new URL((await browser.get('/demo/start')).location ?? '')
      const hint = 'alice"><b>'
      url.searchParams.set('login_hint', hint)
      url.searchParams.set('ui_locales', 'de en')
      const page = await browser.visit(url.pathname + url.search)
      expectPage(page, 200, 'login', 'form')
      const [input = ''] = /<input[^>]*id="username"[^>]*>/.exec(page.text) ?? []
      expect(decodeEntities(/value="([^"]*)"/.exec(input)?.[1] ?? '')).to.equal(hint)
      const asked = await browser.visit(hrefTo('forgot-password', page))
      expect(asked.hidden).to.include({ client_id: 'demo', ui_locales: 'de en' })

      const form = { ...page.hidden, username: 'alice', password: 'alice-password' }
      expectPage(await browser.submit('/oauth2/login', form), 200, 'demo', 'signed_in')
    })

    it('says in an older tab that the sign-in continues in the newer one', async () => {
      const browser = browserAt()
      const older = await browser.visit('/demo/start')
      await browser.visit('/demo/start')
      const form = { ...older.hidden, username: 'alice', password: 'alice-password' }
      const answer = await browser.submit('/oauth2/login', form)
      expect([answer.status, answer.mode]).to.deep.equal([409, 'newer_tab'])
      expect((await browser.visit(older.url)).mode).to.equal('newer_tab')
    })

    it('says to start again where this browser has no interaction', async () => {
      const browser = browserAt()
      for (const answer of [
        await browser.get('/oauth2/login?interaction=unknown'),
        await browser.get('/oauth2/login'),
        await browser.postForm('/oauth2/login', { username: 'alice', password: 'alice-password' }),
        await browser.postForm('/oauth2/login/consent', { decision: 'allow' }),
      ]) {
        expect([answer.status, answer.mode]).to.deep.equal([400, 'start_again'])
      }
    })
  })

  describe('flows', () => {
    it('resets a forgotten password, goes on with the sign-in that waits, and takes the new one alone', async () => {
      const browser = browserAt()
      const login = await browser.visit('/demo/start')
      const form = await browser.get(hrefTo('forgot-password', login))
      await browser.postForm('/oauth2/forgot-password', { ...form.hidden, identifier: 'carol' })
      const link = await mailedLink(server, 'carol@example.com', '/reset-password?')
      const password = 'a brand new password'
      const done = await choosePassword(browser, link, password)
      expectPage(done, 200, 'reset-password', 'done')
      expect(decodeEntities(done.text)).to.include(`href="${login.url}"`)
      const former = { ...login.hidden, username: 'carol', password: 'carol-password' }
      const refused = await browser.submit('/oauth2/login', former)
      expectPage(refused, 401, 'login', 'refused')
      const next = { ...refused.hidden, username: 'carol', password }
      expectPage(await browser.submit('/oauth2/login', next), 200, 'demo', 'signed_in')
    })

    it('shows the mails newest first, as a page with links and as JSON', async () => {
      const mails = await mailsAt(server)
      expect(mails[0]).to.have.keys('id', 'to', 'subject', 'text', 'html', 'date')
      const dates = mails.map(({ date }) => Date.parse(date))
      expect(dates).to.deep.equal(dates.toSorted((a, b) => b - a))
      const { text, page } = await browserAt().get('/mailbox')
      expect(page).to.equal('mailbox')
      expect(text).to.match(/<a href="http:\/\/localhost:\d+\/oauth2\/reset-password\?token=/)
    })

    it('blocks an unverified user until the mailed link, which ends at the client with a code', async () => {
      const browser = browserAt()
      expectPage(await signIn(browser, 'bob'), 200, 'verify-email', 'blocked')
      const link = await mailedLink(server, 'bob@example.com', '/verify-email?')
      const followed = await browser.get(link)
      expect(followed.status).to.equal(302)
      expect(followed.location).to.match(/^http:\/\/localhost:\d+\/demo\/callback\?code=/)
      const answer = await browser.visit(followed.location ?? '')
      expect(answer.text).to.include('You are signed in as bob')
    })

    it('explains a callback in another browser, from where the next sign-in is silent', async () => {
      const [other, elsewhere] = [browserAt(), browserAt()]
      const { hidden } = await other.visit('/demo/start')
      const form = { ...hidden, username: 'alice', password: 'alice-password' }
      let answer = await other.postForm('/oauth2/login', form)
      while (!answer.location?.includes('/demo/callback'))
        answer = await other.get(answer.location ?? '')
      const explained = await elsewhere.visit(answer.location)
      expect(explained.mode).to.equal('other_browser')
      expect(explained.text).to.include('/demo/start')
      expect((await other.visit('/demo/start')).mode).to.equal('signed_in')
    })
  })

  describe('with a seed of its own, and no prefix', () => {
    const own = suiteExampleServer(() => ({
      SEED_FILE: file('seed.json'),
      OAUTH_PATH: '',
      ADMIN_TOKEN: undefined,
      SIGNING_KEYS: undefined,
    }))
    const loginAt = (browser: Browser, query: Record<string, string> = {}, username = 'dora') =>
      signIn(browser, username, undefined, { path: authorization(query), loginPath: '/login' })

    it('makes its signing keys once, however many processes start at a time, in a file that only its owner reads', async () => {
      const sixteen = Array.from({ length: 16 }, () => checkoutSigningKeys(file('keys')))
      expect(new Set((await Promise.all(sixteen)).flat())).to.have.property('size', 1)
      const names = await readdir(file(''))
      expect(names.filter((name) => name.startsWith('keys'))).to.deep.equal(['keys'])
      const { mode } = await stat(join(compiledCheckout(), '.oidc-account-flows-keys'))
      expect(mode & 0o777).to.equal(0o600)
    })

    it('prints a random admin token, which opens the admin API at the root', async () => {
      expect(own.adminToken).to.match(/^[\w-]{43}$/)
      expect(own.output().split(own.adminToken)).to.have.length(2)
      expect((await settingsAt(own)).status).to.equal(200)
      expect((await settingsAt({ ...own, adminToken: 'wrong' })).status).to.equal(401)
    })

    it('hashes its passwords, and lets in neither a disabled user nor one without a password', async () => {
      const answer = await loginAt(createBrowser(own.baseUrl))
      expect(answer.location).to.match(/^https:\/\/app\.example\/callback\?code=/)
      for (const username of ['emil', 'fred']) {
        const refused = await loginAt(createBrowser(own.baseUrl), {}, username)
        expect(refused.status).to.equal(401)
      }
    })

    it('changes the password of whoever is signed in, who stays signed in here and nowhere else', async () => {
      const [here, there] = [createBrowser(own.baseUrl), createBrowser(own.baseUrl)]
      const path = '/change-password'
      expectPage(await here.get(path), 403, 'change-password', 'signed_out')
      expect((await here.get('/')).text).to.not.include(path)
      for (const browser of [here, there]) await loginAt(browser, {}, 'gina')
      expect((await here.get('/')).text).to.include(`href="${path}"`)
      expectPage(await here.get(path), 200, 'change-password', 'form')

      const change = { current_password: 'gina-password', password: 'a longer password' }
      const form = { ...change, confirm_password: change.password }
      for (const [mode, wrong] of [
        ['wrong', { current_password: 'dora-password' }],
        ['password_mismatch', { confirm_password: 'another password' }],
        ['password_too_short', { password: 'short', confirm_password: 'short' }],
      ] as const) {
        const refused = await here.postForm(path, { ...form, ...wrong })
        expectPage(refused, 400, 'change-password', mode)
        expect(refused.text).to.include('role="alert"').and.not.include('gina-password')
      }
      expect((await there.get(SILENT)).location).to.include('code=')
      expectPage(await here.postForm(path, form), 200, 'change-password', 'done')
      expect((await here.get(SILENT)).location).to.include('code=')
      expect((await there.get(SILENT)).location).to.include('error=login_required')
      await mailedLink(own, 'gina@example.com', '/forgot-password')
      expect((await loginAt(there, {}, 'gina')).status).to.equal(401)
    })

    it('puts the base URL into the metadata of its clients', async () => {
      const query = { redirect_uri: `${own.baseUrl}/callback` }
      const answer = await loginAt(createBrowser(own.baseUrl), query)
      expect(answer.url).to.match(/\/callback\?code=/)
      expect(answer.status).to.equal(404)
    })

    it('asks for consent with prompt=consent only, and then gives a refresh token', async () => {
      const browser = createBrowser(own.baseUrl)
      const asked = await loginAt(browser, { prompt: 'consent', scope: 'openid offline_access' })
      expectPage(asked, 200, 'consent', 'form')
      const allowed = await browser.submit('/login/consent', { ...asked.hidden, decision: 'allow' })
      const code = new URL(allowed.location ?? '').searchParams.get('code') ?? ''
      const response = await fetch(`${own.baseUrl}/token`, {
        method: 'POST',
        headers: { authorization: `Basic ${btoa('app:a-secret-of-the-tests')}` },
        body: new URLSearchParams({
          grant_type: 'authorization_code',
          redirect_uri: 'https://app.example/callback',
          code,
        }),
      })
      expect(await response.json()).to.include.keys('id_token', 'refresh_token')
    })

    it('asks for the consent of a native client, and takes no for an answer', async () => {
      const browser = createBrowser(own.baseUrl)
      const asked = await loginAt(browser, {
        client_id: 'native',
        redirect_uri: 'com.example.app:/callback',
        code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM',
        code_challenge_method: 'S256',
      })
      expectPage(asked, 200, 'consent', 'form')
      expect(asked.text).to.include('Native app')
      expect(asked.headers.get('content-security-policy')).to.include('com.example.app:')
      const denied = await browser.submit('/login/consent', { ...asked.hidden, decision: 'deny' })
      expect(denied.location).to.match(/^com\.example\.app:\/callback\?error=access_denied/)
    })
  })

  it('has no mailbox and shows no passwords in production', async function () {
    const production = { NODE_ENV: 'production', MAILBOX: 'true', SIGNING_KEYS: OLD }
    const own = await startExampleServer({ ...production, SEED_FILE: file('seed.json') })
    ends.push(own.kill)
    const browser = createBrowser(own.baseUrl)
    expect((await browser.get('/mailbox')).status).to.equal(404)
    const { page, text } = await browser.get('/')
    expect(page).to.equal('home')
    expect(text).not.to.include('alice-password')
  })

  describeWithMongo('two processes on one database, mid-rotation (SIG-17) [full]', () => {
    let first: ExampleServer
    let second: ExampleServer
    after(() => Promise.all([first?.kill(), second?.kill()]))
    const database = suiteDatabase()

    before(async function () {
      const shared = { MONGODB_URI: database.uri, SEED_FILE: file('seed.json') }
      const keys = { SIGNING_KEYS: `${OLD},${NEW}` }
      first = await startExampleServer({ ...shared, ...keys, MAILBOX: 'true' })
      // The same service on another port.
      const same = { ...shared, BASE_URL: first.baseUrl }
      second = await startExampleServer({ ...same, SIGNING_KEYS: `${NEW},${OLD}` })
    })

    const atSecond = (path: string) => `http://localhost:${second.port}/oauth2${path}`

    it('have the users and clients of the seed once', async () => {
      const users = await database.db.collection('users').find().toArray()
      const names = ['dora', 'emil', 'fred', 'gina']
      expect(users.map(({ username }) => username)).to.have.members(names)
      expect(users[0]).to.include.keys('_id', 'email', 'email_verified', 'disabled')
      const records = database.db.collection<{ _id: string }>('oidc_records')
      const clients = await records.find({ model: 'Client' }).toArray()
      const ids = ['app', 'native'].map((id) => `Client:${hashToken(id)}`)
      expect(clients.map(({ _id }) => _id)).to.have.members(ids)
    })

    it('sign with the same keys, which are not in the database in plain', async () => {
      const keysAt = async (url: string) => (await fetch(url)).json()
      const keys = await keysAt(`${first.baseUrl}/oauth2/jwks`)
      expect(await keysAt(atSecond('/jwks'))).to.deep.equal(keys)
      const stored = await database.db.collection('provider_jwks').find().toArray()
      expect(stored).to.have.length(1)
      expect(JSON.stringify(stored)).not.to.include('"kty"')
    })

    it('share sessions, and end them in both by a reset', async () => {
      const browser = createBrowser(first.baseUrl)
      const path = `/oauth2${authorization()}`
      const loginAtFirst = (password?: string) => signIn(browser, 'dora', password, { path })
      expect((await loginAtFirst()).location).to.include('code=')
      expect((await browser.get(atSecond(SILENT))).location).to.include('code=')
      // Its cookie has been signed by the second meanwhile.
      expect((await browser.get(`/oauth2${SILENT}`)).location).to.include('code=')

      await browser.postForm('/oauth2/forgot-password', { identifier: 'dora@example.com' })
      // The other process has no mailbox, and leaves the mail to this one.
      const link = await mailedLink(first, 'dora@example.com', '/reset-password?')
      expect((await browser.get(`http://localhost:${second.port}/mailbox`)).status).to.equal(404)
      const password = 'a brand new password'
      const done = await choosePassword(browser, link, password, atSecond('/reset-password'))
      expect(done.mode).to.equal('done')

      expect((await browser.get(atSecond(SILENT))).location).to.include('login_required')
      expect((await loginAtFirst()).status).to.equal(401)
      expect((await loginAtFirst(password)).location).to.include('code=')
    })

    it('let go of the database on SIGTERM, and exit with 0', async () => {
      expect(await Promise.all([first.stop(), second.stop()])).to.deep.equal([0, 0])
    })
  })
})

const OLD_ALONE = [OLD]
const APPENDED = [OLD, NEW]
const IN_FRONT = [NEW, OLD]
const NEW_ALONE = [NEW]

describeWithMongo(
  'The provider keys of the example server, while SIGNING_KEYS are rotated (SIG-17) [full]',
  () => {
    const fresh = suiteDatabase()
    const start = (ring: string[]) => sharedProviderKeys(keysIn(fresh.db), ring)
    const stored = () => fresh.db.collection('provider_jwks').find().toArray()
    beforeEach(() => fresh.db.collection('provider_jwks').deleteMany({}))

    async function expectRefused(ring: string[]) {
      const before = await stored()
      const refusal: unknown = await start(ring).catch((error: unknown) => error)
      expect(refusal).to.be.instanceOf(StartRefused)
      expect(await stored()).to.deep.equal(before)
    }

    it('are the same for every process, whichever starts again at any moment', async () => {
      const keys = await start(OLD_ALONE)
      const steps = [OLD_ALONE, APPENDED, IN_FRONT, NEW_ALONE]
      for (const [index, next] of steps.slice(1).entries()) {
        const former = steps[index] ?? []
        for (const ring of [next, former, next, next, former, former, next]) {
          expect(await start(ring)).to.deep.equal(keys)
        }
      }
      await expectRefused(OLD_ALONE)
      expect(await start(NEW_ALONE)).to.deep.equal(keys)
    })

    it('are the same where a key was put in front at once, and all start at the same time', async () => {
      const keys = await start(OLD_ALONE)
      for (const rings of [
        [IN_FRONT, OLD_ALONE, IN_FRONT, OLD_ALONE],
        [APPENDED, IN_FRONT, OLD_ALONE, APPENDED],
      ]) {
        for (const opened of await Promise.all(rings.map(start))) {
          expect(opened).to.deep.equal(keys)
        }
        expect(await start(OLD_ALONE)).to.deep.equal(keys)
      }
    })

    it('are not written again by a process with the same keys, in whatever order', async () => {
      await start(APPENDED)
      const before = await stored()
      await start(IN_FRONT)
      await start(APPENDED)
      expect(await stored()).to.deep.equal(before)
    })

    it('are opened by nobody else', async () => {
      const keys = await start(IN_FRONT)
      await expectRefused([LOST])
      expect(await start([LOST, OLD])).to.deep.equal(keys)
    })

    it('are those that an earlier version sealed, under one key', async () => {
      const keys = { keys: [{ kty: 'oct', k: 'c2VjcmV0' }] }
      const jwe = await new CompactEncrypt(Buffer.from(JSON.stringify(keys)))
        .setProtectedHeader({ alg: 'dir', enc: 'A256GCM' })
        .encrypt(derivedKey(OLD, 'jwks'))
      await fresh.db
        .collection<{ _id: string; jwe: string }>('provider_jwks')
        .insertOne({ _id: 'jwks', jwe })
      const before = await stored()
      expect(await start(OLD_ALONE)).to.deep.equal(keys)
      expect(await stored()).to.deep.equal(before)
      expect(await start(APPENDED)).to.deep.equal(keys)
      expect(await start(NEW_ALONE)).to.deep.equal(keys)
    })
  },
)

/** More than ever wait of one network, on however many processors. */
const LOGINS = 300

describe('The example server while too many sign in at once (RATE-15) [full]', () => {
  const server = suiteExampleServer({ BCRYPT_COST: '10', TRUST_PROXY: '1' })

  /** Answers what posts the login form, as from a network. */
  async function loginForm() {
    const browser = createBrowser(server.baseUrl)
    const { hidden } = await browser.visit('/demo/start')
    return (username: string, password: string, network: string) => {
      const form = { ...hidden, username, password }
      return browser.submit('/oauth2/login', form, { 'x-forwarded-for': network })
    }
  }

  it('answers 503 with Retry-After where the line of a network is full, and others at once', async () => {
    const post = await loginForm()
    const guesses = Array.from({ length: LOGINS }, (_none, index) =>
      post(`nobody-${index}`, 'wrong', '192.0.2.1'),
    )
    const wrong = await post('alice', 'wrong', '192.0.2.2')
    const answers = await Promise.all(guesses)
    expect(wrong.status).to.equal(401)
    const refused = answers.filter(({ status }) => status === 503)
    const served = answers.filter(({ status }) => status === 401)
    expect(refused.length).to.be.above(LOGINS / 2)
    expect(served.length).to.be.above(4)
    expect(refused.length + served.length).to.equal(LOGINS)
    for (const { headers, page, mode } of refused) {
      expect([page, mode, headers.get('retry-after')]).to.deep.equal(['error', 'unavailable', '60'])
    }
    expect(server.output()).to.include('too many passwords wait to be checked')
    expect((await post('alice', 'alice-password', '192.0.2.1')).mode).to.equal('signed_in')
  })

  it('answers 429 with Retry-After to the eleventh wrong guess of a network at a name, known or not, and to no other network', async () => {
    const post = await loginForm()
    for (const username of ['bob', 'nobody']) {
      for (let guess = 1; guess <= 10; guess += 1)
        expect((await post(username, 'wrong', '192.0.2.3')).status).to.equal(401)
      for (const password of ['wrong', 'bob-password']) {
        const { status, mode, headers, text } = await post(username, password, '192.0.2.3')
        expect([status, mode]).to.deep.equal([429, 'too_many'])
        expect(Number(headers.get('retry-after'))).to.be.within(1, 900)
        expect(text).to.include('Try again in 15 min')
      }
    }
    expect((await post('bob', 'bob-password', '192.0.2.4')).mode).to.equal('signed_in')
  })
})

const PASSWORD = 'correct horse battery'

describe('The password check of the example server', () => {
  const verifyPassword = createVerifyPassword(
    4,
    createHashQueue({ atOnce: 1, waiting: 0, waitingOfOne: 0 }),
  )
  const ann = {
    id: '1',
    username: 'ann',
    email: 'ann@users.example',
    emailVerified: true,
    passwordHash: bcrypt.hashSync(PASSWORD, 4),
    disabled: false,
  }
  const check = (...users: (typeof ann)[]) =>
    createPasswordCheck(memoryUsers(users), {
      verifyPassword: (user, password) => verifyPassword(user, password),
    })

  it('answers the user for the right password, by the username or the verified address', async () => {
    for (const name of ['ann', 'ANN@users.example', ' ann@users.example '])
      expect(await check(ann)(name, PASSWORD), name).to.deep.equal(ann)
  })

  it('answers nobody for a username that is only like it', async () => {
    for (const name of ['ANN', ' ann'])
      expect(await check(ann)(name, PASSWORD), name).to.equal(undefined)
  })

  it('answers the owner of a verified address before the user who is called so, and of two neither', async () => {
    const named = { ...ann, id: '2', username: 'ann@users.example', email: 'other@users.example' }
    expect(await check(named)('ann@users.example', PASSWORD)).to.deep.equal(named)
    expect(await check(named, ann)('ann@users.example', PASSWORD)).to.deep.equal(ann)
    const twin = { ...ann, id: '3', username: 'anna' }
    expect(await check(ann, twin)('ann@users.example', PASSWORD)).to.equal(undefined)
    const shouting = { ...twin, email: 'ANN@users.example' }
    expect(await check(ann, shouting)('ANN@users.example', PASSWORD)).to.deep.equal(shouting)
  })

  it('takes the work of a wrong password for an unknown name, too (TIM-06)', async () => {
    const wrong = await bcryptWork(() => check(ann)('ann', 'wrong'))
    expect(wrong).not.to.deep.equal([])
    expect(await bcryptWork(() => check(ann)('nobody', 'wrong'))).to.deep.equal(wrong)
  })
})
