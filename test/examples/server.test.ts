import { readFileSync } from 'node:fs'
import { readdir, stat, writeFile } from 'node:fs/promises'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { readEnvironment } from '../../examples/server/environment.ts'
import { checkoutSigningKeys } from '../../examples/server/keys.ts'
import { StartRefused } from '../../examples/server/environment.ts'
import { createBrowser, type Browser } from '../support/browser.ts'
import { compiledCheckout } from '../support/compiled-checkout.ts'
import { eventually } from '../support/eventually.ts'
import { expectPage } from '../support/expect-page.ts'
import {
  refusedExampleServer,
  startExampleServer,
  suiteExampleServer,
  type ExampleServer,
  type Variables,
} from '../support/example-server.ts'
import { describeWithMongo, freshDatabase, type FreshDatabase } from '../support/mongod.ts'
import { suiteFolder } from '../support/suite-folder.ts'
import { decodeEntities } from '../support/user-agent.ts'

const { scripts }: { scripts: { start: string } } = JSON.parse(
  readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
)

const KEY = Buffer.alloc(32, 1).toString('base64url')
const NEXT_KEY = Buffer.alloc(32, 2).toString('base64url')

interface Mail {
  id: string
  to: string
  subject: string
  text: string
  html: string
  date: string
}

async function mailsAt({ baseUrl }: ExampleServer): Promise<Mail[]> {
  const response = await fetch(`${baseUrl}/mailbox`, {
    headers: { accept: 'application/json' },
  })
  return (await response.json()) as Mail[]
}

/** The link of the newest mail to this address, of one kind. */
async function mailedLink(server: ExampleServer, to: string, path: string): Promise<string> {
  return eventually(`a mail to ${to}`, async () => {
    const mails = await mailsAt(server)
    const mail = mails.find((each) => each.to === to && each.text.includes(path))
    return mail && /https?:\/\/\S+/.exec(mail.text)?.[0]
  })
}

async function signIn(browser: Browser, username: string, password: string) {
  const page = await browser.visit('/demo/start')
  expect(page.page).to.equal('login')
  return browser.submit('/oauth2/login', { ...page.hidden, username, password })
}

async function modeOf({ baseUrl, adminToken }: ExampleServer) {
  const headers = { authorization: `Bearer ${adminToken}` }
  const answer = await fetch(`${baseUrl}/admin/api/settings`, { headers })
  return ((await answer.json()) as Record<string, string>)['email_link_confirmation']
}

