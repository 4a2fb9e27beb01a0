import { randomBytes } from 'node:crypto'
import middie from '@fastify/middie'
import { type Challenge, solveChallenge } from 'altcha-lib'
import { deriveKey } from 'altcha-lib/algorithms/pbkdf2'
import { expect } from 'chai'
import express, { type Express } from 'express'
import Fastify from 'fastify'
import Koa from 'koa'
import { koaBody } from 'koa-body'
import mount from 'koa-mount'
import { interactionPolicy, Provider } from 'oidc-provider'
import { expressHost } from '../../examples/hosts/express.ts'
import { fastifyHost } from '../../examples/hosts/fastify.ts'
import { honoHost } from '../../examples/hosts/hono.ts'
import { koaHost } from '../../examples/hosts/koa.ts'
import { nestHost } from '../../examples/hosts/nest.ts'
import { nodeHttpHost } from '../../examples/hosts/node-http.ts'
import { providerHost } from '../../examples/hosts/provider.ts'
import { type AccountFlows, createAccountFlows, memoryStore, memoryUsers } from '../../src/index.ts'
import { bearer } from '../support/admin.ts'
import { eventually } from '../support/eventually.ts'
import {
  followWithin,
  expectPage,
  assetsOf,
  formsOf,
  linksOf,
  press,
  createUserAgent,
} from '../support/user-agent.ts'
import { startProcess, untilUp } from '../support/process.ts'
import { freePort, serve } from '../support/serve.ts'
import {
  CLIENT,
  type HarnessOptions,
  type Host,
  type HostParts,
  type Listener,
  PASSWORD,
  suiteHarness,
} from '../support/harness.ts'
import { describeWithMongo } from '../support/mongod.ts'
import { expectEnded, isActive, refresh, signedIn } from '../support/oauth-requests.ts'
import { rawRequest } from '../support/raw-request.ts'
import { createRelyingParty } from '../support/relying-party.ts'

const NEW_PASSWORD = 'a new password, longer'

const TARGETS_THAT_ARE_NO_PATH =
  'http://[ http://[::1 https:// http://a:b@[/ http://% http://a%b/ http://xn--/ ' +
  'http://localhost:99999999/ :// * [ javascript:alert(1)'

