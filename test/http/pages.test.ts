import type { RequestListener } from 'node:http'
import { expect } from 'chai'
import Koa from 'koa'
import mount from 'koa-mount'
import { createPages } from '../../src/http/pages.ts'
import type { Captcha, ForgotPasswordRequest } from '../../src/index.ts'
import { createViews } from '../../src/views/index.ts'
import { assetsOf, createUserAgent } from '../support/user-agent.ts'
import { type Harness, type Listener, suiteHarness } from '../support/harness.ts'
import { shapeOf } from '../support/observe.ts'
import { rawRequest } from '../support/raw-request.ts'
import { serve, type Served } from '../support/serve.ts'
import { viewsDirectory } from '../support/words.ts'
import { everyPage, type ShownPage } from '../browser/every-page.ts'

describe('The policy of a page whose form leads to a client', () => {
  const pages = createPages(createViews('/oauth2'), () => {})

  async function formAction(redirectUri: string) {
    const { url, close } = await serve((req, res) =>
      pages.send(req, res, {
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
  const h = suiteHarness(() => ({
    flows: {
      viewsDirectory: viewsDirectory({
        'locales/en.json': '{"mail.password-reset.subject":"A new password for the host"}',
        'theme.css': ':root { --accent: teal }',
        'account-flows.js': '"the script of the host"',
      }),
    },
  }))

  it('serves its style and its script, and sends mails in its words, whose links work', async () => {
    const css = await agent.get(`${h.oauthUrl}/account-flows.css`)
    expect(css.text).to.match(/--accent: #[^]*\n:root { --accent: teal }$/)
    const script = await agent.get(`${h.oauthUrl}/account-flows.js`)
    expect(script.text).to.equal('"the script of the host"')
    const { user, link } = await h.userWithLink()
    expect((await user.mail()).mail.subject).to.equal('A new password for the host')
    expect((await h.reset(link, 'a new password')).mode).to.equal('done')
  })
})

const WELL_KNOWN = '/.well-known/change-password'
const PASSED_ON = 418
const OTHERS = [
  `POST ${WELL_KNOWN}`,
  `OPTIONS ${WELL_KNOWN}`,
  `GET ${WELL_KNOWN}/`,
  `GET ${WELL_KNOWN}s`,
  `GET /auth${WELL_KNOWN}`,
  `GET ${WELL_KNOWN.toUpperCase()}`,
  'GET /.well-known/resource-that-should-not-exist-whose-status-code-should-not-be-200',
  'GET /',
]

const hosts: Record<string, (h: Harness) => Listener> = {
  Koa: ({ flows }) =>
    new Koa()
      .use(flows.wellKnownChangePassword)
      .use((ctx) => void (ctx.status = PASSED_ON))
      .callback(),
  'Koa with koa-mount': ({ flows }) =>
    new Koa()
      .use(mount('/.well-known', flows.wellKnownChangePassword))
      .use((ctx) => void (ctx.status = PASSED_ON))
      .callback(),
  'node:http':
    ({ flows }) =>
    (req, res) =>
      flows.wellKnownChangePassword(req, res, () => res.writeHead(PASSED_ON).end()),
}

// Without a base path: test/oidc/hosts.test.ts.
describe('/.well-known/change-password leads to the form', () => {
  const agent = createUserAgent()
  const h = suiteHarness({ basePath: '/auth' })

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
        for (const other of OTHERS) {
          const [method = '', path = ''] = other.split(' ')
          const answer = await agent.request(method, origin + path)
          expect(answer.status, other).to.equal(PASSED_ON)
        }
      } finally {
        await close()
      }
    })
  }
})

const WIDGET = '<div class="widget" data-sitekey="&quot;k"></div>'
const SOURCES = {
  'script-src': ["'self'", 'https://widget.example/api.js', "'wasm-unsafe-eval'"],
  'img-src': ['data:'],
  'connect-src': ['https://*.widget.example:8443'],
  'frame-src': ['https://widget.example', "'self'"],
  'worker-src': ['blob:'],
  'style-src': [],
} satisfies Captcha['sources']

/** What a widget adds, and what stays as it is. */
const policyWith = (formAction = "'self'") =>
  [
    "default-src 'none'",
    "style-src 'self'",
    "script-src 'self' https://widget.example/api.js 'wasm-unsafe-eval'",
    "connect-src 'self' https://*.widget.example:8443",
    "img-src 'self' data:",
    "frame-src https://widget.example 'self'",
    'worker-src blob:',
    `form-action ${formAction}`,
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; ')

const ASKED = /^(forgot-password\.(form|invalid)|verify-email\.(blocked|invalid|expired))(\.|$)/
/** Otherwise there is no form, or one click in place of a name. */
const isAsked = ({ id, locals }: ShownPage) =>
  ASKED.test(id) &&
  !('renew' in locals) &&
  (locals.mode !== 'blocked' || 'sentTo' in locals) &&
  Reflect.get(locals, 'reason') !== 'taken'

describe('A captcha (HDR-12)', () => {
  const pages = {
    with: createPages(createViews('/oauth2', { captcha: { html: WIDGET } }), () => {}, SOURCES),
    without: createPages(createViews('/oauth2'), () => {}),
  }
  const listener: RequestListener = (req, res) => {
    const [, which = '', id] = req.url?.split('/') ?? []
    const shown = everyPage.find((page) => page.id === id)
    if (!shown || (which !== 'with' && which !== 'without')) throw new Error(`no page ${req.url}`)
    pages[which].send(req, res, { formId: 'form', ...shown })
  }
  let served: Served

  before(async () => {
    served = await serve(listener)
  })
  after(() => served.close())

  const open = async (which: keyof typeof pages, id: string) => {
    const { text, headers } = shapeOf(await createUserAgent().get(`${served.url}/${which}/${id}`))
    const { 'content-security-policy': policy, ...others } = Object.fromEntries(headers)
    delete others['content-length']
    return { text, policy, others }
  }

  it('is as the host wrote it, above the button, on every page where somebody is named who gets a link, and changes no byte and no header of any other', async () => {
    const shown: string[] = []
    for (const each of everyPage) {
      const { id } = each
      const [plain, page] = [await open('without', id), await open('with', id)]
      if (!isAsked(each)) {
        expect(page, id).to.deep.equal(plain)
        continue
      }
      shown.push(id)
      expect(page.policy, id).to.equal(policyWith())
      expect(page.others, id).to.deep.equal(plain.others)
      const added =
        /<div class="captcha"><div class="widget".*<\/div><\/div><noscript>.*<\/noscript>(?=<button)/
      expect(page.text, id).to.match(added)
      expect(page.text, id).to.include(`<div class="captcha">${WIDGET}</div>`)
      expect(page.text.replace(added, ''), id).to.equal(plain.text)
    }
    expect(shown).to.have.length.above(10)
  })
})

describe('A captcha, on a service', () => {
  const asked: ForgotPasswordRequest[] = []
  const h = suiteHarness({
    flows: {
      captcha: { html: WIDGET, sources: SOURCES },
      beforeForgotPassword(request) {
        asked.push(request)
        return 'deny'
      },
    },
  })
  const policyOf = ({ headers }: { headers: Headers }) => headers.get('content-security-policy')

  it('is on the pages that wait, beside where the client may be, and gone once the mail was asked for', async () => {
    const login = await h.blockedLogin()
    expect(policyOf(login.blocked)).to.equal(policyWith("'self' https:"))
    const sent = await login.presses('/resend-verification')
    expect([sent.status, sent.mode]).to.deep.equal([200, 'sent'])
    expect(policyOf(sent)).not.to.include('widget.example')
    expect(policyOf(await login.reloads())).to.equal(policyWith("'self' https:"))
    const made = await createUserAgent().get(`${h.oauthUrl}/verify-email?token=half`)
    expect(policyOf(made)).to.equal(policyWith())
    expect(policyOf(await createUserAgent().get(login.link))).to.equal(null)
  })

  it('is not asked about by the one click that replaces an expired link, which is for its holder alone', async () => {
    const login = await h.blockedLogin()
    await h.later(25 * 3_600_000)
    asked.length = 0
    const elsewhere = login.in()
    expect((await elsewhere.opensLink()).text).not.to.include('widget')
    const mails = h.mail.mails.length
    expect((await elsewhere.presses('/resend-verification')).mode).to.equal('sent')
    await login.mail(2)
    await h.isIdle()
    expect(h.mail.mails).to.have.length(mails + 1)
    expect(asked).to.deep.equal([])
  })
})
