import { randomBytes } from 'node:crypto'
import { expect } from 'chai'
import express from 'express'
import Koa from 'koa'
import mount from 'koa-mount'
import { interactionPolicy, Provider } from 'oidc-provider'
import { expressHost } from '../../examples/hosts/express.ts'
import { fastifyHost } from '../../examples/hosts/fastify.ts'
import { honoHost } from '../../examples/hosts/hono.ts'
import { koaHost } from '../../examples/hosts/koa.ts'
import { nestHost } from '../../examples/hosts/nest.ts'
import { nodeHttpHost } from '../../examples/hosts/node-http.ts'
import { providerHost } from '../../examples/hosts/provider.ts'
import { createAccountFlows, memoryAdapter, memoryStore, memoryUsers } from '../../src/index.ts'
import { ADMIN_TOKEN, CLIENT, type Host, startHarness } from '../support/harness.ts'
import { createRelyingParty } from '../support/relying-party.ts'
import { serve } from '../support/serve.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { createUserAgent } from '../support/user-agent.ts'

const HOSTS: Record<string, Host> = {
  Express: expressHost,
  Fastify: fastifyHost,
  Hono: honoHost,
  Koa: koaHost,
  NestJS: nestHost,
  'node:http': nodeHttpHost,
  'oidc-provider alone': providerHost,
}

describe('The admin API at a path of the host’s own', () => {
  for (const [name, host] of Object.entries(HOSTS)) {
    it(`is there on ${name}, and nowhere else`, async () => {
      const oauthPath = host === providerHost ? '' : '/oauth2'
      const h = await startHarness({ host, oauthPath, flows: { adminPath: '/ops/accounts' } })
      try {
        const ask = (path: string, headers = {}) => createUserAgent().get(h.baseUrl + path, headers)
        const token = { authorization: `Bearer ${ADMIN_TOKEN}` }
        expect((await ask('/ops/accounts/settings', token)).status).to.equal(200)
        expect((await ask('/ops/accounts/settings')).status).to.equal(401)
        expect((await ask('/admin/api/settings', token)).status).to.equal(404)
        expect((await ask('/')).text).to.equal('Hello')
      } finally {
        await h.close()
      }
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
      adapter: flows.adapter(memoryAdapter()),
      clients: [{ ...CLIENT, scope: 'openid' }],
      interactions: { policy: flows.policy(interactionPolicy.base()) },
    })
    const mounted = new Koa().use(mount(provider)).callback()
    server.on('request', (req, res) => void mounted(req, res))
    if (isAttached) flows.attach(provider)
    await flows.start({ workers: false })
    return { baseUrl, flows, provider, logged, server, close }
  }

  it('are told in the log, with the first login, where callback() was never called', async () => {
    const { baseUrl, flows, logged, close } = await mountedBeforeAttach(true)
    try {
      const [redirectUri] = CLIENT.redirect_uris
      const party = await createRelyingParty(baseUrl, { clientId: CLIENT.client_id, redirectUri })
      for (let time = 0; time < 2; time += 1) {
        const { url } = await party.begin({ scope: 'openid' })
        expect((await createUserAgent().get(url)).status).to.equal(303)
      }
      const told = logged.filter((line) => line.startsWith('error'))
      expect(told).to.have.length(1)
      expect(told[0]).to.match(
        /^error Call flows\.attach\(provider\) before provider\.callback\(\)/,
      )
    } finally {
      await close()
      await flows.stop()
    }
  })

  it('refuse to finish a login, and to start workers: the code is ERR_NOT_ATTACHED', async () => {
    const { baseUrl, flows, server, close } = await mountedBeforeAttach(false)
    const codes: unknown[] = []
    server.removeAllListeners('request')
    server.on('request', (req, res) => {
      const login = { account: 'ann', startedAt: flows.loginStarted() }
      const finished = flows.finishLogin(req, res, login)
      void finished.catch((error: unknown) => codes.push(error)).then(() => res.end())
    })
    try {
      await createUserAgent().post(`${baseUrl}/login`, {})
      codes.push(await flows.start().catch((error: unknown) => error))
      for (const error of codes) expect(error).to.include({ code: 'ERR_NOT_ATTACHED' })
      expect(codes).to.have.length(2)
    } finally {
      await close()
      await flows.stop()
    }
  })
})