async function put({ baseUrl, adminToken }: ExampleServer, settings: Record<string, string>) {
  return fetch(`${baseUrl}/admin/api/settings`, {
    method: 'PUT',
    headers: { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' },
    body: JSON.stringify(settings),
  })
}

const userNamed = (username: string, more: object = {}) => ({
  username,
  email: `${username}@example.com`,
  email_verified: true,
  ...more,
})

describe('The example server', () => {
  const file = suiteFolder()
  before(async () => {
    await writeFile(file('settings.json'), '{"require_email_verification":"true"}')
    await writeFile(file('seed.json'), JSON.stringify(seed))
  })
  const server = suiteExampleServer(() => ({ SETTINGS_FILE: file('settings.json') }))

  const seed = {
    users: [
      userNamed('dora', { password: 'dora-password' }),
      userNamed('emil'),
      userNamed('gina', { password: 'gina-password' }),
      userNamed('fred', { password: 'fred-password', disabled: true }),
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

  const authorization = (extra: Record<string, string>) =>
    `/oauth2/auth?${new URLSearchParams({
      response_type: 'code',
      client_id: 'app',
      redirect_uri: 'https://app.example/callback',
      scope: 'openid',
      state: 'the-state',
      ...extra,
    })}`

  describe('start [full]', () => {
    it('is what `npm start` starts, with the settings that are shipped', async () => {
      const shipped = await startExampleServer({}, scripts.start)
      try {
        const browser = createBrowser(shipped.baseUrl)
        const answer = await signIn(browser, 'bob', 'bob-password')
        expect([answer.page, answer.mode]).to.deep.equal(['verify-email', 'blocked'])
        expect(await modeOf(shipped)).to.equal('off')
      } finally {
        await shipped.kill()
      }
    })

    it('takes the recommended email_link_confirmation where nothing tells that a script starts it', async () => {
      const shipped = await startExampleServer(
        { ADMIN_TOKEN: '', RESPONSE_DELAY_FLOOR_MS: '' },
        scripts.start,
      )
      try {
        expect(await modeOf(shipped)).to.equal('other_browser')
      } finally {
        await shipped.kill()
      }
    })

    it('prints the address to open, and READY with the base URL alone on a line', () => {
      expect(server.output()).to.match(/^Open http:\/\/localhost:\d+\/$/m)
      expect(server.output().trimEnd().split('\n')).to.include(`READY ${server.baseUrl}`)
    })

    it('is the issuer at the base URL and the OAuth path', async () => {
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
      const everywhere = await startExampleServer({ HOST: '0.0.0.0' })
      try {
        expect(await isOpen(everywhere)).to.equal(true)
        const answer = await signIn(createBrowser(everywhere.baseUrl), 'alice', 'alice-password')
        expect([answer.page, answer.mode]).to.deep.equal(['demo', 'signed_in'])
      } finally {
        await everywhere.kill()
      }
    })

    it('has a mailbox on the embedded store, or where somebody asks for it, and never in production', () => {
      const production = { NODE_ENV: 'production', SIGNING_KEYS: KEY, SEED_FILE: 'own.json' }
      const on = { MONGODB_URI: 'mongodb://localhost/id' }
      const has = (variables: Variables) => readEnvironment(variables).hasMailbox
      expect([{}, on, { ...on, MAILBOX: 'true' }].map(has)).to.deep.equal([true, false, true])
      expect(has({ MAILBOX: 'false' })).to.equal(false)
      expect(has({ ...production, MAILBOX: 'true' })).to.equal(false)
    })

    const refusals: [string, Variables][] = [
      ['PORT', { PORT: 'eighty' }],
      ['PORT', { PORT: '0' }],
      ['BASE_URL', { BASE_URL: 'localhost:3000' }],
      ['BASE_URL', { BASE_URL: 'https://id.example/?tenant=1' }],
      ['BASE_URL', { BASE_URL: 'http://id.example', SIGNING_KEYS: KEY, NODE_ENV: 'production' }],
      ['OAUTH_PATH', { OAUTH_PATH: '/oauth2/' }],
      ['SIGNING_KEYS', { NODE_ENV: 'production' }],
      ['SIGNING_KEYS', { NODE_ENV: 'production', SIGNING_KEYS: 'c2hvcnQ' }],
      ['SIGNING_KEYS', { SIGNING_KEYS: 'not base64url!' }],
      ['SIGNING_KEYS', { SIGNING_KEYS: `${KEY},` }],
      ['ADMIN_TOKEN', { NODE_ENV: 'production', SIGNING_KEYS: KEY, ADMIN_TOKEN: 'short' }],
      ['SEED_FILE', { NODE_ENV: 'production', SIGNING_KEYS: KEY }],
      ['SEED_FILE', { NODE_ENV: 'production', SIGNING_KEYS: KEY, SEED_FILE: 'examples/seed.json' }],
      ['RESPONSE_DELAY_FLOOR_MS', { RESPONSE_DELAY_FLOOR_MS: '-1' }],
      ['RESPONSE_DELAY_JITTER_MS', { RESPONSE_DELAY_JITTER_MS: '1.5' }],
      ['TRUST_PROXY', { TRUST_PROXY: 'yes' }],
      ['BCRYPT_COST', { BCRYPT_COST: '3' }],
      ['MAILBOX', { MAILBOX: 'yes' }],
    ]
    for (const [name, variables] of refusals) {
      it(`is refused by the name of the variable for ${JSON.stringify(variables)}`, () => {
        expect(() => readEnvironment(variables)).to.throw(StartRefused, new RegExp(`^${name} must`))
      })
    }

    const wrongFiles = {
      'wrong-settings.json': { password_reset_expiration: 'soon' },
      'wrong-seed.json': {
        clients: [{ client_id: 'odd', client_secret: 'secret', redirect_uris: ['nowhere'] }],
      },
    }
    const production = { NODE_ENV: 'production', SIGNING_KEYS: KEY }
    for (const [what, name, value, words, more = {}] of [
      ['published passwords in production', 'SEED_FILE', undefined, /your own/, production],
      ['a database that is none', 'MONGODB_URI', 'localhost', /\w/],
      ['an address that is not of this machine', 'HOST', '192.0.2.1', /\w/],
      ['a file that is not there', 'SEED_FILE', '/nowhere/seed.json', /\w/],
      ['a setting', 'SETTINGS_FILE', 'wrong-settings.json', /password_reset_expiration/],
      ['a client', 'SEED_FILE', 'wrong-seed.json', /odd.*redirect_uris/],
    ] as const) {
      it(`is refused with exit code 2 and one sentence for ${what}, by the name of the variable`, async () => {
        for (const [wrong, content] of Object.entries(wrongFiles)) {
          await writeFile(file(wrong), JSON.stringify(content))
        }
        const given = value !== undefined && value in wrongFiles ? file(value) : value
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
      const { text } = await createBrowser(server.baseUrl).get('/')
      for (const said of ['alice-password', 'bob-password', '/demo/start', '/mailbox']) {
        expect(text).to.include(said)
      }
      const stylesheet = await createBrowser(server.baseUrl).get('/example.css')
      expect(stylesheet.headers.get('content-type')).to.include('text/css')
    })

    it('shows the login page with the way to a new password, which carries the request', async () => {
      const browser = createBrowser(server.baseUrl)
      const { page, mode, text, hidden, headers } = await browser.visit('/demo/start')
      expect([page, mode]).to.deep.equal(['login', 'form'])
      expect(hidden).to.have.keys('interaction')
      expect(text).to.match(/\/oauth2\/forgot-password\?client_id=demo&amp;redirect_uri=http/)
      const policy = headers.get('content-security-policy')
      expect(policy).to.include(`form-action 'self' ${server.baseUrl}`)
    })

    it('answers the well-known address for changing passwords, and no other there', async () => {
      const browser = createBrowser(server.baseUrl)
      const page = await browser.visit('/.well-known/change-password')
      expect([page.page, page.mode]).to.deep.equal(['forgot-password', 'form'])
      const other = await browser.get('/.well-known/resource-that-should-not-exist')
      expect(other.status).to.equal(404)
    })

    it('answers a wrong method with 405, and an unknown path with 404', async () => {
      const browser = createBrowser(server.baseUrl)
      const wrong = await browser.postForm('/mailbox', {})
      expect(wrong.status).to.equal(405)
      expect(wrong.headers.get('allow')).to.equal('GET, HEAD')
      expect((await browser.get('/nothing')).status).to.equal(404)
    })
  })

  describe('login', () => {
    it('signs in to the demo client by username, and by verified address in any case', async () => {
      for (const username of ['alice', 'Alice@Example.com']) {
        const answer = await signIn(createBrowser(server.baseUrl), username, 'alice-password')
        expect([answer.page, answer.mode]).to.deep.equal(['demo', 'signed_in'])
        expect(answer.text).to.include('You are signed in as alice')
        expect(answer.text).to.include('alice@example.com')
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
        const browser = createBrowser(server.baseUrl)
        const { hidden } = await browser.visit('/demo/start')
        const answer = await browser.submit('/oauth2/login', { ...hidden, username, password })
        expect(answer.status).to.equal(401)
        expect(answer.mode).to.equal('refused')
        expect(answer.hidden).to.deep.equal(hidden)
        const own = /value="[^"]*"|href="[^"]*forgot-password[^"]*"/g
        pages.push(answer.text.replace(`value="${username}"`, 'value=""').replace(own, ''))
      }
      expect(new Set(pages)).to.have.property('size', 1)
    })

    it('is silent the second time, and asks again after sign-out', async () => {
      const browser = createBrowser(server.baseUrl)
      const signedIn = await signIn(browser, 'alice', 'alice-password')
      expect((await browser.visit('/demo/start')).mode).to.equal('signed_in')

      const signOut = /href="([^"]*session\/end[^"]*)"/.exec(signedIn.text)?.[1] ?? ''
      const asked = await browser.visit(signOut.replaceAll('&amp;', '&'))
      expect(asked.page).to.equal('logout')
      const action = /action="([^"]*)"/.exec(asked.text)?.[1] ?? ''
      const home = await browser.submit(action, { ...asked.hidden, logout: 'yes' })
      expect(home.page).to.equal('home')
      expect((await browser.visit('/demo/start')).page).to.equal('login')
    })

    it('fills in the username from login_hint, as text, and hands ui_locales on', async () => {
      const browser = createBrowser(server.baseUrl)
      const begun = await browser.get('/demo/start')
      const url = new URL(begun.location ?? '')
      const hint = 'alice"><b>'
      url.searchParams.set('login_hint', hint)
      url.searchParams.set('ui_locales', 'de en')
      const page = await browser.visit(url.pathname + url.search)
      expect([page.page, page.mode]).to.deep.equal(['login', 'form'])
      const [input = ''] = /<input[^>]*id="username"[^>]*>/.exec(page.text) ?? []
      expect(decodeEntities(/value="([^"]*)"/.exec(input)?.[1] ?? '')).to.equal(hint)
      const href = /href="([^"]*forgot-password[^"]*)"/.exec(page.text)?.[1] ?? ''
      const asked = await browser.visit(decodeEntities(href))
      expect(asked.hidden).to.include({ client_id: 'demo', ui_locales: 'de en' })

      const form = { ...page.hidden, username: 'alice', password: 'alice-password' }
      const signedIn = await browser.submit('/oauth2/login', form)
      expect([signedIn.page, signedIn.mode]).to.deep.equal(['demo', 'signed_in'])
    })

    it('says in an older tab that the sign-in continues in the newer one', async () => {
      const browser = createBrowser(server.baseUrl)
      const older = await browser.visit('/demo/start')
      await browser.visit('/demo/start')
      const credentials = { username: 'alice', password: 'alice-password' }
      const answer = await browser.submit('/oauth2/login', { ...older.hidden, ...credentials })
      expect([answer.status, answer.mode]).to.deep.equal([409, 'newer_tab'])
      expect((await browser.visit(older.url)).mode).to.equal('newer_tab')
    })

    it('says to start again where this browser has no interaction', async () => {
      const browser = createBrowser(server.baseUrl)
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
      const browser = createBrowser(server.baseUrl)
      const login = await browser.visit('/demo/start')
      const href = /href="([^"]*forgot-password[^"]*)"/.exec(login.text)?.[1] ?? ''
      const form = await browser.get(decodeEntities(href))
      await browser.postForm('/oauth2/forgot-password', { ...form.hidden, identifier: 'carol' })
      const link = await mailedLink(server, 'carol@example.com', '/reset-password?')
      const page = await browser.get(link)
      const password = 'a brand new password'
      const fields = { ...page.hidden, password, confirm_password: password }
      const done = await browser.postForm('/oauth2/reset-password', fields)
      expect([done.status, done.mode]).to.deep.equal([200, 'done'])
      expect(decodeEntities(done.text)).to.include(`href="${login.url}"`)
      const typed = { ...login.hidden, username: 'carol' }
      const former = { ...typed, password: 'carol-password' }
      expect((await browser.submit('/oauth2/login', former)).status).to.equal(401)
      const signedIn = await browser.submit('/oauth2/login', { ...typed, password })
      expect([signedIn.page, signedIn.mode]).to.deep.equal(['demo', 'signed_in'])
    })

    it('shows the mails newest first, as a page with links and as JSON', async () => {
      const mails = await mailsAt(server)
      expect(mails[0]).to.have.keys('id', 'to', 'subject', 'text', 'html', 'date')
      const dates = mails.map(({ date }) => Date.parse(date))
      expect(dates).to.deep.equal(dates.toSorted((a, b) => b - a))
      const { text, page } = await createBrowser(server.baseUrl).get('/mailbox')
      expect(page).to.equal('mailbox')
      expect(text).to.match(/<a href="http:\/\/localhost:\d+\/oauth2\/reset-password\?token=/)
    })

    it('blocks an unverified user until the mailed link, which ends at the client with a code', async () => {
      const browser = createBrowser(server.baseUrl)
      const blocked = await signIn(browser, 'bob', 'bob-password')
      expectPage(blocked, 200, 'verify-email', 'blocked')
      const link = await mailedLink(server, 'bob@example.com', '/verify-email?')
      const followed = await browser.get(link)
      expect(followed.status).to.equal(302)
      expect(followed.location).to.match(/^http:\/\/localhost:\d+\/demo\/callback\?code=/)
      const answer = await browser.visit(followed.location ?? '')
      expect(answer.text).to.include('You are signed in as bob')
    })

    it('explains a callback in another browser, from where the next sign-in is silent', async () => {
      const other = createBrowser(server.baseUrl)
      const elsewhere = createBrowser(server.baseUrl)
      const { hidden } = await other.visit('/demo/start')
      const form = { ...hidden, username: 'alice', password: 'alice-password' }
      let answer = await other.postForm('/oauth2/login', form)
      while (!answer.location?.includes('/demo/callback')) {
        answer = await other.get(answer.location ?? '')
      }
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

    async function loginAt(browser: Browser, query: Record<string, string>, username = 'dora') {
      const page = await browser.visit(authorization(query).replace('/oauth2', ''))
      expect(page.page).to.equal('login')
      const credentials = { username, password: `${username}-password` }
      return browser.submit('/login', { ...page.hidden, ...credentials })
    }

    it('makes its signing keys once, however many processes start at a time', async () => {
      const sixteen = Array.from({ length: 16 }, () => checkoutSigningKeys(file('keys')))
      expect(new Set((await Promise.all(sixteen)).flat())).to.have.property('size', 1)
      const names = await readdir(file(''))
      expect(names.filter((name) => name.startsWith('keys'))).to.deep.equal(['keys'])
    })

    it('keeps its signing keys in a file that only its owner reads', async () => {
      const { mode } = await stat(join(compiledCheckout(), '.oidc-account-flows-keys'))
      expect(mode & 0o777).to.equal(0o600)
    })

    it('prints a random admin token, which opens the admin API at the root', async () => {
      expect(own.adminToken).to.match(/^[\w-]{43}$/)
      expect(own.output().split(own.adminToken)).to.have.length(2)
      expect((await put(own, { resend_cooldown: '1s' })).status).to.be.oneOf([200, 400])
      expect((await put({ ...own, adminToken: 'wrong' }, {})).status).to.equal(401)
    })

    it('hashes its passwords, and lets in neither a disabled user nor one without a password', async () => {
      const answer = await loginAt(createBrowser(own.baseUrl), {})
      expect(answer.location).to.match(/^https:\/\/app\.example\/callback\?code=/)
      for (const username of ['emil', 'fred']) {
        const refused = await loginAt(createBrowser(own.baseUrl), {}, username)
        expect(refused.status).to.equal(401)
      }
    })

    it('changes the password of whoever is signed in, who stays signed in here and nowhere else', async () => {
      const [here, there] = [createBrowser(own.baseUrl), createBrowser(own.baseUrl)]
      const asked = await here.get('/change-password')
      expectPage(asked, 403, 'change-password', 'signed_out')
      expect((await here.get('/')).text).to.not.include('/change-password')
      for (const browser of [here, there]) await loginAt(browser, {}, 'gina')
      expect((await here.get('/')).text).to.include('href="/change-password"')
      expectPage(await here.get('/change-password'), 200, 'change-password', 'form')

      const change = { current_password: 'gina-password', password: 'a longer password' }
      const form = { ...change, confirm_password: change.password }
      for (const [mode, wrong] of [
        ['wrong', { current_password: 'dora-password' }],
        ['password_mismatch', { confirm_password: 'another password' }],
        ['password_too_short', { password: 'short', confirm_password: 'short' }],
      ] as const) {
        const refused = await here.postForm('/change-password', { ...form, ...wrong })
        expectPage(refused, 400, 'change-password', mode)
        expect(refused.text).to.include('role="alert"')
        expect(refused.text).to.not.include('gina-password')
      }
      const silent = authorization({ prompt: 'none' }).replace('/oauth2', '')
      expect((await there.get(silent)).location).to.include('code=')
      expectPage(await here.postForm('/change-password', form), 200, 'change-password', 'done')
      expect((await here.get(silent)).location).to.include('code=')
      expect((await there.get(silent)).location).to.include('error=login_required')
      await mailedLink(own, 'gina@example.com', '/forgot-password')
      expect((await loginAt(there, {}, 'gina')).status).to.equal(401)
    })

    it('puts the base URL into the metadata of its clients', async () => {
      const answer = await loginAt(createBrowser(own.baseUrl), {
        redirect_uri: `${own.baseUrl}/callback`,
      })
      expect(answer.url).to.match(/\/callback\?code=/)
      expect(answer.status).to.equal(404)
    })

    it('asks for consent with prompt=consent only, and then gives a refresh token', async () => {
      const browser = createBrowser(own.baseUrl)
      const asked = await loginAt(browser, { prompt: 'consent', scope: 'openid offline_access' })
      expect([asked.page, asked.mode]).to.deep.equal(['consent', 'form'])
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
      expect(asked.page).to.equal('consent')
      expect(asked.text).to.include('Native app')
      expect(asked.headers.get('content-security-policy')).to.include('com.example.app:')
      const denied = await browser.submit('/login/consent', { ...asked.hidden, decision: 'deny' })
      expect(denied.location).to.match(/^com\.example\.app:\/callback\?error=access_denied/)
    })
  })

  it('has no mailbox and shows no passwords in production', async function () {
    this.timeout(90_000)
    const production = await startExampleServer({
      NODE_ENV: 'production',
      MAILBOX: 'true',
      SIGNING_KEYS: KEY,
      SEED_FILE: file('seed.json'),
    })
    try {
      const browser = createBrowser(production.baseUrl)
      expect((await browser.get('/mailbox')).status).to.equal(404)
      const { page, text } = await browser.get('/')
      expect(page).to.equal('home')
      expect(text).not.to.include('alice-password')
    } finally {
      await production.kill()
    }
  })

  describeWithMongo('two processes on one database, mid-rotation (SIG-17) [full]', () => {
    let database: FreshDatabase
    let first: ExampleServer
    let second: ExampleServer

    before(async function () {
      this.timeout(120_000)
      database = await freshDatabase()
      const shared = { MONGODB_URI: database.uri, SEED_FILE: file('seed.json') }
      const keys = { SIGNING_KEYS: `${KEY},${NEXT_KEY}` }
      first = await startExampleServer({ ...shared, ...keys, MAILBOX: 'true' })
      // The same service on another port.
      const same = { ...shared, BASE_URL: first.baseUrl }
      second = await startExampleServer({ ...same, SIGNING_KEYS: `${NEXT_KEY},${KEY}` })
    })

    after(async function () {
      this.timeout(60_000)
      await Promise.all([first?.kill(), second?.kill()])
      await database?.drop()
    })

    const atSecond = (path: string) => `http://localhost:${second.port}${path}`

    async function loginAtFirst(browser: Browser, password: string) {
      const page = await browser.visit(authorization({}))
      const login = { ...page.hidden, username: 'dora', password }
      return browser.submit('/oauth2/login', login)
    }

    it('have the users and clients of the seed once', async () => {
      const users = await database.db.collection('users').find().toArray()
      expect(users.map(({ username }) => username)).to.have.members([
        'dora',
        'emil',
        'fred',
        'gina',
      ])
      expect(users[0]).to.include.keys('_id', 'email', 'email_verified', 'disabled')
      const clients = await database.db.collection('client').find().toArray()
      expect(clients.map(({ _id }) => String(_id))).to.have.members(['app', 'native'])
    })

    it('sign with the same keys, which are not in the database in plain', async () => {
      const keysAt = async (url: string) => (await fetch(url)).json()
      const keys = await keysAt(`${first.baseUrl}/oauth2/jwks`)
      expect(await keysAt(atSecond('/oauth2/jwks'))).to.deep.equal(keys)
      const stored = await database.db.collection('provider_jwks').find().toArray()
      expect(stored).to.have.length(1)
      expect(JSON.stringify(stored)).not.to.include('"kty"')
    })

    it('share sessions, and end them in both by a reset', async function () {
      this.timeout(60_000)
      const browser = createBrowser(first.baseUrl)
      expect((await loginAtFirst(browser, 'dora-password')).location).to.include('code=')
      const silent = atSecond(authorization({ prompt: 'none' }))
      expect((await browser.get(silent)).location).to.include('code=')
      // Its cookie has been signed by the second meanwhile.
      expect((await browser.get(authorization({ prompt: 'none' }))).location).to.include('code=')

      await browser.postForm('/oauth2/forgot-password', { identifier: 'dora@example.com' })
      // The other process has no mailbox, and leaves the mail to this one.
      const link = await mailedLink(first, 'dora@example.com', '/reset-password?')
      expect((await browser.get(atSecond('/mailbox'))).status).to.equal(404)
      const page = await browser.get(link)
      const password = 'a brand new password'
      const fields = { ...page.hidden, password, confirm_password: password }
      const done = await browser.postForm(atSecond('/oauth2/reset-password'), fields)
      expect(done.mode).to.equal('done')

      expect((await browser.get(silent)).location).to.include('login_required')
      expect((await loginAtFirst(browser, 'dora-password')).status).to.equal(401)
      expect((await loginAtFirst(browser, password)).location).to.include('code=')
    })

    it('let go of the database on SIGTERM, and exit with 0', async () => {
      expect(await Promise.all([first.stop(), second.stop()])).to.deep.equal([0, 0])
    })
  })
})
