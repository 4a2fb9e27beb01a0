import middie from '@fastify/middie'
import { expect } from 'chai'
import express from 'express'
import Fastify from 'fastify'
import Koa from 'koa'
import mount from 'koa-mount'
import { expressHost } from '../../examples/hosts/express.ts'
import { fastifyHost } from '../../examples/hosts/fastify.ts'
import { koaHost } from '../../examples/hosts/koa.ts'
import { nodeHttpHost } from '../../examples/hosts/node-http.ts'
import type { AccountFlows } from '../../src/index.ts'
import { accountOf, blockedLogin, expectResumed } from '../support/blocked-login.ts'
import {
  startHarness,
  type Harness,
  type HarnessOptions,
  type Host,
  type HostParts,
  type Listener,
} from '../support/harness.ts'
import { createUserAgent } from '../support/user-agent.ts'

type MaybePromise<T> = T | Promise<T>

const NEW_PASSWORD = 'a new password, longer'

function itServesBothFlowsOn(title: string, options: HarnessOptions & { host: Host }): void {
  describe(title, () => {
    let h: Harness

    before(async () => {
      h = await startHarness(options)
    })

    after(() => h.close())

    it('answers the link of a blocked login in another browser with one 302 and the code', async () => {
      const login = await blockedLogin(h)
      const another = createUserAgent()
      await expectResumed(h, login, await another.get(login.link))
      expect(await accountOf(h, another)).to.equal(login.user.id)
      expect(await accountOf(h, login.agent)).to.equal(undefined)
    })

    it('asks the browser that opened the link for consent where that is outstanding, and then issues the code', async () => {
      const { link, request, user } = await blockedLogin(h, { extra: { prompt: 'consent' } })
      const another = createUserAgent()
      const answer = await another.get(link)
      expect(answer.status, answer.text).to.equal(302)
      expect(answer.location).to.match(new RegExp(`^${h.oauthUrl}/login\\?interaction=`))
      const question = await h.follow(another, answer)
      expect([question.page, question.mode]).to.deep.equal(['login', 'consent'])
      const consent = await another.post(`${h.oauthUrl}/login`, { consent: 'yes' })
      const { location = '' } = await h.follow(another, consent)
      const tokens = await h.party.exchange(request, location)
      expect(tokens.claims()?.sub).to.equal(user.id)
    })

    it('resets a password from the forgot-password page on, and lets the user sign in with it', async () => {
      const user = await h.addUser({ username: 'forgetful' })
      const form = await createUserAgent().get(`${h.oauthUrl}/forgot-password`)
      expect([form.status, form.page, form.mode]).to.deep.equal([200, 'forgot-password', 'form'])
      const link = await h.resetLink(user)
      expect(link).to.match(new RegExp(`^${h.oauthUrl}/reset-password\\?token=`))
      const page = await createUserAgent().get(link)
      expect([page.status, page.page, page.mode]).to.deep.equal([200, 'reset-password', 'form'])
      expect(page.text).to.include(`action="${new URL(link).pathname}"`)
      const done = await h.reset(link, NEW_PASSWORD)
      expect([done.status, done.page, done.mode]).to.deep.equal([200, 'reset-password', 'done'])
      const agent = createUserAgent()
      expect((await h.signIn(agent, 'forgetful')).mode).to.equal('wrong')
      const { location = '' } = await h.signIn(agent, 'forgetful', NEW_PASSWORD)
      expect(new URL(location).searchParams.has('code')).to.equal(true)
      expect(await accountOf(h, agent)).to.equal(user.id)
    })

    it('changes the settings at {base_url}/admin/api/settings (4.5)', async () => {
      await h.put({ validation_min_password_length: '20' })
      const user = await h.addUser({ username: 'short' })
      const tooShort = await h.reset(await h.resetLink(user), NEW_PASSWORD.slice(0, 19))
      expect([tooShort.status, tooShort.mode]).to.deep.equal([400, 'password_too_short'])
    })

    it('leaves every other path to the provider', async () => {
      const agent = createUserAgent()
      const discovery = await agent.get(`${h.oauthUrl}/.well-known/openid-configuration`)
      const metadata = JSON.parse(discovery.text) as { issuer: string; token_endpoint: string }
      expect(metadata).to.include({ issuer: h.oauthUrl, token_endpoint: `${h.oauthUrl}/token` })
      expect((await agent.get(`${h.oauthUrl}/nothing-here`)).status).to.equal(404)
    })
  })
}

/** The parsers of a host that reads every body before anybody else does. */
const expressWithParsers = (parts: HostParts) =>
  express().use(express.urlencoded(), express.json(), expressHost(parts))

/** Below `/idp` everything is one application of its own, which never sees that part of the path. */
const expressBelowIdp = (parts: HostParts) =>
  express().use('/idp', expressHost({ ...parts, oauthPath: '/oauth2' }))

describe('Both flows, on every kind of host (D3)', () => {
  itServesBothFlowsOn('Koa, with a prefix', { host: koaHost })
  itServesBothFlowsOn('Koa, without a prefix', { host: koaHost, oauthPath: '' })
  itServesBothFlowsOn('Koa, with a longer prefix', { host: koaHost, basePath: '/idp' })
  itServesBothFlowsOn('Express 5, with a prefix', { host: expressHost })
  itServesBothFlowsOn('Express 5, without a prefix', { host: expressHost, oauthPath: '' })
  itServesBothFlowsOn('Express 5, behind parsers that consume bodies', { host: expressWithParsers })
  itServesBothFlowsOn('Express 5, in an application below another', {
    host: expressBelowIdp,
    basePath: '/idp',
  })
  itServesBothFlowsOn('Fastify with middie, with a prefix', { host: fastifyHost })
  itServesBothFlowsOn('node:http, with a prefix stripped by hand', { host: nodeHttpHost })
})

describe('The admin API, mounted where a prefix is stripped (D3)', () => {
  const mounted: Record<string, (flows: AccountFlows) => MaybePromise<Listener>> = {
    'Koa with koa-mount': (flows) => new Koa().use(mount('/admin', flows.adminApi())).callback(),
    Express: (flows) => express().use('/admin', flows.adminHandler),
    async 'Fastify with middie'(flows) {
      const app = Fastify()
      await app.register(middie)
      app.use('/admin', flows.adminHandler)
      await app.ready()
      return app.routing
    },
    'node:http': (flows) => (req, res) => {
      Object.assign(req, { originalUrl: req.url, url: req.url?.slice('/admin'.length) })
      flows.adminHandler(req, res, () => res.writeHead(404).end())
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
      } finally {
        await h.close()
      }
    })
  }
})
