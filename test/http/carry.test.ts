import { expect } from 'chai'
import { newLinkFrom } from '../support/bad-links.ts'
import { onBothStores } from '../support/both-stores.ts'
import { CLIENT } from '../support/harness.ts'
import { isIdle, later } from '../support/jobs.ts'
import { linksOf, press } from '../support/page-forms.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { createUserAgent, type Answer } from '../support/user-agent.ts'
import { addVerified, blockedLogin, tokenOf } from '../support/person.ts'

const DAY_MS = 86_400_000
const [redirect_uri] = CLIENT.redirect_uris
const carried = {
  client_id: CLIENT.client_id,
  redirect_uri,
  scope: 'openid',
  state: 'a b&c=d+é"<i>',
}

const languageOf = ({ headers }: Answer) => headers.get('content-language')
/** Its reader's browser speaks French; the mail was German. */
const FRENCH = { 'accept-language': 'fr' }
const ENDED = ['expired', 'used', 'superseded', 'changed'] as const

onBothStores('A way to another link', (technology) => {
  const h = suiteHarness({ technology })
  const agent = createUserAgent()
  const french = {
    ...agent,
    get: (url: string | URL) => agent.get(url, FRENCH),
    post: (url: string | URL, form: Record<string, string>) => agent.post(url, form, FRENCH),
  }

  /** A user, and the German mail that an app asked for. */
  async function germanLink() {
    const user = await addVerified(h)
    const { link } = await nextMail(user.email, () =>
      h.forgot(user.username, { ...carried, ui_locales: 'de' }),
    )
    return { user, link }
  }

  async function nextMail(email = '', work: () => Promise<unknown>) {
    const before = h.mail.mails.filter(({ to }) => to.includes(email)).length
    await work()
    const mail = await h.mail.mailTo(email, before + 1)
    await isIdle(h)
    return mail
  }

  /** Follows the page's link to the form, which goes on with all of it in German, and asks there. */
  async function asksAgain(page: Answer, username: string, email = '') {
    expect(languageOf(page)).to.equal('de')
    const address = linksOf(page).find((each) => each.includes('/forgot-password')) ?? ''
    const form = await french.get(address)
    expect([form.status, form.mode, languageOf(form)]).to.deep.equal([200, 'form', 'de'])
    expect(form.hidden).to.deep.include({ ...carried, ui_locales: 'de' })
    const { link } = await nextMail(email, async () => {
      const sent = await press(french, form, '/forgot-password', {
        typed: { identifier: username },
      })
      expect([sent.mode, languageOf(sent)]).to.deep.equal(['sent', 'de'])
    })
    await opensInGerman(link)
  }

  /** The link of a new mail opens a German form, and the reset goes on to the client. */
  async function opensInGerman(link: string) {
    const form = await french.get(link)
    expect([form.mode, languageOf(form)]).to.deep.equal(['form', 'de'])
    const typed = { password: 'short', confirm_password: 'short' }
    const refused = await press(french, form, '/reset-password', { typed })
    expect([refused.mode, languageOf(refused)]).to.deep.equal(['password_too_short', 'de'])
    const good = { password: 'a new password', confirm_password: 'a new password' }
    const done = await press(french, refused, '/reset-password', { typed: good })
    expect([done.mode, languageOf(done)]).to.deep.equal(['done', 'de'])
    expect(linksOf(done).join()).to.include(new URL(redirect_uri).host)
  }

  it('of the page that a reset link was sent keeps client, redirect URI, scope, state and language', async () => {
    const user = await addVerified(h)
    const start = await french.get(
      `${h.oauthUrl}/forgot-password?${new URLSearchParams({ ...carried, ui_locales: 'de' })}`,
    )
    for (const identifier of [user.username, 'nobody at all']) {
      const sent = await press(french, start, '/forgot-password', { typed: { identifier } })
      expect([sent.status, sent.mode]).to.deep.equal([200, 'sent'])
      await isIdle(h)
      await asksAgain(sent, user.username, user.email)
    }
  })

  for (const reason of ENDED) {
    it(`of the page of a reset link that is ${reason} keeps them, opened and posted`, async () => {
      const { user, link } = await germanLink()
      const email = reason === 'changed' ? `new-${user.email}` : user.email
      if (reason === 'expired') await later(h, DAY_MS)
      if (reason === 'used') await h.reset(link, 'another password')
      if (reason === 'superseded') await user.forgets()
      if (reason === 'changed') await user.becomes({ email })
      await isIdle(h)
      const form = { token: tokenOf(link), password: 'a password', confirm_password: 'a password' }
      for (const page of [
        await french.get(link),
        await french.post(`${h.oauthUrl}/reset-password`, form),
      ]) {
        expect([page.status, page.mode]).to.deep.equal([400, 'invalid'])
        expect(page.text).to.include(`data-reason="${reason}"`).and.not.include(user.username)
        if (reason !== 'expired') await asksAgain(page, user.username, email)
      }
      if (reason !== 'expired') return
      const { link: newer } = await nextMail(email, async () => {
        const sent = await press(french, await french.get(link), '/forgot-password')
        expect([sent.status, sent.mode]).to.deep.equal([200, 'sent'])
        await asksAgain(sent, user.username, email)
      })
      expect(newer).not.to.equal(link)
    })
  }

  it('of a link that is not known carries nothing, in the language of the browser, whoever asks', async () => {
    const page = await french.get(`${h.oauthUrl}/reset-password?token=${'A'.repeat(43)}`)
    expect([page.mode, languageOf(page)]).to.deep.equal(['invalid', 'fr'])
    expect(linksOf(page)).to.deep.equal([`${h.oauthUrl}/forgot-password`])
  })

  it('is in the language that the address asks for, whatever the mail was in', async () => {
    const { link } = await germanLink()
    const form = await french.get(`${link}&ui_locales=es`)
    expect(languageOf(form)).to.equal('es')
    const typed = { password: 'short', confirm_password: 'short' }
    expect(languageOf(await press(french, form, '/reset-password', { typed }))).to.equal('es')
    await opensInGerman(link)
  })

  it('of a new reset link by its token alone is mailed in the language of the first', async () => {
    const { user, link } = await germanLink()
    await later(h, DAY_MS)
    const { mail } = await nextMail(user.email, () =>
      french.post(`${h.oauthUrl}/forgot-password`, { token: tokenOf(link) }),
    )
    expect(String(mail.html)).to.include('lang="de"')
  })

  it('carries nothing that is not genuine, or too long for an address', async () => {
    for (const change of [
      { state: 'x'.repeat(5_000) },
      { redirect_uri: 'https://evil.example/' },
    ]) {
      const form = { ...carried, ...change, identifier: 'nobody at all', ui_locales: 'de' }
      const sent = await french.post(`${h.oauthUrl}/forgot-password`, form)
      expect(sent.mode).to.equal('sent')
      expect(linksOf(sent)).to.deep.equal([`${h.oauthUrl}/forgot-password?ui_locales=de`])
    }
  })

  it('of the blocked page, and of that of an expired link, keeps the login and its language', async () => {
    const extra = { ui_locales: 'de', state: 'a b&c=d+é' }
    const login = await blockedLogin(h, { extra, agent: createUserAgent() })
    expect(languageOf(login.blocked)).to.equal('de')
    const again = await newLinkFrom(h, login.agent, login.blocked, login)
    expect(login.mailCount()).to.equal(2)
    await later(h, 2 * DAY_MS)
    const expired = await french.get(again)
    expect([expired.mode, languageOf(expired)]).to.deep.equal(['expired', 'de'])
    const fresh = await newLinkFrom(h, french, expired, login)
    const answer = await login.agent.get(fresh, FRENCH)
    expect(answer.status).to.equal(302)
    expect(new URL(answer.location ?? '').searchParams.get('state')).to.equal(extra.state)
    for (const link of [fresh, again]) {
      const page = await french.get(link)
      expect([page.mode, languageOf(page)]).to.deep.equal(['expired', 'de'])
    }
  })

  it('of a link that was opened elsewhere is in the language of the mail', async () => {
    await h.put({ email_link_confirmation: 'other_browser' })
    const login = await blockedLogin(h, { extra: { ui_locales: 'de' } })
    const shown = await french.get(login.link)
    expect([shown.mode, languageOf(shown)]).to.deep.equal(['elsewhere', 'de'])
    await h.put({ email_link_confirmation: 'off' })
  })
})
