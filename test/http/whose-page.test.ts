import { expect } from 'chai'
import { DomUtils, parseDocument } from 'htmlparser2'
import { newLinkFrom } from '../support/bad-links.ts'
import { CLIENT } from '../support/harness.ts'
import { later } from '../support/jobs.ts'
import { signedIn } from '../support/other-account.ts'
import { formsOf, press } from '../support/page-forms.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { createUserAgent, type Answer } from '../support/user-agent.ts'
import { addVerified, blockedLogin } from '../support/person.ts'

const DAY_MS = 86_400_000
const NAME = CLIENT.client_name
const [redirect_uri] = CLIENT.redirect_uris
const carried = { client_id: CLIENT.client_id, redirect_uri, state: 's' }

/** What is above the page, and below it. */
function around({ text }: Answer): [header: string, footer: string] {
  const document = parseDocument(text)
  const textOf = (tag: string) =>
    DomUtils.getElementsByTagName(tag, document)
      .map((element) => DomUtils.getElementsByTagName('bdi', element))
      .map((names) => DomUtils.textContent(names))
      .join()
  return [textOf('header'), textOf('footer')]
}

describe('Whose page it is', () => {
  const h = suiteHarness(() => ({ flows: { brand: { name: 'Acme' } } }))
  const agent = createUserAgent()

  function expectOfClient(page: Answer, mode: string): Answer {
    expect([page.mode, ...around(page)]).to.deep.equal([mode, NAME, 'Acme'])
    return page
  }

  function expectOfBrand(page: Answer, mode: string): Answer {
    expect([page.mode, ...around(page)]).to.deep.equal([mode, 'Acme', ''])
    return page
  }

  const start = (parameters: Record<string, string>) =>
    agent.get(`${h.oauthUrl}/forgot-password?${new URLSearchParams(parameters)}`)
  const asks = (page: Answer, identifier: string) =>
    press(agent, page, '/forgot-password', { typed: { identifier } })

  it('is the client’s, by its name, on every page of a reset', async () => {
    const user = await addVerified(h)
    const form = expectOfClient(await start(carried), 'form')
    expectOfClient(await asks(form, ''), 'invalid')
    expectOfClient(await asks(form, 'nobody'), 'sent')
    expectOfClient(await asks(form, user.username), 'sent')
    const { link } = await h.mail.mailTo(user.email ?? '')
    const page = expectOfClient(await agent.get(link), 'form')
    const sends = (password: string) =>
      press(agent, page, '/reset-password', { typed: { password, confirm_password: password } })
    expectOfClient(await sends('short'), 'password_too_short')
    expectOfClient(await sends('a good password'), 'done')
    expectOfClient(await agent.get(link), 'invalid')
    expectOfClient(await sends('another password'), 'invalid')
  })

  it('is the client’s where a reset link expired and is renewed', async () => {
    const user = await addVerified(h)
    await asks(await start(carried), user.username)
    const { link } = await h.mail.mailTo(user.email ?? '')
    await later(h, DAY_MS)
    const expired = expectOfClient(await agent.get(link), 'invalid')
    expectOfClient(await press(agent, expired, '/forgot-password'), 'sent')
  })

  it('is the client’s on every page of a verification', async () => {
    await h.put({ email_link_confirmation: 'off' })
    const login = await blockedLogin(h)
    expectOfClient(login.blocked, 'blocked')
    const sent = await press(agent, login.blocked, '/resend-verification')
    expectOfClient(sent, 'sent')
    const nameless = { ...formsOf(login.blocked).at(-1)?.fields, username: '' }
    expectOfClient(await agent.post(`${h.oauthUrl}/resend-verification`, nameless), 'invalid')
    const other = await signedIn(h)
    expectOfClient(await other.browser.get(login.link), 'other_account')
    await h.put({ email_link_confirmation: 'other_browser' })
    const elsewhere = createUserAgent()
    expectOfClient(await elsewhere.get(login.link, { purpose: 'prefetch' }), 'confirm')
    expectOfClient(await elsewhere.get(login.link), 'elsewhere')
    await login.types(login.code)
    expectOfClient(await elsewhere.get(login.link), 'expired')
  })

  it('is the client’s where a verification link expired, and where the window goes on', async () => {
    await h.put({ email_link_confirmation: 'off' })
    const login = await blockedLogin(h)
    await later(h, DAY_MS)
    const expired = expectOfClient(await agent.get(login.link), 'expired')
    const before = login.mailCount()
    expectOfClient(await press(agent, expired, '/resend-verification'), 'sent')
    await h.mail.mailTo(login.email ?? '', before + 1)
    const next = await blockedLogin(h)
    await next.opensElsewhere()
    await next.goesOn()
    expectOfClient(await next.goesOn(), 'signed_in')
  })

  it('is ours where no client is known, and never that of one that is not registered', async () => {
    const user = await addVerified(h)
    for (const parameters of [
      {},
      { ...carried, client_id: 'nobody' },
      { ...carried, redirect_uri: 'https://evil.example/cb' },
    ]) {
      const form = expectOfBrand(await start(parameters), 'form')
      const sent = expectOfBrand(await asks(form, user.username), 'sent')
      expect(sent.text).not.to.contain(NAME)
    }
    expectOfBrand(
      await agent.request('DELETE', `${h.oauthUrl}/forgot-password`),
      'method_not_allowed',
    )
    expectOfBrand(await agent.get(`${h.oauthUrl}/reset-password?token=x`), 'invalid')
    const login = await blockedLogin(h)
    const link = await newLinkFrom(h, agent, await agent.get(`${login.link}x`), login)
    expect(link).to.be.a('string')
  })

  it('leads to the mailbox by what was typed, whether or not that is an account', async () => {
    await addVerified(h, { email: 'known@gmail.com' })
    const form = await start(carried)
    const pages: string[] = []
    for (const typed of ['known@gmail.com', 'other@gmail.com']) {
      const { text } = await asks(form, typed)
      expect(text).to.contain('href="https://mail.google.com/"')
      pages.push(text)
    }
    expect(pages[0]).to.equal(pages[1])
    expect((await asks(form, 'known')).text).not.to.contain('mail.google.com')
  })
})
