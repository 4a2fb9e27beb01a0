import middie from '@fastify/middie'
import { expect } from 'chai'
import express from 'express'
import Fastify from 'fastify'
import Koa from 'koa'
import { koaBody } from 'koa-body'
import mount from 'koa-mount'
import { expressHost } from '../../examples/hosts/express.ts'
import { fastifyHost } from '../../examples/hosts/fastify.ts'
import { koaHost } from '../../examples/hosts/koa.ts'
import { nodeHttpHost } from '../../examples/hosts/node-http.ts'
import type { AccountFlows } from '../../src/index.ts'
import { itServesBothFlowsOn } from '../support/both-flows-on-a-host.ts'
import { startHarness, type HostParts, type Listener } from '../support/harness.ts'
import { describeWithMongo } from '../support/mongod.ts'
import { createUserAgent } from '../support/user-agent.ts'

type MaybePromise<T> = T | Promise<T>

/** The parsers of a host that reads every body before anybody else does. */
const expressWithParsers = (parts: HostParts) =>
  express().use(express.urlencoded(), express.json(), expressHost(parts))

/** Below `/idp` everything is one application of its own, which never sees that part of the path. */
const expressBelowIdp = (parts: HostParts) =>
  express()
    .use(parts.flows.changePasswordHandler)
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

describe('Both flows, on every kind of host (D3)', () => {
  itServesBothFlowsOn('Koa, with a prefix', { host: koaHost })
  itServesBothFlowsOn('Koa, without a prefix [full]', { host: koaHost, oauthPath: '' })
  itServesBothFlowsOn('Koa, with a longer prefix [full]', { host: koaHost, basePath: '/idp' })
  itServesBothFlowsOn('Koa, behind a parser that consumes bodies [full]', { host: koaWithParser })
  itServesBothFlowsOn('Express 5, with a prefix [full]', { host: expressHost })
  itServesBothFlowsOn('Express 5, without a prefix [full]', { host: expressHost, oauthPath: '' })
  itServesBothFlowsOn('Express 5, behind parsers that consume bodies', { host: expressWithParsers })
  itServesBothFlowsOn('Express 5, in an application below another [full]', {
    host: expressBelowIdp,
    basePath: '/idp',
  })
  itServesBothFlowsOn('Fastify with middie, with a prefix [full]', { host: fastifyHost })
  itServesBothFlowsOn('Fastify with middie, with a longer prefix', {
    host: fastifyHost,
    basePath: '/idp',
  })
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
