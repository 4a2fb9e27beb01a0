import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import middie from '@fastify/middie'
import { solveChallenge, type Challenge } from 'altcha-lib'
import { deriveKey } from 'altcha-lib/algorithms/pbkdf2'
import { expect } from 'chai'
import express, { type Express } from 'express'
import Fastify from 'fastify'
import Koa from 'koa'
import { koaBody } from 'koa-body'
import mount from 'koa-mount'
import type { AccountFlows } from '../../src/index.ts'
import { expressHost } from '../../examples/hosts/express.ts'
import { fastifyHost } from '../../examples/hosts/fastify.ts'
import { honoHost } from '../../examples/hosts/hono.ts'
import { koaHost } from '../../examples/hosts/koa.ts'
import { nestHost } from '../../examples/hosts/nest.ts'
import { nodeHttpHost } from '../../examples/hosts/node-http.ts'
import { providerHost } from '../../examples/hosts/provider.ts'
import { itServesBothFlowsOn } from '../support/both-flows-on-a-host.ts'
import { eventually } from '../support/eventually.ts'
import { freePort } from '../support/free-port.ts'
import { type HostParts, type Listener, startHarness } from '../support/harness.ts'
import { describeWithMongo } from '../support/mongod.ts'
import { press } from '../support/page-forms.ts'
import { createRelyingParty, followWithin } from '../support/relying-party.ts'
import { createUserAgent } from '../support/user-agent.ts'

type MaybePromise<T> = T | Promise<T>

/** The parsers of a host that reads every body before anybody else does. */
const withParsers =
  (host: (parts: HostParts) => MaybePromise<Express>) => async (parts: HostParts) =>
    express().use(express.urlencoded(), express.json(), await host(parts))

/** Below `/idp` everything is one application of its own, which never sees that part of the path. */
const expressBelowIdp = (parts: HostParts) =>
  express()
    .use(parts.flows.wellKnownChangePasswordHandler)
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

describe('Both flows, on every kind of host', () => {
  itServesBothFlowsOn('Koa, with a prefix', { host: koaHost })
  itServesBothFlowsOn('Koa, without a prefix [full]', { host: koaHost, oauthPath: '' })
  itServesBothFlowsOn('Koa, with a longer prefix [full]', { host: koaHost, basePath: '/idp' })
  itServesBothFlowsOn('Koa, behind a parser that consumes bodies [full]', { host: koaWithParser })
  itServesBothFlowsOn('Express 5, with a prefix [full]', { host: expressHost })
  itServesBothFlowsOn('Express 5, without a prefix [full]', { host: expressHost, oauthPath: '' })
  itServesBothFlowsOn('Express 5, behind parsers that consume bodies', {
    host: withParsers(expressHost),
  })
  itServesBothFlowsOn('Express 5, in an application below another [full]', {
    host: expressBelowIdp,
    basePath: '/idp',
  })
  itServesBothFlowsOn('Fastify with middie, with a prefix [full]', { host: fastifyHost })
  itServesBothFlowsOn('Fastify with middie, with a longer prefix', {
    host: fastifyHost,
    basePath: '/idp',
  })
  itServesBothFlowsOn('NestJS, with a prefix', { host: nestHost })
  itServesBothFlowsOn('NestJS, with a longer prefix, behind parsers that consume bodies [full]', {
    host: withParsers(nestHost),
    basePath: '/idp',
  })
  itServesBothFlowsOn('Hono, with a prefix', { host: honoHost })
  itServesBothFlowsOn('Hono, with a longer prefix [full]', { host: honoHost, basePath: '/idp' })
  itServesBothFlowsOn('oidc-provider alone', { host: providerHost, oauthPath: '' })
  itServesBothFlowsOn('node:http, with a prefix stripped by hand', { host: nodeHttpHost })
  itServesBothFlowsOn('node:http, without a prefix [full]', { host: nodeHttpHost, oauthPath: '' })

  describeWithMongo('On MongoDB [full]', () => {
    itServesBothFlowsOn('Express 5, with a longer prefix', {
      host: expressHost,
      basePath: '/idp',
      technology: 'mongodb',
    })
  })
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
    it(`is found by its full path below ${name}`, async () => {
      const h = await startHarness({
        async host(parts) {
          const [admin, others] = [await listenerFor(parts.flows), koaHost(parts)]
          return (req, res) => (req.url?.startsWith('/admin') ? admin : others)(req, res)
        },
      })
      try {
        await h.put({ validation_min_password_length: '20' })
        const discovery = await createUserAgent().get(
          `${h.oauthUrl}/.well-known/openid-configuration`,
        )
        expect(discovery.status).to.equal(200)
      } finally {
        await h.close()
      }
    })
  }
})