/** What a person and a client go through, with every address taken from the page or the mail before. */
function itServesBothFlows(options: HarnessOptions & { host: Host }): void {
  const h = suiteHarness({ flows: { adminPath: '/ops/accounts' }, ...options })

  it('answers the link of a blocked login with one 302 and the code, in the same browser and in another', async () => {
    for (const isSame of [true, false]) {
      const login = await h.blockedLogin()
      const browser = isSame ? login : login.in()
      await browser.comesBack(await browser.opensLink())
      expect(await browser.account()).to.equal(login.id)
      expect(h.sessionId(login.agent) !== undefined).to.equal(isSame)
    }
  })

  it('lets the window that logged in go on once the link was opened elsewhere, and no other', async () => {
    const login = await h.blockedLogin()
    const stranger = login.in()
    await login.goesOn()
    await login.sees('verify-email', 'blocked')
    await login.opensElsewhere()
    for (const answer of [await stranger.reloads(), await stranger.goesOn()]) {
      expectPage(answer, 400, 'verify-email', 'ended')
    }
    await login.reloads()
    await login.sees('verify-email', 'blocked')
    await login.comesBack(await login.goesOn())
    expect(await login.account()).to.equal(login.id)
  })

  it('resets a password from the login page on, ends everything that was signed in, and goes on with that login', async () => {
    const before = await signedIn(h)
    expect(await isActive(h, before.tokens.access_token)).to.equal(true)

    const person = before.in()
    const login = await person.starts()
    const { client_id, redirect_uris } = CLIENT
    const parameters = new URLSearchParams({ client_id, redirect_uri: redirect_uris[0] })
    await person.opensLink(`${h.oauthUrl}/forgot-password?${parameters}`)
    await person.sees('forgot-password', 'form')
    await person.presses('/forgot-password', { typed: { identifier: person.username } })
    await person.sees('forgot-password', 'sent')
    const { link } = await person.mail(1)
    expect(link).to.match(new RegExp(`^${h.oauthUrl}/reset-password\\?token=`))
    await person.opensLink(link)
    await person.sees('reset-password', 'form')
    const typed = { password: NEW_PASSWORD, confirm_password: NEW_PASSWORD }
    const done = await person.presses('/reset-password', { typed })
    await person.sees('reset-password', 'done')

    await expectEnded(h, before)
    expect((await before.signsIn(PASSWORD)).mode).to.equal('wrong')
    expect(linksOf(done)).to.include(login.url)
    const form = { username: person.username, password: NEW_PASSWORD }
    const back = await h.follow(person.agent, await person.agent.post(login.url, form))
    const tokens = await h.party.exchange(person.request, back.location ?? '')
    expect(tokens.claims()?.sub).to.equal(person.id)
    expect(await person.account()).to.equal(person.id)
  })

  it('changes a password on the page of the host: this browser stays signed in, and nothing else does', async () => {
    const here = await signedIn(h)
    const there = await signedIn(h, here)
    const link = await here.forgets()
    const page = `${h.oauthUrl}/change-password`
    const form = {
      current_password: PASSWORD,
      password: NEW_PASSWORD,
      confirm_password: NEW_PASSWORD,
    }
    expect((await createUserAgent().post(page, form)).status).to.equal(403)
    expect((await here.agent.get(page)).status).to.equal(200)
    for (const wrong of [
      { current_password: 'a wrong one' },
      { confirm_password: 'another' },
      { password: 'short', confirm_password: 'short' },
    ])
      expect((await here.agent.post(page, { ...form, ...wrong })).status).to.equal(400)
    expect(await there.account()).to.equal(here.id)

    expect((await here.agent.post(page, form)).status).to.equal(200)
    expect(await here.account()).to.equal(here.id)
    await expectEnded(h, there)
    expect(await isActive(h, here.tokens.access_token)).to.equal(false)
    expect(await refresh(h, here.tokens.refresh_token)).to.equal('invalid_grant')
    expect((await here.opensLink(link)).mode).to.equal('invalid')
    expect((await there.signsIn(PASSWORD)).mode).to.equal('wrong')
    await there.signsIn(NEW_PASSWORD)
    expect(await there.account()).to.equal(here.id)
    expect(await here.account()).to.equal(here.id)
  })

  it('gives its pages the style sheet and the script, and sends their forms to where they are', async () => {
    const { blocked, agent } = await h.blockedLogin()
    const pages = [blocked, await agent.get(`${h.oauthUrl}/forgot-password`)]
    for (const page of pages) {
      const assets = assetsOf(page)
      expect(assets.map((address) => address.replace(/\?.*/, ''))).to.include(
        `${h.oauthUrl}/account-flows.css`,
      )
      for (const address of assets) {
        const asset = await createUserAgent().get(address)
        expect(asset.status, address).to.equal(200)
        expect(asset.headers.get('content-type')).to.match(
          /^(text\/(css|javascript)|image\/svg\+xml)/,
        )
        expect(asset.text).to.not.equal('')
      }
      for (const { action } of formsOf(page)) expect(action).to.match(new RegExp(`^${h.oauthUrl}/`))
    }
    const script = await agent.get(`${h.oauthUrl}/account-flows.js`)
    expect(script.headers.get('content-type')).to.match(/^text\/javascript/)
  })

  it('sets the cookies of a sign-in for the paths that need them, and none of the resumption’s own', async () => {
    const login = await h.blockedLogin()
    const [cookie] = login.blocked.headers.getSetCookie()
    expect(cookie).to.match(/^account_flows_browser=[\w-]{43}; /)
    expect(cookie).to.include('Path=/; HttpOnly; SameSite=Lax')
    const elsewhere = createUserAgent()
    const answer = await elsewhere.get(login.link)
    const { pathname, origin } = new URL(h.oauthUrl)
    const held = (path: string) =>
      namesOf(elsewhere.cookiesFor(origin + path)).map((name) => name.replace(/\.sig$/, ''))
    expect([...new Set(held('/'))]).to.deep.equal(['_session'])
    expect(held(`${pathname}/auth`.replace('//', '/'))).to.deep.equal(held('/'))
    const waiting = namesOf(login.agent.cookiesFor(`${h.oauthUrl}/login`))
    expect(waiting).to.include('_interaction').and.to.include('account_flows_browser')
    expect(namesOf(login.agent.cookiesFor(origin))).to.not.include('_interaction')
    await login.comesBack(answer)
  })

  it('leads from the well-known address for changing passwords to the form', async () => {
    const agent = createUserAgent()
    const { origin } = new URL(h.baseUrl)
    const answer = await agent.get(`${origin}/.well-known/change-password`)
    expect([answer.status, answer.location]).to.deep.equal([302, `${h.oauthUrl}/forgot-password`])
    const form = await h.follow(agent, answer)
    expectPage(form, 200, 'forgot-password', 'form')
  })

  it('has the admin API at the path that the host chose, and nowhere else', async () => {
    const ask = (path: string, headers = {}) => createUserAgent().get(h.baseUrl + path, headers)
    expect((await ask('/ops/accounts/settings', bearer)).status).to.equal(200)
    expect((await ask('/ops/accounts/settings')).status).to.equal(401)
    expect((await ask('/admin/api/settings', bearer)).status).to.equal(404)
  })

  it('answers every target of a request, also one that is no address (HDR-11)', async () => {
    const { pathname } = new URL(h.oauthUrl)
    const ask = (target: string) => rawRequest(h.baseUrl, { method: 'GET', target })
    for (const target of TARGETS_THAT_ARE_NO_PATH.split(' ')) {
      expect((await ask(target)).status, target).to.be.below(500)
    }
    const form = `${pathname}/forgot-password`.replace('//', '/')
    expect((await ask(new URL(form, h.baseUrl).href)).status).to.be.below(500)
    expect((await ask(`${form}?client_id=[&state=%&x=http://[`)).status).to.equal(200)
  })

  it('leaves every other path below the prefix to the provider, and all others to the host', async () => {
    const agent = createUserAgent()
    const discovery = await agent.get(`${h.oauthUrl}/.well-known/openid-configuration`)
    const metadata = JSON.parse(discovery.text) as { issuer: string; token_endpoint: string }
    expect(metadata).to.include({ issuer: h.oauthUrl, token_endpoint: `${h.oauthUrl}/token` })
    const unknown = await agent.get(`${h.oauthUrl}/nothing-here`)
    expect(unknown.status).to.equal(404)
    const { origin } = new URL(h.baseUrl)
    const home = await agent.get(`${origin}/`)
    expect([home.status, home.text]).to.deep.equal([200, 'Hello'])
    expect((await agent.get(`${origin}/elsewhere/verify-email`)).status).to.equal(404)
  })
}

