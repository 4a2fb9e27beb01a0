import { readdirSync, readFileSync } from 'node:fs'
import { expect } from 'chai'
import { DomUtils, parseDocument } from 'htmlparser2'
import { createBrowser } from '../support/browser.ts'
import { suiteExampleServer } from '../support/example-server.ts'
import { createUserAgent, type Answer } from '../support/user-agent.ts'
import { shapeOf } from '../support/observe.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { addUnverified, blockedLogin } from '../support/person.ts'

/** What templates do to any text is shown in test/views/pages.test.ts; here, that every page says it through them. */
const PAYLOADS = [
  '"><script>alert(1)</script>',
  "' onmouseover='alert(1)",
  '</title></main></form><form action="https://evil.example"><input name=token>',
  '#{7007*7} !{7007*7} {{7007*7}} ${7007*7} <%= 7007*7 %>',
  '\u202Eevil\u2066<b>\u200B',
]
const PLAIN = 'plain'

/** Elements with the names of their attributes, in their order: what markup in a value would change. */
function skeleton(html: string): string[] {
  return elementsOf(html).map(({ name, attribs }) => `${name} ${Object.keys(attribs).join(' ')}`)
}

function elementsOf(html: string) {
  return DomUtils.getElementsByTagName(() => true, parseDocument(html), true)
}

/** Values of the fields, as a browser would send them. */
function valuesOf(html: string): Record<string, string> {
  const fields = elementsOf(html).filter(({ name }) => name === 'input')
  return Object.fromEntries(
    fields.map(({ attribs }) => [attribs['name'] ?? '', attribs['value'] ?? '']),
  )
}

