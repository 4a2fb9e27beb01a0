import { expect } from 'chai'
import { NATIVE, expectConsentThenCode, partyOf } from './clients.ts'
import {
  ADMIN_TOKEN,
  CLIENT,
  CONFIDENTIAL,
  PASSWORD,
  type HarnessOptions,
  type Host,
} from './harness.ts'
import { isActive, offlineTokens, refresh } from './oauth-requests.ts'
import { assetsOf, formsOf, linksOf, press } from './page-forms.ts'
import { expectOtherAccount, signedIn } from './other-account.ts'
import { rawRequest } from './raw-request.ts'
import { suiteHarness } from './suite-harness.ts'
import { createUserAgent } from './user-agent.ts'
import {
  accountOf,
  addUnverified,
  addVerified,
  blockedLogin,
  codeOn,
  expectMode,
  sessionId,
} from './person.ts'

const NEW_PASSWORD = 'a new password, longer'

const TARGETS_THAT_ARE_NO_PATH = [
  'http://[',
  'http://[::1',
  'https://',
  'http://a:b@[/',
  'http://%',
  'http://a%b/',
  'http://xn--/',
  'http://localhost:99999999/',
  '://',
  '*',
  '[',
  'javascript:alert(1)',
]

/** What a person and a client go through, with every address taken from the page or the mail before. */
export function itServesBothFlowsOn(title: string, options: HarnessOptions & { host: Host }): void {
  describe(title, () => {
    const h = suiteHarness({ clients: [CLIENT, CONFIDENTIAL, NATIVE], ...options })

    it('answers the link of a blocked login with one 302 and the code, in the same browser and in another', async () => {
      for (const isSame of [true, false]) {
        const login = await blockedLogin(h)
        const agent = isSame ? login.agent : createUserAgent()
        await login.comesBack(await agent.get(login.link))
        expect(await accountOf(h, agent)).to.equal(login.id)
        expect(sessionId(h, login.agent) !== undefined).to.equal(isSame)
      }
    })

    it('lets the window that logged in go on once the link was opened elsewhere, and no other', async () => {
      const login = await blockedLogin(h)
      const stranger = login.in()
      expectMode(await login.goesOn(), 200, 'blocked')
      await login.opensElsewhere()
      expectMode(await stranger.reloads(), 400, 'ended')
      expectMode(await stranger.goesOn(), 400, 'ended')
      expectMode(await login.reloads(), 200, 'blocked')
      await login.comesBack(await login.goesOn())
      expect(await login.account()).to.equal(login.id)
    })

    it('asks for consent where that is outstanding, in the window that opened the link and in the one that waited', async () => {
      const login = await blockedLogin(h, { extra: { prompt: 'consent' } })
      const elsewhere = createUserAgent()
      await expectConsentThenCode(h, login, elsewhere, await elsewhere.get(login.link))
      await expectConsentThenCode(h, login, login.agent, await login.goesOn())
    })

    it('asks for consent for a native client, and leads to its private-use address', async () => {
      const login = await blockedLogin(h, { party: await partyOf(h, NATIVE) })
      await expectConsentThenCode(h, login, login.agent, await login.agent.get(login.link))
    })

    it('shows the code where the link is opened elsewhere, and finishes the login that it is typed at', async () => {
      await h.put({ email_link_confirmation: 'other_browser' })
      const login = await blockedLogin(h)
      const page = await createUserAgent().get(login.link)
      expectMode(page, 200, 'elsewhere')
      expect(codeOn(page)).to.equal(login.code)
      expect(await login.isVerified()).to.equal(false)
      const typed = { code: login.code }
      await login.comesBack(await press(login.agent, login.blocked, '/waiting', { typed }))
      await h.put({ email_link_confirmation: 'off' })
    })

    it('leaves the session of another account alone, and finishes the login once that is signed out', async () => {
      const login = await blockedLogin(h)
      const { owner, browser } = await signedIn(h)
      expectOtherAccount(await browser.get(login.link), [owner, login])
      expect(await accountOf(h, browser)).to.equal(owner.id)
      await login.comesBack(await login.agent.get(login.link))
    })

    it('leads from a blocked login to the login page for another account, and back to the client of one that is cancelled', async () => {
      for (const button of ['other_account', 'cancel']) {
        const login = await blockedLogin(h)
        const { username, id } = await addVerified(h)
        const answer = await press(login.agent, login.blocked, '/waiting', { button })
        const { page, url, location = '' } = await h.follow(login.agent, answer)
        if (button === 'cancel') {
          expect(new URL(location).searchParams.get('error')).to.equal('access_denied')
          expect(new URL(location).searchParams.get('state')).to.equal(login.request.state)
        } else {
          expect(page).to.equal('login')
          const posted = await login.agent.post(url, { username, password: PASSWORD })
          const back = await h.follow(login.agent, posted)
          const tokens = await login.party.exchange(login.request, back.location ?? '')
          expect(tokens.claims()?.sub).to.equal(id)
        }
        expectMode(await login.reloads(), 400, 'ended')
      }
    })

    it('sends a new link from the page that waits, and that link finishes the login', async () => {
      const login = await blockedLogin(h)
      const before = login.mailCount()
      const sent = await press(login.agent, login.blocked, '/resend-verification')
      expect([sent.status, sent.page, sent.mode]).to.deep.equal([200, 'verify-email', 'sent'])
      const { link } = await h.mail.mailTo(login.email ?? '', before + 1)
      expect(link).to.not.equal(login.link)
      await login.comesBack(await login.opensElsewhere(link))
    })

    it('resets a password from the login page on, ends everything that was signed in, and goes on with that login', async () => {
      const user = await addVerified(h)
      const agent = createUserAgent()
      const tokens = await offlineTokens(h, agent, user)
      expect(await isActive(h, tokens.access_token)).to.equal(true)

      const person = createUserAgent()
      const request = await h.party.begin()
      const login = await h.follow(person, await person.get(request.url))
      const { client_id, redirect_uris } = CLIENT
      const carried = new URLSearchParams({ client_id, redirect_uri: redirect_uris[0] })
      const form = await person.get(`${h.oauthUrl}/forgot-password?${carried}`)
      expect([form.status, form.page, form.mode]).to.deep.equal([200, 'forgot-password', 'form'])
      const typed = { identifier: user.username }
      const sent = await press(person, form, '/forgot-password', { typed })
      expect([sent.status, sent.mode]).to.deep.equal([200, 'sent'])
      const { link } = await h.mail.mailTo(user.email ?? '')
      expect(link).to.match(new RegExp(`^${h.oauthUrl}/reset-password\\?token=`))
      const page = await person.get(link)
      expect([page.status, page.page, page.mode]).to.deep.equal([200, 'reset-password', 'form'])
      const passwords = { password: NEW_PASSWORD, confirm_password: NEW_PASSWORD }
      const done = await press(person, page, '/reset-password', { typed: passwords })
      expect([done.status, done.page, done.mode]).to.deep.equal([200, 'reset-password', 'done'])

      expect(await accountOf(h, agent)).to.equal(undefined)
      expect(await isActive(h, tokens.access_token)).to.equal(false)
      expect(await refresh(h, tokens.refresh_token)).to.equal('invalid_grant')
      expect((await h.signIn(agent, user.username, PASSWORD)).mode).to.equal('wrong')
      expect(linksOf(done)).to.include(login.url)
      const signIn = { username: user.username, password: NEW_PASSWORD }
      const { location = '' } = await h.follow(person, await person.post(login.url, signIn))
      expect((await h.party.exchange(request, location)).claims()?.sub).to.equal(user.id)
      expect(await accountOf(h, person)).to.equal(user.id)
    })

    it('changes a password on the page of the host: this browser stays signed in, and nothing else does', async () => {
      const user = await addVerified(h)
      const [here, there] = [createUserAgent(), createUserAgent()]
      const tokens = [await offlineTokens(h, here, user), await offlineTokens(h, there, user)]
      const link = await user.forgets()
      const page = `${h.oauthUrl}/change-password`
      const form = {
        current_password: PASSWORD,
        password: NEW_PASSWORD,
        confirm_password: NEW_PASSWORD,
      }
      expect((await createUserAgent().post(page, form)).status).to.equal(403)
      expect((await here.get(page)).status).to.equal(200)
      for (const wrong of [
        { current_password: 'a wrong one' },
        { confirm_password: 'another' },
        { password: 'short', confirm_password: 'short' },
      ])
        expect((await here.post(page, { ...form, ...wrong })).status).to.equal(400)
      expect(await accountOf(h, there)).to.equal(user.id)

      expect((await here.post(page, form)).status).to.equal(200)
      expect(await accountOf(h, here)).to.equal(user.id)
      expect(await accountOf(h, there)).to.equal(undefined)
      for (const { access_token, refresh_token } of tokens) {
        expect(await isActive(h, access_token)).to.equal(false)
        expect(await refresh(h, refresh_token)).to.equal('invalid_grant')
      }
      expect((await here.get(link)).mode).to.equal('invalid')
      expect((await h.signIn(there, user.username, PASSWORD)).mode).to.equal('wrong')
      await h.signIn(there, user.username, NEW_PASSWORD)
      expect(await accountOf(h, there)).to.equal(user.id)
      expect(await accountOf(h, here)).to.equal(user.id)
    })

    it('gives its pages the style sheet and the script, and sends their forms to where they are', async () => {
      const { blocked, agent } = await blockedLogin(h)
      const pages = [blocked, await agent.get(`${h.oauthUrl}/forgot-password`)]
      for (const page of pages) {
        const assets = assetsOf(page)
        expect(assets.map((address) => address.replace(/\?.*/, ''))).to.include(
          `${h.oauthUrl}/account-flows.css`,
        )
        for (const address of assets) {
          const asset = await createUserAgent().get(address)
          expect(asset.status, address).to.equal(200)
          expect(asset.headers.get('content-type')).to.match(
            /^(text\/(css|javascript)|image\/svg\+xml)/,
          )
          expect(asset.text).to.not.equal('')
        }
        for (const { action } of formsOf(page))
          expect(action).to.match(new RegExp(`^${h.oauthUrl}/`))
      }
      const script = await agent.get(`${h.oauthUrl}/account-flows.js`)
      expect(script.headers.get('content-type')).to.match(/^text\/javascript/)
    })

    it('sets the cookies of a sign-in for the paths that need them, and none of the resumption’s own', async () => {
      const login = await blockedLogin(h)
      const [cookie] = login.blocked.headers.getSetCookie()
      expect(cookie).to.match(/^account_flows_browser=[\w-]{43}; /)
      expect(cookie).to.include('Path=/; HttpOnly; SameSite=Lax')
      const elsewhere = createUserAgent()
      const answer = await elsewhere.get(login.link)
      const { pathname, origin } = new URL(h.oauthUrl)
      const held = (path: string) =>
        namesOf(elsewhere.cookiesFor(origin + path)).map((name) => name.replace(/\.sig$/, ''))
      expect([...new Set(held('/'))]).to.deep.equal(['_session'])
      expect(held(`${pathname}/auth`.replace('//', '/'))).to.deep.equal(held('/'))
      const waiting = namesOf(login.agent.cookiesFor(`${h.oauthUrl}/login`))
      expect(waiting).to.include('_interaction').and.to.include('account_flows_browser')
      expect(namesOf(login.agent.cookiesFor(origin))).to.not.include('_interaction')
      await login.comesBack(answer)
    })

    it('reads and changes the settings at {base_url}/admin/api/settings (4.5)', async () => {
      await h.put({ validation_min_password_length: '20' })
      const answer = await createUserAgent().get(`${h.baseUrl}/admin/api/settings`, {
        authorization: `Bearer ${ADMIN_TOKEN}`,
      })
      const settings = JSON.parse(answer.text) as Record<string, string>
      expect(settings['validation_min_password_length']).to.equal('20')
      const user = await addUnverified(h, { emailVerified: true })
      const tooShort = await h.reset(await user.forgets(), NEW_PASSWORD.slice(0, 19))
      expect([tooShort.status, tooShort.mode]).to.deep.equal([400, 'password_too_short'])
    })

    it('leads from the well-known address for changing passwords to the form', async () => {
      const agent = createUserAgent()
      const { origin } = new URL(h.baseUrl)
      const answer = await agent.get(`${origin}/.well-known/change-password`)
      expect([answer.status, answer.location]).to.deep.equal([302, `${h.oauthUrl}/forgot-password`])
      const form = await h.follow(agent, answer)
      expect([form.status, form.page, form.mode]).to.deep.equal([200, 'forgot-password', 'form'])
    })

    it('answers every target of a request, also one that is no address (HDR-11)', async () => {
      const { pathname } = new URL(h.oauthUrl)
      const ask = (target: string) => rawRequest(h.baseUrl, { method: 'GET', target })
      for (const target of TARGETS_THAT_ARE_NO_PATH) {
        expect((await ask(target)).status, target).to.be.below(500)
      }
      const form = `${pathname}/forgot-password`.replace('//', '/')
      expect((await ask(new URL(form, h.baseUrl).href)).status).to.be.below(500)
      expect((await ask(`${form}?client_id=[&state=%&x=http://[`)).status).to.equal(200)
    })

    it('leaves every other path below the prefix to the provider, and all others to the host', async () => {
      const agent = createUserAgent()
      const discovery = await agent.get(`${h.oauthUrl}/.well-known/openid-configuration`)
      const metadata = JSON.parse(discovery.text) as { issuer: string; token_endpoint: string }
      expect(metadata).to.include({ issuer: h.oauthUrl, token_endpoint: `${h.oauthUrl}/token` })
      const unknown = await agent.get(`${h.oauthUrl}/nothing-here`)
      expect(unknown.status).to.equal(404)
      const { origin } = new URL(h.baseUrl)
      const home = await agent.get(`${origin}/`)
      expect([home.status, home.text]).to.deep.equal([200, 'Hello'])
      expect((await agent.get(`${origin}/elsewhere/verify-email`)).status).to.equal(404)
    })
  })
}

function namesOf(cookies: string): string[] {
  return cookies.split('; ').map((pair) => pair.split('=')[0] ?? '')
}