function namesOf(cookies: string): string[] {
  return cookies.split('; ').map((pair) => pair.split('=')[0] ?? '')
}

type MaybePromise<T> = T | Promise<T>

/** The parsers of a host that reads every body before anybody else does. */
const withParsers =
  (host: (parts: HostParts) => MaybePromise<Express>) => async (parts: HostParts) =>
    express().use(express.urlencoded(), express.json(), await host(parts))

/** Below `/idp` everything is one application of its own, which never sees that part of the path. */
const expressBelowIdp = (parts: HostParts) =>
  express()
    .use(parts.flows.wellKnownChangePassword)
    .use('/idp', expressHost({ ...parts, oauthPath: '/oauth2' }))
    .get('/', (_req, res) => {
      res.send('Hello')
    })

function koaWithParser(parts: HostParts): Listener {
  const app = new Koa()
  const others = koaHost(parts)
  app.use(koaBody({ patchNode: true }))
  app.use(async (ctx) => {
    ctx.respond = false
    await others(ctx.req, ctx.res)
  })
  return app.callback()
}

const ROOT_PATH = { oauthPath: '' }

const BELOW_IDP = { basePath: '/idp' }

const EVERY_HOST: Record<string, HarnessOptions & { host: Host }> = {
  'Koa, with a prefix': { host: koaHost },
  'Koa, without a prefix [full]': { host: koaHost, ...ROOT_PATH },
  'Koa, with a longer prefix [full]': { host: koaHost, ...BELOW_IDP },
  'Koa, behind a parser that consumes bodies [full]': { host: koaWithParser },
  'Express 5, with a prefix [full]': { host: expressHost },
  'Express 5, without a prefix [full]': { host: expressHost, ...ROOT_PATH },
  'Express 5, behind parsers that consume bodies': { host: withParsers(expressHost) },
  'Express 5, below another application [full]': { host: expressBelowIdp, ...BELOW_IDP },
  'Fastify with middie, with a prefix [full]': { host: fastifyHost },
  'Fastify with middie, with a longer prefix': { host: fastifyHost, ...BELOW_IDP },
  'NestJS, with a prefix': { host: nestHost },
  'NestJS, with a longer prefix, behind parsers [full]': {
    host: withParsers(nestHost),
    ...BELOW_IDP,
  },
  'Hono, with a prefix': { host: honoHost },
  'Hono, with a longer prefix [full]': { host: honoHost, ...BELOW_IDP },
  'oidc-provider alone': { host: providerHost, ...ROOT_PATH },
  'node:http, with a prefix stripped by hand': { host: nodeHttpHost },
  'node:http, without a prefix [full]': { host: nodeHttpHost, ...ROOT_PATH },
}