describe('The admin API on node:http, where nothing comes next', () => {
  it('answers what is its own, and 404 to everything else', async () => {
    const h = await startHarness({
      host(parts) {
        const others = koaHost(parts)
        return (req, res) =>
          req.url?.startsWith('/oauth2') ? others(req, res) : parts.flows.adminApi(req, res)
      },
    })
    try {
      await h.put({ validation_min_password_length: '20' })
      for (const path of ['/', '/admin/api', '/elsewhere']) {
        expect((await fetch(h.baseUrl + path)).status, path).to.equal(404)
      }
    } finally {
      await h.close()
    }
  })
})

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const NEW_PASSWORD = 'a new password of ann'
const START_LIMIT_MS = 60_000

describe('The example of each host, as it is started by hand [full]', function () {
  this.timeout(START_LIMIT_MS + 20_000)
  let child: ChildProcess
  let output = ''

  async function start(...args: string[]): Promise<string> {
    const port = String(await freePort())
    output = ''
    child = spawn(process.execPath, ['--import', 'tsx/esm', 'examples/hosts/start.ts', ...args], {
      cwd: ROOT,
      env: { PATH: process.env['PATH'], PORT: port },
    })
    for (const stream of [child.stdout, child.stderr]) {
      stream?.on('data', (chunk: Buffer) => (output += chunk.toString()))
    }
    const isReady = () => {
      if (child.exitCode !== null) throw new Error(`the example ended:\n${output}`)
      return /^READY (.*)$/m.exec(output)?.[1]
    }
    return eventually('the example is ready', isReady, START_LIMIT_MS)
  }

  afterEach('SIGTERM ends it by itself', async () => {
    const exited = once(child, 'exit')
    child.kill('SIGTERM')
    expect(await exited).to.deep.equal([0, null])
  })

  const linkTo = (path: string) =>
    eventually('the mail', () => new RegExp(`http\\S+${path}\\?\\S+`).exec(output)?.[0])

  it('express captcha: mails a link for work, and none without it', async () => {
    const origin = await start('express', 'captcha')
    const agent = createUserAgent()
    const form = `${origin}/oauth2/forgot-password`
    for (const path of ['start.js', 'altcha.js', 'i18n.js', 'worker.js', 'altcha.css']) {
      const { status, headers } = await agent.get(`${origin}/captcha/${path}`)
      expect(status, path).to.equal(200)
      expect(headers.get('content-type'), path).to.match(/^text\/(javascript|css)/)
    }
    expect((await agent.get(form)).text).to.include('<altcha-widget ')
    expect((await agent.post(form, { identifier: 'ann' })).mode).to.equal('sent')
    const challenge: Challenge = JSON.parse((await agent.get(`${origin}/captcha/challenge`)).text)
    const solution = await solveChallenge({ challenge, deriveKey })
    const altcha = Buffer.from(JSON.stringify({ challenge, solution })).toString('base64')
    expect((await agent.post(form, { identifier: 'ann', altcha })).mode).to.equal('sent')
    await linkTo('/reset-password')
    expect(output.split('/reset-password?token=')).to.have.length(2)
  })

  const hosts = ['koa', 'express', 'fastify', 'hono', 'nest', 'node-http', 'provider']
  for (const host of hosts) {
    it(`${host}: blocks the login, finishes it by the link, and resets the password`, async () => {
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
      const signIn = (password: string) =>
        agent.post(`${issuer}/login`, { username: 'ann', password })
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

      const form = await agent.get(`${issuer}/forgot-password`)
      await press(agent, form, '/forgot-password', { typed: { identifier: 'ann' } })
      const page = await agent.get(await linkTo('/reset-password'))
      const typed = { password: NEW_PASSWORD, confirm_password: NEW_PASSWORD }
      const done = await press(agent, page, '/reset-password', { typed })
      expect([done.status, done.mode]).to.deep.equal([200, 'done'])
      const again = await party.begin({ scope: 'openid' })
      await followWithin(agent, issuer, await agent.get(again.url))
      expect((await signIn('the password of ann')).status).to.equal(401)
      const back = await followWithin(agent, issuer, await signIn(NEW_PASSWORD))
      expect((await party.exchange(again, back.location ?? '')).claims()?.sub).to.equal('1')
    })
  }
})
