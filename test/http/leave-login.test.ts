import { expect } from 'chai'
import {
  APP,
  dynamicLogin,
  forgetInteraction,
  JAR_ONLY,
  PAR_ONLY,
  pushedLogin,
  signedLogin,
  THEIR_FEATURES,
} from '../support/clients.ts'
import { CLIENT, CONFIDENTIAL, suiteHarness } from '../support/harness.ts'
import { outcomeOf, postLogin } from '../support/oauth-requests.ts'
import { formsOf, namesAround, press, createUserAgent, type Answer } from '../support/user-agent.ts'
import { expectMode, setsSession, type Person } from '../support/person.ts'
import { beforeFirst } from '../support/records.ts'
import { moveTime } from '../support/time.ts'

/** The client has its answer, and the browser nothing. */
function expectDenied({ request, agent, party }: Person, answer: Answer) {
  const { issuer } = party.config.serverMetadata()
  expect(answer.status, answer.text).to.equal(302)
  const { origin, pathname, searchParams } = new URL(answer.location ?? '')
  expect(`${origin}${pathname}`).to.equal(request.redirectUri)
  const { state } = request
  const told = Object.fromEntries(searchParams)
  expect(told)
    .to.include({ error: 'access_denied', state, iss: issuer })
    .and.not.have.property('code')
  expect(agent.cookiesFor(`${issuer}/reset-password`)).to.not.include('account_flows_login_page')
}

/** Presses a button of the page that waits. */
const presses = (button: string, { agent, blocked }: Person) =>
  press(agent, blocked, '/verify-email/waiting', { button })
const cancel = (login: Person) => presses('cancel', login)

describe('Whoever cancels a login that is blocked', () => {
  const h = suiteHarness({
    clients: [CLIENT, CONFIDENTIAL, PAR_ONLY, JAR_ONLY],
    provider: { features: THEIR_FEATURES },
  })

  async function expectOver(login: Person) {
    for (const answer of [
      await login.reloads(),
      await login.goesOn(),
      await cancel(login),
      await login.reloads(),
    ]) {
      expectMode(answer, 400, 'ended')
      expect(answer.text).to.match(/<a [^>]*href="https:\/\/app\.example\/"/)
      expect(setsSession(answer)).to.equal(false)
    }
  }

  it('is back at the client, which hears access_denied; nothing else changed, and the next login is as good as any', async () => {
    const login = await h.blockedLogin()
    const answer = await cancel(login)
    expectDenied(login, answer)
    await login.getsNothing({ ...answer, location: undefined })
    expect(h.sessionId(login.agent)).to.equal(undefined)
    await expectOver(login)
    const next = await h.blockedLogin({ user: login, agent: login.agent })
    await next.stillGetsIn()
  })

  it('verifies by the link that was mailed before, which signs nobody in, in this browser or another (VER-25)', async () => {
    for (const isSame of [true, false]) {
      const login = await h.blockedLogin()
      await cancel(login)
      const there = isSame ? login : login.in()
      await there.isOnlyVerified(await there.opensLink())
      await expectOver(login)
      expect((await login.signsIn()).location).to.match(/[?&]code=/)
    }
  })

  it('leaves no code to the window that goes on before this is written down (VER-25)', async () => {
    const login = await h.blockedLogin()
    await login.becomes({ emailVerified: true })
    const asked: Answer[] = []
    beforeFirst(h.store.pendingLogins, 'change', async () => asked.push(await login.goesOn()))
    expectDenied(login, await cancel(login))
    expect(asked.map(({ location }) => location)).to.deep.equal([undefined])
    await expectOver(login)
  })

  it('can do so long after the interaction is gone, and once the address is verified', async () => {
    const [forgotten, old] = [await h.blockedLogin(), await h.blockedLogin()]
    await forgetInteraction(h, forgotten)
    await moveTime(5 * 3_600_000)
    const verified = await h.blockedLogin()
    await verified.opensElsewhere()
    for (const login of [forgotten, old, verified]) {
      expectDenied(login, await cancel(login))
      expect(h.sessionId(login.agent)).to.equal(undefined)
      await expectOver(login)
    }
  })

  it('answers a client that pushed or signed its request, and uses a pushed one up', async () => {
    const signed = await signedLogin(h)
    expectDenied(signed, await cancel(signed))
    const { login, url } = await pushedLogin(h)
    expectDenied(login, await cancel(login))
    expect(outcomeOf(await createUserAgent().get(url))).to.equal('invalid_request_uri')
  })

  it('answers in the way that the client asked for', async () => {
    const login = await h.blockedLogin({ extra: { response_mode: 'form_post' } })
    const { text, location } = await cancel(login)
    expect(location).to.equal(undefined)
    expect(text).to.include(login.request.redirectUri).and.to.include('value="access_denied"')
    expect(text).to.include(login.request.state)
    await expectOver(login)
  })

  it('reads a page of ours where the client is gone or would be refused today, and the login is over', async () => {
    const { login, remove } = await dynamicLogin(h)
    await remove()
    expectMode(await cancel(login), 400, 'ended')
    expectMode(await login.reloads(), 400, 'ended')
    await login.isOnlyVerified(await login.opensLink())
  })

  it('keeps who is signed in meanwhile', async () => {
    const login = await h.blockedLogin()
    const owner = await h.addSignedIn(login.agent)
    expectDenied(login, await cancel(login))
    expect(await login.account()).to.equal(owner.id)
  })
})

