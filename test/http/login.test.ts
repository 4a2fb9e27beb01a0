import { expect } from 'chai'
import {
  accountOf,
  addUnverified,
  addVerified,
  blockedLogin,
  eventsOf,
  expectNothingChanged,
  expectStillWorks,
  isVerified,
  mailsTo,
  resend,
  sessionId,
  setsSession,
} from '../support/blocked-login.ts'
import { CLIENT, PASSWORD } from '../support/harness.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { createUserAgent } from '../support/user-agent.ts'

describe('POST {oauth_path}/login (4.8)', () => {
  const h = suiteHarness()

  it('renders the verification page in mode blocked instead of issuing a code', async () => {
    const login = await blockedLogin(h)
    const { status, page, mode, headers } = login.blocked
    expect([status, page, mode]).to.deep.equal([200, 'verify-email', 'blocked'])
    expect(headers.get('cache-control')).to.equal('no-store')
    expect(headers.get('content-type')).to.equal('text/html; charset=utf-8')
    await expectNothingChanged(h, login, login.blocked)
    await expectStillWorks(h, login)
  })

  it('sends the link to the stored address, and records the block', async () => {
    const { user, link } = await blockedLogin(h)
    expect(mailsTo(h, user)).to.equal(1)
    expect(link.startsWith(`${h.oauthUrl}/verify-email?token=`)).to.equal(true)
    for (const type of ['email_login_blocked', 'email_verification_mail_sent'] as const) {
      const [event] = await eventsOf(h, { type, accountId: user.id })
      expect(event?.clientId).to.equal(CLIENT.client_id)
      expect(JSON.stringify(event)).to.not.include(new URL(link).searchParams.get('token'))
    }
  })

  it('offers a new link on the page, whose form names user and client', async () => {
    const { blocked, user, request } = await blockedLogin(h)
    expect(blocked.text).to.match(/<form[^>]*action="[^"]*\/oauth2\/resend-verification"/)
    expect(blocked.hidden).to.include({ username: user.username, state: request.state })
    expect(blocked.text).to.not.include(user.email)
  })

  it('blocks each further login, and does not take away what waits', async () => {
    const user = await addUnverified(h)
    const agent = createUserAgent()
    const first = await blockedLogin(h, { user, agent })
    const second = await blockedLogin(h, { user, agent })
    expect(second.link).to.not.equal(first.link)
    await expectStillWorks(h, first)
  })

  it('blocks a second post of the same interaction in the same way', async () => {
    const login = await blockedLogin(h)
    const { username } = login.user
    const form = { username, password: PASSWORD }
    const again = await login.agent.post(`${h.oauthUrl}/login`, form)
    expect([again.status, again.mode]).to.deep.equal([200, 'blocked'])
    await h.mail.mailTo(login.user.email ?? '', 2)
    await expectNothingChanged(h, login, again)
    await expectStillWorks(h, login)
  })

  it('lets a verified user through, without a mail', async () => {
    const user = await addVerified(h)
    const agent = createUserAgent()
    const request = await h.party.begin()
    const answer = await h.login(agent, request.url, user.username)
    expect([answer.status, answer.mode]).to.deep.equal([303, undefined])
    const back = await h.follow(agent, answer)
    const tokens = await h.party.exchange(request, back.location ?? '')
    expect(tokens.claims()?.sub).to.equal(user.id)
    await resend(h, await addUnverified(h))
    expect(mailsTo(h, user)).to.equal(0)
  })

  it('lets everybody through while require_email_verification is false, verified or not', async () => {
    await h.put({ require_email_verification: 'false' })
    const user = await addUnverified(h)
    const agent = createUserAgent()
    const back = await h.signIn(agent, user.username)
    await h.put({ require_email_verification: 'true' })
    expect(back.location).to.match(/^https:\/\/app\.example\/cb\?code=/)
    expect(await isVerified(h, user)).to.equal(false)
    expect(mailsTo(h, user)).to.equal(0)
  })

  it('sends nothing for a wrong password, nor for an unknown or disabled user', async () => {
    const user = await addUnverified(h)
    const disabled = await addUnverified(h, { disabled: true })
    const agent = createUserAgent()
    for (const [username, password] of [
      [user.username, 'wrong'],
      [user.username, ''],
      [disabled.username, PASSWORD],
      ['nobody', PASSWORD],
    ] as const) {
      const { url } = await h.party.begin()
      const answer = await h.login(agent, url, username, password)
      expect([answer.status, answer.mode]).to.deep.equal([401, 'wrong'])
      await expectNothingChanged(h, { user, agent }, answer)
    }
    const login = await blockedLogin(h, { user, agent })
    expect(mailsTo(h, user)).to.equal(1)
    expect(mailsTo(h, disabled)).to.equal(0)
    await expectStillWorks(h, login)
  })

  it('sends nothing where the provider has no interaction to wait for', async () => {
    const user = await addUnverified(h)
    const agent = createUserAgent()
    const form = { username: user.username, password: PASSWORD }
    const answer = await agent.post(`${h.oauthUrl}/login`, form)
    expect([answer.status, answer.page]).to.deep.equal([400, undefined])
    await expectNothingChanged(h, { user, agent }, answer)
    await expectStillWorks(h, await blockedLogin(h, { user, agent }))
    expect(mailsTo(h, user)).to.equal(1)
  })

  it('keeps two logins in two browsers apart', async () => {
    const user = await addUnverified(h)
    const here = await blockedLogin(h, { user })
    const there = await blockedLogin(h, { user })
    const answer = await there.agent.get(there.link)
    expect(setsSession(answer)).to.equal(true)
    expect(new URL(answer.location ?? '').searchParams.get('state')).to.equal(there.request.state)
    expect(await accountOf(h, there.agent)).to.equal(user.id)
    expect(sessionId(h, here.agent)).to.equal(undefined)
  })
})
