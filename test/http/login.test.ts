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
import { onBothStores } from '../support/both-stores.ts'
import { CLIENT, PASSWORD, startHarness, type Harness } from '../support/harness.ts'
import { createUserAgent } from '../support/user-agent.ts'

onBothStores('POST {oauth_path}/login (4.8)', (technology) => {
  let harness: Harness

  before(async () => {
    harness = await startHarness({ technology })
  })
  after(() => harness.close())

  it('renders the verification page in mode blocked instead of issuing a code', async () => {
    const login = await blockedLogin(harness)
    const { status, page, mode, headers } = login.blocked
    expect([status, page, mode]).to.deep.equal([200, 'verify-email', 'blocked'])
    expect(headers.get('cache-control')).to.equal('no-store')
    expect(headers.get('content-type')).to.equal('text/html; charset=utf-8')
    await expectNothingChanged(harness, login, login.blocked)
    await expectStillWorks(harness, login)
  })

  it('sends the link to the stored address, and records the block', async () => {
    const { user, link } = await blockedLogin(harness)
    expect(mailsTo(harness, user)).to.equal(1)
    expect(link.startsWith(`${harness.oauthUrl}/verify-email?token=`)).to.equal(true)
    for (const type of ['email_login_blocked', 'email_verification_mail_sent'] as const) {
      const [event] = await eventsOf(harness, { type, accountId: user.id })
      expect(event?.clientId).to.equal(CLIENT.client_id)
      expect(JSON.stringify(event)).to.not.include(new URL(link).searchParams.get('token'))
    }
  })

  it('offers a new link on the page, whose form names user and client', async () => {
    const { blocked, user, request } = await blockedLogin(harness)
    expect(blocked.text).to.match(/<form[^>]*action="[^"]*\/oauth2\/resend-verification"/)
    expect(blocked.hidden).to.include({ username: user.username, state: request.state })
    expect(blocked.text).to.not.include(user.email)
  })

  it('blocks each further login, and does not take away what waits', async () => {
    const user = await addUnverified(harness)
    const agent = createUserAgent()
    const first = await blockedLogin(harness, { user, agent })
    const second = await blockedLogin(harness, { user, agent })
    expect(second.link).to.not.equal(first.link)
    await expectStillWorks(harness, first)
  })

  it('blocks a second post of the same interaction in the same way', async () => {
    const login = await blockedLogin(harness)
    const { username } = login.user
    const form = { username, password: PASSWORD }
    const again = await login.agent.post(`${harness.oauthUrl}/login`, form)
    expect([again.status, again.mode]).to.deep.equal([200, 'blocked'])
    await harness.mail.mailTo(login.user.email ?? '', 2)
    await expectNothingChanged(harness, login, again)
    await expectStillWorks(harness, login)
  })

  it('lets a verified user through, without a mail', async () => {
    const user = await addVerified(harness)
    const agent = createUserAgent()
    const request = await harness.party.begin()
    const answer = await harness.login(agent, request.url, user.username)
    expect([answer.status, answer.mode]).to.deep.equal([303, undefined])
    const back = await harness.follow(agent, answer)
    const tokens = await harness.party.exchange(request, back.location ?? '')
    expect(tokens.claims()?.sub).to.equal(user.id)
    await resend(harness, await addUnverified(harness))
    expect(mailsTo(harness, user)).to.equal(0)
  })

  it('lets everybody through while require_email_verification is false, verified or not', async () => {
    await harness.put({ require_email_verification: 'false' })
    const user = await addUnverified(harness)
    const agent = createUserAgent()
    const back = await harness.signIn(agent, user.username)
    await harness.put({ require_email_verification: 'true' })
    expect(back.location).to.match(/^https:\/\/app\.example\/cb\?code=/)
    expect(await isVerified(harness, user)).to.equal(false)
    expect(mailsTo(harness, user)).to.equal(0)
  })

  it('sends nothing for a wrong password, nor for an unknown or disabled user', async () => {
    const user = await addUnverified(harness)
    const disabled = await addUnverified(harness, { disabled: true })
    const agent = createUserAgent()
    for (const [username, password] of [
      [user.username, 'wrong'],
      [user.username, ''],
      [disabled.username, PASSWORD],
      ['nobody', PASSWORD],
    ] as const) {
      const { url } = await harness.party.begin()
      const answer = await harness.login(agent, url, username, password)
      expect([answer.status, answer.mode]).to.deep.equal([401, 'wrong'])
      await expectNothingChanged(harness, { user, agent }, answer)
    }
    const login = await blockedLogin(harness, { user, agent })
    expect(mailsTo(harness, user)).to.equal(1)
    expect(mailsTo(harness, disabled)).to.equal(0)
    await expectStillWorks(harness, login)
  })

  it('sends nothing where the provider has no interaction to wait for', async () => {
    const user = await addUnverified(harness)
    const agent = createUserAgent()
    const form = { username: user.username, password: PASSWORD }
    const answer = await agent.post(`${harness.oauthUrl}/login`, form)
    expect([answer.status, answer.page]).to.deep.equal([400, undefined])
    await expectNothingChanged(harness, { user, agent }, answer)
    await expectStillWorks(harness, await blockedLogin(harness, { user, agent }))
    expect(mailsTo(harness, user)).to.equal(1)
  })

  it('keeps two logins in two browsers apart', async () => {
    const user = await addUnverified(harness)
    const here = await blockedLogin(harness, { user })
    const there = await blockedLogin(harness, { user })
    const answer = await there.agent.get(there.link)
    expect(setsSession(answer)).to.equal(true)
    expect(new URL(answer.location ?? '').searchParams.get('state')).to.equal(there.request.state)
    expect(await accountOf(harness, there.agent)).to.equal(user.id)
    expect(sessionId(harness, here.agent)).to.equal(undefined)
  })
})
