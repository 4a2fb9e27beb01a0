import { expect } from 'chai'
import { silently } from '../support/blocked-login.ts'
import { CLIENT, CONFIDENTIAL, startHarness, type Harness } from '../support/harness.ts'
import { offlineTokens, outcomeOf, postLogin, refresh } from '../support/oauth-requests.ts'
import { ask } from '../support/observe.ts'
import { createUserAgent, type UserAgent } from '../support/user-agent.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import {
  accountOf,
  addUnverified,
  addVerified,
  blockedLogin,
  sessionId,
  setsSession,
  type Person,
} from '../support/person.ts'

const [APP_URI] = CLIENT.redirect_uris
const [SERVER_URI] = CONFIDENTIAL.redirect_uris

const DESTINATIONS =
  'audio embed empty fencedframe font frame iframe image manifest object report script serviceworker ' +
  'sharedworker style track video webidentity worker xslt Document'

/** Requests in which no person looks at a page. */
const UNATTENDED: Record<string, Record<string, string>> = {
  'a prefetch': { 'sec-purpose': 'prefetch' },
  'a prerendering': { 'sec-purpose': 'prefetch;prerender' },
  'a prefetch through a proxy': { 'sec-purpose': 'prefetch;anonymous-client-ip' },
  'a prefetch in capitals': { 'sec-purpose': 'PREFETCH' },
  'an older prefetch': { purpose: 'prefetch' },
  'an older preview': { purpose: 'preview' },
  'an old prefetch of Firefox': { 'x-moz': 'prefetch' },
  'an old preview of Safari': { 'x-purpose': 'preview', purpose: 'preview' },
  ...Object.fromEntries(
    [...DESTINATIONS.split(' '), 'document, document'].map((destination) => [
      `a request for ${destination}`,
      { 'sec-fetch-dest': destination },
    ]),
  ),
}

describe('A verification link that nobody looks at (VER-01, VER-02)', () => {
  let h: Harness
  let login: Person
  let loose: { user: Person['user']; link: string }
  let signedIn: UserAgent
  let account: string

  before(async () => {
    h = await startHarness()
    login = await blockedLogin(h)
    const user = await addUnverified(h)
    const carried = { client_id: CONFIDENTIAL.client_id, redirect_uri: SERVER_URI, scope: 'openid' }
    loose = { user, link: await user.asksAgain(carried) }
    const owner = await addVerified(h)
    account = owner.id
    signedIn = createUserAgent()
    await h.signIn(signedIn, owner.username)
  })
  // Whatever was tried, each link still does all of its work.
  after(async () => {
    try {
      expect(await accountOf(h, signedIn)).to.equal(account)
      await login.stillGetsIn()
      const answer = await createUserAgent().get(loose.link)
      expect(answer.location).to.match(/^https:\/\/server\.example\/cb\?code=/)
      expect(await loose.user.isVerified()).to.equal(true)
    } finally {
      await h.close()
    }
  })

  type Way = [what: string, method: string, headers: Record<string, string>]
  const methods = ['HEAD', 'OPTIONS', 'PUT', 'DELETE', 'PATCH', 'PROPFIND']
  const ways: Way[] = [
    ...methods.map((method): Way => [method, method, {}]),
    ['HEAD of a page', 'HEAD', { 'sec-fetch-dest': 'document' }],
    ...Object.entries(UNATTENDED).map(([what, headers]): Way => [what, 'GET', headers]),
  ]
  for (const [what, method, headers] of ways) {
    it(`changes nothing, in any browser: ${what}`, async () => {
      const session = sessionId(h, signedIn)
      for (const [link, user] of [
        [login.link, login],
        [loose.link, loose.user],
      ] as const) {
        for (const agent of [login.agent, createUserAgent(), signedIn]) {
          const answer = await agent.request(method, link, { headers })
          expect(answer.status).to.be.within(400, 499)
          expect([answer.location, setsSession(answer)]).to.deep.equal([undefined, false])
          expect(await user.isVerified()).to.equal(false)
        }
      }
      await login.getsNothing(await login.agent.get(`${h.oauthUrl}/account-flows.css`))
      expect(sessionId(h, signedIn)).to.equal(session)
    })
  }

  it('changes nothing when the page about another account is opened, however often', async () => {
    const session = sessionId(h, signedIn)
    for (const _time of [1, 2, 3, 4, 5]) {
      const page = await signedIn.get(login.link, { 'sec-fetch-dest': 'document' })
      expect(page.mode).to.equal('other_account')
      expect(setsSession(page)).to.equal(false)
    }
    expect(sessionId(h, signedIn)).to.equal(session)
    expect(await login.isVerified()).to.equal(false)
  })
})