describe('Both flows, on every kind of host', () => {
  for (const [title, options] of Object.entries(EVERY_HOST)) {
    describe(title, () => itServesBothFlows(options))
  }
  describeWithMongo('Express 5, with a longer prefix, on MongoDB [full]', () =>
    itServesBothFlows({ host: expressHost, ...BELOW_IDP, technology: 'mongodb' }),
  )
})

describe('The admin API, mounted where a prefix is stripped', () => {
  const mounted: Record<string, (flows: AccountFlows) => MaybePromise<Listener>> = {
    'Koa with koa-mount': (flows) => new Koa().use(mount('/admin', flows.adminApi)).callback(),
    Express: (flows) => express().use('/admin', flows.adminApi),
    async 'Fastify with middie'(flows) {
      const app = Fastify()
      await app.register(middie)
      app.use('/admin', flows.adminApi)
      await app.ready()
      return app.routing
    },
    'node:http': (flows) => (req, res) => {
      Object.assign(req, { originalUrl: req.url, url: req.url?.slice('/admin'.length) })
      flows.adminApi(req, res, () => res.writeHead(404).end())
    },
  }

  for (const [name, listenerFor] of Object.entries(mounted)) {
    describe(`below ${name}`, () => {
      const h = suiteHarness({
        async host(parts) {
          const [admin, others] = [await listenerFor(parts.flows), koaHost(parts)]
          return (req, res) => (req.url?.startsWith('/admin') ? admin : others)(req, res)
        },
      })

      it('is found by its full path', async () => {
        await h.put({ validation_min_password_length: '20' })
        const discovery = `${h.oauthUrl}/.well-known/openid-configuration`
        expect((await createUserAgent().get(discovery)).status).to.equal(200)
      })
    })
  }
})