describe('Whoever uses another account while a login is blocked', () => {
  const h = suiteHarness({
    clients: [CLIENT, CONFIDENTIAL, PAR_ONLY],
    provider: { features: THEIR_FEATURES },
  })

  /** Presses the button, and is at the login page of the very request. */
  async function leave(login: Person) {
    const answer = await presses('other_account', login)
    expect(answer.status).to.equal(302)
    expect(answer.headers.getSetCookie().join()).to.include('account_flows_login_page=')
    expect((await h.follow(login.agent, answer)).page).to.equal('login')
  }

  const signInAs = async (login: Person, user: Person) =>
    h.follow(login.agent, await postLogin(h, login.agent, user))

  /** The login page leads with this account to the very request. */
  async function expectSignsInAs(login: Person, user: Person) {
    const { location = '' } = await signInAs(login, user)
    const tokens = await login.party.exchange(login.request, location)
    expect(tokens.claims()).to.include({ sub: user.id, nonce: login.request.nonce })
    expect(new URL(location).searchParams.get('state')).to.equal(login.request.state)
  }

  it('signs in with it to the very request, and the link of the first one verifies and signs nobody in', async () => {
    const login = await h.blockedLogin({ extra: { login_hint: 'somebody' } })
    const other = await h.addVerified()
    await leave(login)
    await login.getsNothing(await login.reloads())
    await expectSignsInAs(login, other)

    expectMode(await login.reloads(), 400, 'ended')
    expectMode(await login.opensLink(), 200, 'other_account')
    expect(await login.isVerified()).to.equal(false)
    const elsewhere = login.in()
    await elsewhere.isOnlyVerified(await elsewhere.opensLink())
    expect(await login.account()).to.equal(other.id)
  })

  it('can do so long after the interaction is gone, and when the request had been pushed, though the link has used that up elsewhere', async () => {
    const old = await h.blockedLogin()
    await forgetInteraction(h, old)
    await moveTime(5 * 3_600_000)
    const [{ login: pushed }, { login: used }] = [await pushedLogin(h), await pushedLogin(h)]
    expect((await used.opensElsewhere()).location).to.match(/[?&]code=/)
    for (const login of [old, pushed, used]) {
      await leave(login)
      await expectSignsInAs(login, await h.addVerified())
    }
  })

  it('may sign in with one that is blocked as well, which waits, also for a client that must push its requests', async () => {
    for (const login of [await h.blockedLogin(), (await pushedLogin(h)).login]) {
      await leave(login)
      const { agent, party, request } = login
      const second = Object.assign((await h.addUnverified()).in(agent), { party, request })
      second.blocked = await signInAs(login, second)
      expectMode(second.blocked, 200, 'blocked')
      second.link = (await second.mail(1)).link
      await second.opensElsewhere()
      await second.comesBack(await second.goesOn())
      expect(await login.isVerified()).to.equal(false)
    }
  })

  it('is asked who signs in, though somebody is signed in here meanwhile, who stays signed in', async () => {
    const login = await h.blockedLogin()
    const owner = await h.addSignedIn(login.agent)
    await leave(login)
    await expectSignsInAs(login, owner)
    expect(await login.account()).to.equal(owner.id)
  })

  it('may sign in with the same one: that login waits anew, as often as that happens', async () => {
    const login = await h.blockedLogin()
    for (const _time of [1, 2]) {
      await leave(login)
      login.blocked = await signInAs(login, login)
      expectMode(login.blocked, 200, 'blocked')
    }
    await login.mail(3)
    await login.becomes({ emailVerified: true })
    await login.comesBack(await login.goesOn())
  })
})