describe('require_email_verification and what was there before (VER-10, VER-11)', () => {
  const h = suiteHarness({ settings: { require_email_verification: 'false' } })

  const require = (value: 'true' | 'false') => h.put({ require_email_verification: value })

  it('leads an unverified user to no code by any path once it is true, and by every path again once it is false', async () => {
    await require('false')
    const user = await addUnverified(h)
    const browser = createUserAgent()
    const tokens = await offlineTokens(h, browser, user)
    expect(await accountOf(h, browser)).to.equal(user.id)

    await require('true')
    expect((await silently(h, browser)).get('error')).to.equal('login_required')
    const { url } = await h.party.begin()
    expect(outcomeOf(await h.follow(browser, await browser.get(url)))).to.equal('login login')
    expect(outcomeOf(await postLogin(h, browser, user))).to.equal('verify-email blocked')
    const fresh = createUserAgent()
    expect(outcomeOf(await h.login(fresh, url, user.username))).to.equal('verify-email blocked')

    // A reset proves the mailbox to nobody: it verifies nothing (3.2), and the login is blocked as before.
    await ask(h, user.username)
    const mail = h.mail.mails.find(
      ({ to, kind }) => to.includes(user.email ?? '') && kind === 'password_reset',
    )
    expect((await h.reset(mail?.link ?? '', 'a new password')).mode).to.equal('done')
    expect(await user.isVerified()).to.equal(false)
    const again = await h.login(createUserAgent(), url, user.username, 'a new password')
    expect(outcomeOf(again)).to.equal('verify-email blocked')
    expect(await refresh(h, tokens.refresh_token)).to.equal('invalid_grant')

    await require('false')
    const back = await h.signIn(createUserAgent(), user.username, 'a new password')
    expect(back.location).to.include('code=')
  })

  // Section 4.8 is about the login; what was granted before it was switched on goes on until it ends.
  it('leaves refresh tokens alone that were given before', async () => {
    await require('false')
    const user = await addUnverified(h)
    const tokens = await offlineTokens(h, createUserAgent(), user)
    await require('true')
    expect(await refresh(h, tokens.refresh_token)).to.equal('tokens')
    await h.flows.endSessions(user.id)
    expect(await refresh(h, tokens.refresh_token)).to.equal('invalid_grant')
  })

  it('decides nothing about links: those of either kind work whatever it is meanwhile', async () => {
    for (const meanwhile of ['true', 'false'] as const) {
      await require('true')
      const login = await blockedLogin(h)
      const user = await addUnverified(h)
      const link = await user.forgets()
      await require(meanwhile)
      await login.stillGetsIn()
      expect((await h.reset(link, 'a new password')).mode).to.equal('done')
      expect(await user.isVerified()).to.equal(false)
    }
  })
})

describe('What a link proves, and to whom (VER-05, VER-07, VER-15)', () => {
  const h = suiteHarness()

  it('a link of the attacker takes over no session, however it is opened', async () => {
    const victim = await addVerified(h)
    const browser = createUserAgent()
    await h.signIn(browser, victim.username)
    const session = sessionId(h, browser)
    const attacker = await blockedLogin(h)
    const opened = await browser.get(attacker.link)
    expect(opened.mode).to.equal('other_account')
    // What a page of the attacker can send in the name of the victim's browser.
    const form = { login: attacker.loginId(), code: attacker.code }
    for (const headers of [
      { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' },
      { origin: 'null', 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
    ]) {
      const answer = await browser.post(`${h.oauthUrl}/verify-email/waiting`, form, headers)
      expect([answer.status, setsSession(answer)]).to.deep.equal([403, false])
    }
    expect(sessionId(h, browser)).to.equal(session)
    expect(await accountOf(h, browser)).to.equal(victim.id)
    expect(await attacker.isVerified()).to.equal(false)
    await attacker.stillGetsIn()
  })

  it('a link that was asked for by name signs in without the password, marked as such, and never around PKCE', async () => {
    const user = await addUnverified(h)
    const server = { client_id: CONFIDENTIAL.client_id, redirect_uri: SERVER_URI, scope: 'openid' }
    const agent = createUserAgent()
    const answer = await agent.get(await user.asksAgain(server))
    expect(answer.location).to.match(/^https:\/\/server\.example\/cb\?code=/)
    const session = await h.provider.Session.find(sessionId(h, agent) ?? '')
    expect([session?.accountId, session?.amr]).to.deep.equal([user.id, ['email']])

    const other = await addUnverified(h)
    const app = { client_id: CLIENT.client_id, redirect_uri: APP_URI, scope: 'openid' }
    const refused = await createUserAgent().get(await other.asksAgain(app))
    expect(new URL(refused.location ?? '').searchParams.get('error')).to.equal('invalid_request')
    expect(refused.location).not.to.include('code=')
  })

  it('opened on another device it finishes the login there, and leaves the first window unsigned', async () => {
    const login = await blockedLogin(h)
    const device = createUserAgent()
    await login.comesBack(await device.get(login.link))
    expect(sessionId(h, login.agent)).to.equal(undefined)
    expect((await silently(h, login.agent)).get('error')).to.equal('login_required')
    // With the password the first window goes on, too.
    const { url } = await h.party.begin()
    const posted = await h.login(login.agent, url, login.username)
    const back = await h.follow(login.agent, posted)
    expect(back.location).to.include('code=')
  })

  it('the mail names the account and the client, for the person who did not ask (VER-08)', async () => {
    const login = await blockedLogin(h)
    const { mail } = await h.mail.mailTo(login.email ?? '')
    for (const part of [mail.text ?? '', String(mail.html)]) {
      expect(part).to.include(login.username).and.include(CLIENT.client_name)
    }
  })
})