describe('The admin API on node:http, where nothing comes next', () => {
  const h = suiteHarness({
    host(parts) {
      const others = koaHost(parts)
      return (req, res) =>
        req.url?.startsWith('/oauth2') ? others(req, res) : parts.flows.adminApi(req, res)
    },
  })

  it('answers what is its own, and 404 to everything else', async () => {
    await h.put({ validation_min_password_length: '20' })
    for (const path of ['/', '/admin/api', '/elsewhere']) {
      expect((await createUserAgent().get(h.baseUrl + path)).status, path).to.equal(404)
    }
  })
})

describe('The example of each host, as it is started by hand [full]', () => {
  let child: ReturnType<typeof startProcess>

  async function start(...args: string[]): Promise<string> {
    const env = { PATH: process.env['PATH'], PORT: String(await freePort()) }
    const program = ['--import', 'tsx/esm', 'examples/hosts/start.ts', ...args]
    child = startProcess(process.execPath, program, env)
    return untilUp(child, () => /^READY (.*)$/m.exec(child.output())?.[1])
  }

  afterEach('SIGTERM ends it by itself', async () => {
    child.process.kill('SIGTERM')
    expect(await child.exited).to.equal(0)
  })

  const linkTo = (path: string) =>
    eventually('the mail', () => new RegExp(`http\\S+${path}\\?\\S+`).exec(child.output())?.[0])

  it('express captcha: mails a link for work, and none without it', async () => {
    const origin = await start('express', 'captcha')
    const agent = createUserAgent()
    const form = `${origin}/oauth2/forgot-password`
    expect((await agent.get(form)).text).to.include('<altcha-widget ')
    expect((await agent.post(form, { identifier: 'ann' })).mode).to.equal('sent')
    const challenge: Challenge = JSON.parse((await agent.get(`${origin}/captcha/challenge`)).text)
    const solution = await solveChallenge({ challenge, deriveKey })
    const altcha = Buffer.from(JSON.stringify({ challenge, solution })).toString('base64')
    expect((await agent.post(form, { identifier: 'ann', altcha })).mode).to.equal('sent')
    await linkTo('/reset-password')
    expect(child.output().split('/reset-password?token=')).to.have.length(2)
  })

  const hosts = ['koa', 'express', 'fastify', 'hono', 'nest', 'node-http', 'provider']
  for (const host of hosts) {
    it(`${host}: blocks the login, and finishes it by the link and by the page that waits`, async () => {
      const issuer = `${await start(host)}${host === 'provider' ? '' : '/oauth2'}`
      const party = await createRelyingParty(issuer, {
        clientId: 'app',
        redirectUri: 'https://app.example/cb',
      })
      const agent = createUserAgent()
      const request = await party.begin({ scope: 'openid' })
      const shown = await followWithin(agent, issuer, await agent.get(request.url))
      expect(shown.status).to.equal(200)
      expect(shown.text).to.include('Forgot your password?')
      const signIn = (password: string, headers = {}) =>
        agent.post(`${issuer}/login`, { username: 'ann', password }, headers)
      const others = { 'sec-fetch-site': 'cross-site' }
      expect((await signIn('the password of ann', others)).status).to.equal(403)
      expect((await signIn('long '.repeat(5_000))).status).to.equal(413)
      for (const method of ['GET', 'POST']) {
        const lost = await createUserAgent().request(method, `${issuer}/login?interaction=x`)
        expect([lost.status, lost.location]).to.deep.equal([400, undefined])
        expect(lost.text).to.include('sign in from there').and.not.include('node_modules')
      }
      expect((await signIn('a wrong one')).status).to.equal(401)
      const blocked = await signIn('the password of ann')
      expect([blocked.status, blocked.mode]).to.deep.equal([200, 'blocked'])
      const { status, location = '' } = await createUserAgent().get(await linkTo('/verify-email'))
      expect(status).to.equal(302)
      expect((await party.exchange(request, location)).claims()?.sub).to.equal('1')
      const waited = await press(agent, blocked, '/verify-email/waiting')
      expect((await party.exchange(request, waited.location ?? '')).claims()?.sub).to.equal('1')
    })
  }
})

