import type { Person } from '../support/person.ts'
import { expect } from 'chai'
import Koa from 'koa'
import mount from 'koa-mount'
import { createPages } from '../../src/http/pages.ts'
import type { Log } from '../../src/index.ts'
import { createViews } from '../../src/views/index.ts'
import { expectPage } from '../support/expect-page.ts'
import type { Harness, Listener } from '../support/harness.ts'
import { assetsOf } from '../support/page-forms.ts'
import { rawRequest } from '../support/raw-request.ts'
import { serve } from '../support/serve.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { createUserAgent } from '../support/user-agent.ts'
import { removeViewsDirectories, viewsDirectory } from '../support/views-directory.ts'

describe('The policy of a page whose form leads to a client', () => {
  const pages = createPages(createViews('/oauth2'))

  async function formAction(redirectUri: string) {
    const { url, close } = await serve((req, res) =>
      pages.send(req, res, {
        status: 200,
        name: 'error',
        locals: { mode: 'error' },
        formMayLeadTo: redirectUri,
      }),
    )
    const { headers } = await fetch(url)
    await close()
    const directives = (headers.get('content-security-policy') ?? '').split('; ')
    expect(directives.filter((each) => each.startsWith('form-action'))).to.have.length(1)
    expect(directives).to.have.length(8)
    return directives.find((each) => each.startsWith('form-action'))
  }

  for (const [redirectUri, source] of [
    ['https://app.example:8443/cb?x=1', 'https:'],
    ['http://[::1]:3000/cb', 'http:'],
    ['com.example.app:/cb', 'com.example.app:'],
    ['https://a;sandbox/cb', 'https:'],
    ["https://a'b/cb", 'https:'],
  ] as const) {
    it(`names the scheme of ${redirectUri}, as the client may lead on to another origin`, async () => {
      expect(await formAction(redirectUri)).to.equal(`form-action 'self' ${source}`)
    })
  }

  it('names nothing of what is no address', async () => {
    for (const redirectUri of ['no url', '', '//app.example/cb']) {
      expect(await formAction(redirectUri)).to.equal("form-action 'self'")
    }
  })
})

describe('The style sheet, the script and the icon of the pages', () => {
  const h = suiteHarness()
  const agent = createUserAgent()

  const cacheControl = async (address: string) => {
    const { status, headers } = await agent.get(address)
    expect(status).to.equal(200)
    return headers.get('cache-control')
  }

  it('are asked for by version, and that is kept for a year', async () => {
    const addresses = assetsOf(await agent.get(`${h.oauthUrl}/forgot-password`))
    expect(addresses).to.have.length(3)
    for (const address of addresses) {
      expect(address).to.match(/\.(css|js|svg)\?v=[\w-]{12}$/)
      expect(await cacheControl(address)).to.equal('public, max-age=31536000, immutable')
    }
  })

  it('are not sent again to a browser that has them', async () => {
    const address = `${h.oauthUrl}/account-flows.css`
    const { headers, text } = await agent.get(address)
    const etag = headers.get('etag') ?? ''
    const ask = (tag: string) =>
      rawRequest(address, { method: 'GET', headers: { 'if-none-match': tag } })
    const again = await ask(etag)
    expect([again.status, again.text]).to.deep.equal([304, ''])
    const other = await ask('"of-another-one"')
    expect([other.status, other.text]).to.deep.equal([200, text])
  })

  it('are not kept under another version, nor under none: the next release has other ones', async () => {
    for (const query of ['', '?', '?v=', '?v=AAAAAAAAAAAA']) {
      const address = `${h.oauthUrl}/account-flows.css${query}`
      expect(await cacheControl(address), query).to.equal('no-cache')
    }
  })
})