/** The page is the same but for texts, it leads nowhere else, and these fields come back as they were sent. */
function expectText(page: string, plain: string, fields: Record<string, string>): void {
  expect(skeleton(page)).to.deep.equal(skeleton(plain))
  expect(valuesOf(page)).to.include(fields)
  for (const { attribs } of elementsOf(page)) {
    for (const place of ['href', 'src', 'action', 'formaction']) {
      expect(attribs[place] ?? '/').to.match(
        /^(https?:\/\/(localhost|127\.0\.0\.1)[:/]|\/(?!\/)|#[a-z]+$)/,
      )
    }
  }
}

describe('What is typed, carried or stored is text on every page (XSS)', () => {
  const agent = createUserAgent()
  const h = suiteHarness()

  const FIELDS = ['client_id', 'redirect_uri', 'scope', 'state']
  const filled = (value: string) => Object.fromEntries(FIELDS.map((name) => [name, value]))
  const query = (fields: Record<string, string>) => new URLSearchParams(fields).toString()

  const pages: Record<string, (value: string) => Promise<Answer>> = {
    'the form for a reset link': (value) =>
      agent.get(`${h.oauthUrl}/forgot-password?${query(filled(value))}`),
    'the form after it came back': (value) =>
      agent.post(`${h.oauthUrl}/forgot-password`, { ...filled(value), identifier: '' }),
  }
  for (const [page, open] of Object.entries(pages)) {
    it(`${page}: each of the carried parameters comes back as it was sent`, async () => {
      const plain = await open(PLAIN)
      for (const value of PAYLOADS) {
        const { text } = await open(value)
        expectText(text, plain.text, filled(value))
      }
    })
  }

  const silent: Record<string, (value: string) => Promise<Answer>> = {
    'a token that nobody was given': (value) =>
      agent.get(`${h.oauthUrl}/reset-password?${query({ token: value, [value]: value })}`),
    'a token that nobody was given, posted': (value) =>
      agent.post(`${h.oauthUrl}/reset-password`, { token: value, password: value }),
    'a verification link that was made up': (value) =>
      agent.get(
        `${h.oauthUrl}/verify-email?${query({ ...filled(value), token: value, authorize_sig: value })}`,
      ),
    'the answer to a request': (value) =>
      agent.post(`${h.oauthUrl}/forgot-password`, { ...filled(value), identifier: value }),
    'the answer to a request for a verification': (value) =>
      agent.post(`${h.oauthUrl}/resend-verification`, { ...filled(value), username: value }),
    'an answer that is none': (value) =>
      agent.post(`${h.oauthUrl}/verify-email/waiting`, { ...filled(value), code: value }),
    'a field twice': (value) =>
      agent.post(`${h.oauthUrl}/verify-email/waiting`, query({ x: value }).repeat(2) + `&x&x`),
    'a form from another site': (value) =>
      agent.post(
        `${h.oauthUrl}/forgot-password?${query({ x: value })}`,
        { identifier: value },
        { origin: 'https://evil.example' },
      ),
    'a wrong method': (value) =>
      agent.request('PUT', `${h.oauthUrl}/forgot-password?${query({ x: value })}`),
    'a wrong type': (value) =>
      agent.request('POST', `${h.oauthUrl}/forgot-password`, {
        headers: { 'content-type': 'text/html' },
        body: value,
      }),
  }
  for (const [what, open] of Object.entries(silent)) {
    it(`the page after ${what} repeats nothing of it (XSS-08)`, async () => {
      const { text, status } = shapeOf(await open(PLAIN))
      for (const value of PAYLOADS) {
        const answer = shapeOf(await open(value))
        expect([answer.status, answer.text]).to.deep.equal([status, text])
      }
    })
  }

  it('the page of a blocked login names user and request as they are, and its link too (XSS-01)', async () => {
    const user = await addUnverified(h, { username: 'plain' })
    const plain = await blockedLogin(h, { user, extra: { state: PLAIN } })
    await Promise.all(
      PAYLOADS.map(async (value, index) => {
        const email = `named${index}@users.example`
        const user = await addUnverified(h, { username: `${value}${index}`, email })
        const { blocked } = await blockedLogin(h, { user, extra: { state: value } })
        expectText(blocked.text, plain.blocked.text, { username: user.username, state: value })
      }),
    )
  })

  it('the page about another account too; and no redirect has markup in its body (XSS-10)', async () => {
    await h.addUser({ username: 'carol' })
    const signedIn = createUserAgent()
    await h.signIn(signedIn, 'carol')
    const plain = await blockedLogin(h, { extra: { state: PLAIN } })
    const question = await signedIn.get(plain.link)
    expect(question.mode).to.equal('other_account')
    await Promise.all(
      PAYLOADS.map(async (value) => {
        const { link, agent: own } = await blockedLogin(h, { extra: { state: value } })
        const asked = await signedIn.get(link)
        expectText(asked.text, question.text, {})
        const back = await own.get(link)
        expect(back.status).to.equal(302)
        expect(new URL(back.location ?? '').searchParams.get('state')).to.equal(value)
        for (const { name, attribs } of elementsOf(back.text))
          expect([name, ...Object.keys(attribs)]).to.deep.equal(['a', 'href'])
      }),
    )
  })
})

describe('The pages of the example server (XSS)', () => {
  const server = suiteExampleServer()

  const get = (
    path: string,
    query: Record<string, string>,
    browser = createBrowser(server.baseUrl),
  ) => browser.get(`${path}?${new URLSearchParams(query)}`)

  const OPEN: Record<string, (value: string) => Promise<Answer>> = {
    'the login page after a wrong password': async (value) => {
      const browser = createBrowser(server.baseUrl)
      const page = await browser.visit('/demo/start')
      const credentials = { username: value, password: value }
      return browser.postForm('/oauth2/login', { ...page.hidden, ...credentials })
    },
    'an error of the provider': (value) =>
      get('/oauth2/auth', { client_id: value, redirect_uri: value, scope: value }),
    'the code of a device': (value) => get('/oauth2/device', { user_code: value }),
    'an unknown interaction': (value) => get('/oauth2/login', { interaction: value }),
    'an unknown path': (value) => get(`/${encodeURIComponent(value)}`, { x: value }),
    'a callback of nobody': (value) =>
      get('/demo/callback', { state: value, error: value, error_description: value }),
  }
  for (const [what, open] of Object.entries(OPEN)) {
    it(`show ${what} as text`, async () => {
      const plain = await open(PLAIN)
      for (const value of PAYLOADS) {
        const answer = await open(value)
        const fields = plain.mode === 'refused' ? { username: value } : {}
        expectText(answer.text, plain.text, fields)
        expect(answer.status).to.equal(plain.status)
      }
    })
  }

  it('show an error of the client callback as text, in the browser that began it', async () => {
    const browser = createBrowser(server.baseUrl)
    const begun = await browser.get('/demo/start')
    const state = new URL(begun.location ?? '').searchParams.get('state') ?? ''
    const open = (value: string) =>
      get('/demo/callback', { state, error: 'x', error_description: value }, browser)
    const plain = await open(PLAIN)
    expect(plain.mode).to.equal('refused')
    for (const value of PAYLOADS) {
      const { text } = await open(value)
      expectText(text, plain.text, {})
    }
  })
})

const OWN_SCRIPT = "script(type='module' src=script)"
/** What the host gives in an option, as it is. Nothing of a request can be there. */
const CAPTCHA = '.captcha!= captcha\n'

describe('The templates', () => {
  const folder = new URL('../../views/', import.meta.url)
  const templates = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.(pug|txt)$/.test(name))
    .map((name) => [name, readFileSync(new URL(name, folder), 'utf8')] as const)

  it('hold no wording, no raw output, no data as names of attributes, no script and no handler (XSS-02, XSS-03, XSS-04)', () => {
    expect(templates.length).to.be.above(8)
    for (const [name, source] of templates) {
      expect(source.replace(CAPTCHA, ''), name).not.to.match(
        /!=(?!=)|!\{|#\{|&attributes|^\s*\||^\s*</m,
      )
      expect(source.replace(OWN_SCRIPT, ''), name).not.to.match(
        /^\s*(script|iframe|object|embed|base)\b/m,
      )
      // Mail programs know no other style sheets.
      if (name.startsWith('pages')) expect(source, name).not.to.match(/\bstyle\b(?!sheet)/)
      expect(source, name).not.to.match(/\bon[a-z]+\s*=|javascript:|formaction|http-equiv/i)
    }
  })
})