describe('A provider at another path than oauthPath', () => {
  const logged: string[] = []
  const h = suiteHarness({
    flows: { log: (level, message) => logged.push(`${level} ${message}`) },
    // Here and there.
    host: (parts) => express().use('/elsewhere', parts.provider.callback()).use(koaHost(parts)),
  })

  it('is told in the log once, with the first page that is asked for there', async () => {
    const told = () => logged.filter((line) => line.startsWith('error'))
    const agent = createUserAgent()
    expect((await agent.get(`${h.oauthUrl}/forgot-password`)).status).to.equal(200)
    expect(told()).to.deep.equal([])
    for (let time = 0; time < 2; time += 1)
      await agent.get(`${h.baseUrl}/elsewhere/forgot-password`)
    expect(told()).to.deep.equal([
      'error the provider must be mounted at oauthPath, /oauth2: no link of a page or mail works',
    ])
  })
})

describe('Flows that are not attached, or too late', () => {
  async function mountedBeforeAttach(isAttached: boolean) {
    const logged: string[] = []
    const { server, url: baseUrl, close } = await serve()
    const flows = createAccountFlows({
      baseUrl,
      secrets: [randomBytes(32)],
      store: memoryStore(),
      users: memoryUsers(),
      log: (level, message) => logged.push(`${level} ${message}`),
    })
    const provider = new Provider(baseUrl, {
      adapter: flows.adapter(),
      clients: [{ ...CLIENT, scope: 'openid' }],
      interactions: { policy: flows.policy(interactionPolicy.base()) },
    })
    const mounted = new Koa().use(mount(provider)).callback()
    server.on('request', (req, res) => void mounted(req, res))
    if (isAttached) flows.attach(provider)
    await flows.start({ workers: false })
    ends.push(close, flows.stop)
    return { baseUrl, flows, provider, logged, server }
  }
  const ends: (() => Promise<unknown>)[] = []
  after(async () => {
    for (const end of ends) await end()
  })

  it('are told in the log, with the first login, where callback() was never called', async () => {
    const { baseUrl, logged } = await mountedBeforeAttach(true)
    const [redirectUri] = CLIENT.redirect_uris
    const party = await createRelyingParty(baseUrl, { clientId: CLIENT.client_id, redirectUri })
    for (let time = 0; time < 2; time += 1) {
      const { url } = await party.begin({ scope: 'openid' })
      expect((await createUserAgent().get(url)).status).to.equal(303)
    }
    const told = logged.filter((line) => line.startsWith('error'))
    expect(told).to.have.length(1)
    expect(told[0]).to.match(/^error Call flows\.attach\(provider\) before provider\.callback\(\)/)
  })

  it('refuse to finish a login, to renew a session, and to start workers until they are: the code is ERR_NOT_ATTACHED', async () => {
    const { baseUrl, flows, provider, server } = await mountedBeforeAttach(false)
    const codes: unknown[] = []
    server.removeAllListeners('request')
    server.on('request', (req, res) => {
      const login = { account: 'ann', startedAt: flows.loginStarted() }
      const asked = [flows.finishLogin(req, res, login), flows.passwordChanged('ann', { req, res })]
      const refused = asked.map((each) => each.catch((error: unknown) => codes.push(error)))
      void Promise.all(refused).then(() => res.end())
    })
    await createUserAgent().post(`${baseUrl}/login`, {})
    codes.push(await flows.start().catch((error: unknown) => error))
    for (const error of codes) expect(error).to.include({ code: 'ERR_NOT_ATTACHED' })
    expect(codes).to.have.length(3)
    flows.attach(provider)
    await flows.start()
  })
})
