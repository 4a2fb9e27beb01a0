import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import Koa from 'koa'
import mount from 'koa-mount'
import { type Harness, type Listener } from '../support/harness.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { createUserAgent } from '../support/user-agent.ts'

const WELL_KNOWN = '/.well-known/change-password'
const PASSED_ON = 418

const hosts: Record<string, (h: Harness) => Listener> = {
  Koa: ({ flows }) =>
    new Koa()
      .use(flows.changePassword())
      .use((ctx) => void (ctx.status = PASSED_ON))
      .callback(),
  'Koa with koa-mount': ({ flows }) =>
    new Koa()
      .use(mount('/.well-known', flows.changePassword()))
      .use((ctx) => void (ctx.status = PASSED_ON))
      .callback(),
  'node:http':
    ({ flows }) =>
    (req, res) =>
      flows.changePasswordHandler(req, res, () => res.writeHead(PASSED_ON).end()),
}

describe('/.well-known/change-password leads to the form', () => {
  const agent = createUserAgent()

  for (const basePath of ['', '/auth']) {
    describe(`with the base path "${basePath}"`, () => {
      const h = suiteHarness({ basePath })

      for (const [what, host] of Object.entries(hosts)) {
        it(`on ${what}, at the root of the origin`, async () => {
          const server = createServer(host(h))
          await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
          const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
          try {
            for (const method of ['GET', 'HEAD']) {
              for (const query of ['', '?x=y', '?']) {
                const answer = await agent.request(method, origin + WELL_KNOWN + query)
                expect([answer.status, answer.text]).to.deep.equal([302, ''])
                expect(answer.location).to.equal(`${h.oauthUrl}/forgot-password`)
                expect(answer.headers.get('cache-control')).to.equal('no-store')
                expect(answer.headers.getSetCookie()).to.deep.equal([])
              }
            }
            const { location = '' } = await agent.get(origin + WELL_KNOWN)
            const { page, mode } = await agent.get(location)
            expect([page, mode]).to.deep.equal(['forgot-password', 'form'])
            const others: [method: string, path: string][] = [
              ['POST', WELL_KNOWN],
              ['OPTIONS', WELL_KNOWN],
              ['GET', `${WELL_KNOWN}/`],
              ['GET', `${WELL_KNOWN}s`],
              ['GET', `/auth${WELL_KNOWN}`],
              ['GET', WELL_KNOWN.toUpperCase()],
              [
                'GET',
                '/.well-known/resource-that-should-not-exist-whose-status-code-should-not-be-200',
              ],
              ['GET', '/'],
            ]
            for (const [method, path] of others) {
              const answer = await agent.request(method, origin + path)
              expect(answer.status, `${method} ${path}`).to.equal(PASSED_ON)
            }
          } finally {
            server.close()
          }
        })
      }
    })
  }
})