describe('The option viewsDirectory', () => {
  const agent = createUserAgent()
  const logged: Parameters<Log>[] = []
  const h = suiteHarness(() => ({
    flows: {
      defaultLocale: 'en',
      log: (...line) => void logged.push(line),
      viewsDirectory: viewsDirectory({
        'pages/error.pug': 'extends error\nappend content\n  p.hosts Call the host',
        'pages/forgot-password.pug':
          "extends forgot-password\nappend content\n  if mode === 'form' && carried.state === 'boom'\n    = nothing.there",
        'locales/en.json': '{"mail.password-reset.subject":"A new password for the host"}',
        'locales/he.json': '{"forgot-password.title":"איפוס הסיסמה"}',
        'theme.css': ':root { --accent: teal }',
        'account-flows.js': '"the script of the host"',
      }),
    },
  }))
  let ann: Person

  before(async () => {
    ann = await h.addUser({ username: 'ann' })
  })
  after(removeViewsDirectories)

  const form = (query = '', headers?: Record<string, string>) =>
    agent.get(`${h.oauthUrl}/forgot-password${query}`, headers)

  it('shows the pages of the host', async () => {
    const page = await agent.request('DELETE', `${h.oauthUrl}/forgot-password`)
    expectPage(page, 405, 'error', 'method_not_allowed')
    expect(page.text).to.contain('<p class="hosts">Call the host</p>')
  })

  it('serves its style and its script', async () => {
    const css = await agent.get(`${h.oauthUrl}/account-flows.css`)
    expect(css.text).to.match(/--accent: #[^]*\n:root { --accent: teal }$/)
    const script = await agent.get(`${h.oauthUrl}/account-flows.js`)
    expect(script.text).to.equal('"the script of the host"')
  })

  it('sends mails in its words, whose links work', async () => {
    const link = await ann.forgets()
    const { mail } = await h.mail.mailTo(ann.email ?? '')
    expect(mail.subject).to.equal('A new password for the host')
    expect((await h.reset(link, 'a new password')).mode).to.equal('done')
  })

  it('answers in a language that was dropped in', async () => {
    const page = await form('', { 'accept-language': 'he-IL,en;q=0.5' })
    expect(page.headers.get('content-language')).to.equal('he')
    expect(page.text).to.match(/<html lang="he" dir="rtl">.*<h1>איפוס הסיסמה<\/h1>/)
    const unknown = await form('', { 'accept-language': 'tlh' })
    expect(unknown.headers.get('content-language')).to.equal('en')
  })

  it('shows ours where a template of the host fails, and logs it without what was asked', async () => {
    logged.length = 0
    const page = await form('?state=boom&client_id=nobody')
    expect([page.status, page.mode, page.hidden['state']]).to.deep.equal([200, 'form', 'boom'])
    expect(logged.map(([level, , details]) => [level, details?.['where']])).to.deep.equal([
      ['error', 'pages/forgot-password.pug:4'],
    ])
    expect(JSON.stringify(logged)).not.to.contain('boom')
    expect((await h.forgot('ann', page.hidden)).mode).to.equal('sent')
    expect(logged).to.have.length(1)
  })
})

const WELL_KNOWN = '/.well-known/change-password'
const PASSED_ON = 418

const hosts: Record<string, (h: Harness) => Listener> = {
  Koa: ({ flows }) =>
    new Koa()
      .use(flows.wellKnownChangePassword())
      .use((ctx) => void (ctx.status = PASSED_ON))
      .callback(),
  'Koa with koa-mount': ({ flows }) =>
    new Koa()
      .use(mount('/.well-known', flows.wellKnownChangePassword()))
      .use((ctx) => void (ctx.status = PASSED_ON))
      .callback(),
  'node:http':
    ({ flows }) =>
    (req, res) =>
      flows.wellKnownChangePasswordHandler(req, res, () => res.writeHead(PASSED_ON).end()),
}

describe('/.well-known/change-password leads to the form', () => {
  const agent = createUserAgent()

  for (const basePath of ['', '/auth']) {
    describe(`with the base path "${basePath}"`, () => {
      const h = suiteHarness({ basePath })

      for (const [what, host] of Object.entries(hosts)) {
        it(`on ${what}, at the root of the origin`, async () => {
          const { url: origin, close } = await serve(host(h))
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
            await close()
          }
        })
      }
    })
  }
})
