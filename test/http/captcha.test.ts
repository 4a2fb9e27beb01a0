import type { RequestListener } from 'node:http'
import { expect } from 'chai'
import { DomUtils, parseDocument } from 'htmlparser2'
import { createPages } from '../../src/http/pages.ts'
import type { Captcha, ForgotPasswordRequest } from '../../src/index.ts'
import { createViews } from '../../src/views/index.ts'
import { everyPage } from '../browser/every-page.ts'
import { isIdle, later } from '../support/jobs.ts'
import { shapeOf } from '../support/observe.ts'
import { press } from '../support/page-forms.ts'
import { serve, type Served } from '../support/serve.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { createUserAgent } from '../support/user-agent.ts'
import { addVerified, blockedLogin } from '../support/person.ts'

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
/** There is no form, or one click in place of a name. */
const NOT_ASKED = new Set(['verify-email.blocked.no-address', 'verify-email.expired.expired'])

describe('A captcha (HDR-12)', () => {
  const pages = {
    with: createPages(createViews('/oauth2', { captcha: { html: WIDGET } }), SOURCES),
    without: createPages(createViews('/oauth2')),
  }
  const listener: RequestListener = (req, res) => {
    const [, which = '', id] = req.url?.split('/') ?? []
    const shown = everyPage.find((page) => page.id === id)
    if (!shown || (which !== 'with' && which !== 'without')) throw new Error(`no page ${req.url}`)
    pages[which].send(req, res, { status: 200, formId: 'form', ...shown })
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

  it('is on every page where somebody is named who gets a link, and changes no byte and no header of any other', async () => {
    const shown: string[] = []
    for (const { id } of everyPage) {
      const [plain, page] = [await open('without', id), await open('with', id)]
      if (!ASKED.test(id) || NOT_ASKED.has(id)) {
        expect(page, id).to.deep.equal(plain)
        continue
      }
      shown.push(id)
      expect(page.policy, id).to.equal(policyWith())
      expect(page.others, id).to.deep.equal(plain.others)
      const added =
        /<div class="captcha"><div class="widget".*<\/div><\/div><noscript>.*<\/noscript>(?=<button)/
      expect(page.text, id).to.match(added)
      expect(page.text.replace(added, ''), id).to.equal(plain.text)
    }
    expect(shown).to.have.length.above(10)
  })

  it('is in the form as the host wrote it, and above its button', async () => {
    const { text } = await open('with', 'verify-email.blocked.client')
    const form = DomUtils.getElementsByTagName('form', parseDocument(text)).find(
      ({ attribs }) => attribs['action'] === '/oauth2/resend-verification',
    )
    expect(DomUtils.getOuterHTML(form ?? [], { decodeEntities: false })).to.include(
      `<div class="captcha">${WIDGET}</div>`,
    )
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
    const login = await blockedLogin(h)
    expect(policyOf(login.blocked)).to.equal(policyWith("'self' https:"))
    const sent = await press(login.agent, login.blocked, '/resend-verification')
    expect([sent.status, sent.mode]).to.deep.equal([200, 'sent'])
    expect(policyOf(sent)).not.to.include('widget.example')
    const again = await login.agent.get(
      `${h.oauthUrl}/verify-email/waiting?login=${login.blocked.hidden['login']}`,
    )
    expect(policyOf(again)).to.equal(policyWith("'self' https:"))
    const made = await createUserAgent().get(`${h.oauthUrl}/verify-email?token=half`)
    expect(policyOf(made)).to.equal(policyWith())
    expect(policyOf(await createUserAgent().get(login.link))).to.equal(null)
  })

  it('is not asked about by the one click that replaces an expired link, which is for its holder alone', async () => {
    const login = await blockedLogin(h)
    const { email = '' } = login
    await later(h, 25 * 3_600_000)
    asked.length = 0
    const agent = createUserAgent()
    const expired = await agent.get(login.link)
    expect(expired.text).not.to.include('widget')
    const mails = h.mail.mails.length
    expect((await press(agent, expired, '/resend-verification')).mode).to.equal('sent')
    await h.mail.mailTo(email, 2)
    await isIdle(h)
    expect(h.mail.mails).to.have.length(mails + 1)
    expect(asked).to.deep.equal([])
  })

  it('is not asked about by a form that another site posts (HDR-04)', async () => {
    const { username } = await addVerified(h)
    asked.length = 0
    for (const [path, name] of Object.entries({
      'forgot-password': 'identifier',
      'resend-verification': 'username',
    })) {
      const post = (headers: Record<string, string>) =>
        createUserAgent().post(`${h.oauthUrl}/${path}`, { [name]: username }, headers)
      expect((await post({ origin: 'https://evil.example' })).mode).to.equal('refused')
      expect(asked).to.deep.equal([])
      expect((await post({})).mode).to.equal('sent')
      expect(asked.splice(0)).to.have.length(1)
    }
  })
})