const DAY_MS = 86_400_000
const parameters = { ...APP, state: 's' }

// The pages of a reset are in test/http/links.test.ts.
describe('Whose page it is', () => {
  const h = suiteHarness({ flows: { brand: { name: 'Acme' } } })
  const agent = createUserAgent()

  /** The name above, and the one below. */
  const expectOf = (page: Answer, mode: string, names: [string, string]) => {
    expect([page.mode, ...namesAround(page)]).to.deep.equal([mode, ...names])
    return page
  }
  const expectOfClient = (page: Answer, mode: string) =>
    expectOf(page, mode, [CLIENT.client_name, 'Acme'])
  const expectOfBrand = (page: Answer, mode: string) => expectOf(page, mode, ['Acme', ''])

  const start = (parameters: Record<string, string>) =>
    agent.get(`${h.oauthUrl}/forgot-password?${new URLSearchParams(parameters)}`)
  const asks = (page: Answer, identifier: string) =>
    press(agent, page, '/forgot-password', { typed: { identifier } })

  it('is the client’s on every page of a verification, also where its link expired, and where the window goes on', async () => {
    const login = await h.blockedLogin()
    expectOfClient(login.blocked, 'blocked')
    expectOfClient(await press(agent, login.blocked, '/resend-verification'), 'sent')
    const nameless = { ...formsOf(login.blocked).at(-1)?.fields, username: '' }
    expectOfClient(await agent.post(`${h.oauthUrl}/resend-verification`, nameless), 'invalid')
    const { agent: browser } = await h.addSignedIn()
    expectOfClient(await browser.get(login.link), 'other_account')
    await h.put({ email_link_confirmation: 'other_browser' })
    expectOfClient(await agent.get(login.link, { purpose: 'prefetch' }), 'confirm')
    expectOfClient(await agent.get(login.link), 'elsewhere')
    await login.types()
    expectOfClient(await agent.get(login.link), 'expired')
    expectOfClient(await login.goesOn(), 'signed_in')
    await h.put({ email_link_confirmation: 'off' })
    const late = await h.blockedLogin()
    await h.later(DAY_MS)
    const expired = expectOfClient(await agent.get(late.link), 'expired')
    expectOfClient(await press(agent, expired, '/resend-verification'), 'sent')
    await late.mail(2)
  })

  it('is ours where no client is known, and never that of one that is not registered', async () => {
    const user = await h.addVerified()
    for (const asked of [
      {},
      { ...parameters, client_id: 'nobody' },
      { ...parameters, redirect_uri: 'https://evil.example/cb' },
    ]) {
      const form = expectOfBrand(await start(asked), 'form')
      const sent = expectOfBrand(await asks(form, user.username), 'sent')
      expect(sent.text).not.to.contain(CLIENT.client_name)
    }
    const refused = await agent.request('DELETE', `${h.oauthUrl}/forgot-password`)
    expectOfBrand(refused, 'method_not_allowed')
    expectOfBrand(await agent.get(`${h.oauthUrl}/reset-password?token=x`), 'invalid')
    const login = await h.blockedLogin()
    const broken = await agent.get(`${login.link}x`)
    const typed = { username: login.username }
    expectOfBrand(await press(agent, broken, '/resend-verification', { typed }), 'sent')
    await login.mail(2)
  })

  it('leads to the mailbox by what was typed, whether or not that is an account', async () => {
    await h.addVerified({ email: 'known@gmail.com' })
    const form = await start(parameters)
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
