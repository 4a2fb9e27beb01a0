import { expect } from 'chai'
import { expectOnlyVerified } from '../support/blocked-login.ts'
import { onBothStores } from '../support/both-stores.ts'
import {
  dynamicLogin,
  forgetInteraction,
  JAR_ONLY,
  PAR_ONLY,
  pushedLogin,
  signedLogin,
  THEIR_FEATURES,
} from '../support/clients.ts'
import { CLIENT, CONFIDENTIAL, PASSWORD } from '../support/harness.ts'
import { outcomeOf } from '../support/oauth-requests.ts'
import { signedIn } from '../support/other-account.ts'
import { formsOf } from '../support/page-forms.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { moveTime } from '../support/time.ts'
import { createUserAgent, type Answer } from '../support/user-agent.ts'
import { expectMode, pendingOf, windowNamed, windowOf } from '../support/waiting-window.ts'
import {
  addUnverified,
  addVerified,
  blockedLogin,
  sessionId,
  setsSession,
  type Person,
} from '../support/person.ts'

const CANCEL = { action: 'cancel' }
const OTHER_ACCOUNT = { action: 'other_account' }

/** The client has its answer, and the browser nothing. */
function expectDenied({ request, agent }: Person, answer: Answer, oauthUrl: string) {
  expect(answer.status, answer.text).to.equal(302)
  const { origin, pathname, searchParams } = new URL(answer.location ?? '')
  expect(`${origin}${pathname}`).to.equal(request.redirectUri)
  expect(searchParams.get('error')).to.equal('access_denied')
  expect(searchParams.get('state')).to.equal(request.state)
  expect(searchParams.get('iss')).to.equal(oauthUrl)
  expect(searchParams.has('code')).to.equal(false)
  expect(agent.cookiesFor(`${oauthUrl}/reset-password`)).to.not.include('account_flows_login')
}

describe('Whoever cancels a login that is blocked', () => {
  const h = suiteHarness({
    clients: [CLIENT, CONFIDENTIAL, PAR_ONLY, JAR_ONLY],
    provider: { features: THEIR_FEATURES },
  })

  const cancel = (login: Person) => login.goesOn(CANCEL)

  async function expectOver(login: Person) {
    const window = windowOf(h, login)
    for (const ask of [window.reload, window.goOn, () => window.goOn(CANCEL)]) {
      const answer = await ask()
      expectMode(answer, 400, 'ended')
      expect(answer.text).to.match(/<a [^>]*href="https:\/\/app\.example\/"/)
      expect(setsSession(answer)).to.equal(false)
    }
    expectMode(await window.reload(), 400, 'ended')
  }

  it('is back at the client, which hears access_denied; nothing else changed, and the next login is as good as any', async () => {
    const login = await blockedLogin(h)
    const answer = await cancel(login)
    expectDenied(login, answer, h.oauthUrl)
    await login.getsNothing({ ...answer, location: undefined })
    expect(sessionId(h, login.agent)).to.equal(undefined)
    await expectOver(login)
    const next = await blockedLogin(h, { user: login, agent: login.agent })
    await next.comesBack(await next.agent.get(next.link))
  })

  it('verifies by the link that was mailed before, which signs nobody in, in this browser or another (VER-25)', async () => {
    for (const isSame of [true, false]) {
      const login = await blockedLogin(h)
      await cancel(login)
      const agent = isSame ? login.agent : createUserAgent()
      await expectOnlyVerified(h, { ...login, agent }, await agent.get(login.link))
      await expectOver(login)
      const { location } = await h.signIn(login.agent, login.username)
      expect(location).to.match(/[?&]code=/)
    }
  })

  it('leaves no code to whoever opened the link elsewhere a moment before (VER-25)', async () => {
    const login = await blockedLogin(h)
    const { markEmailVerified } = h.users
    h.users.markEmailVerified = async (id, email) => {
      h.users.markEmailVerified = markEmailVerified
      await cancel(login)
      return markEmailVerified(id, email)
    }
    const agent = createUserAgent()
    await expectOnlyVerified(h, { ...login, agent }, await agent.get(login.link))
    await expectOver(login)
    const another = await blockedLogin(h)
    expect((await another.opensElsewhere()).location).to.match(/[?&]code=/)
  })

  it('leaves no code to the window that goes on before this is written down (VER-25)', async () => {
    const login = await blockedLogin(h)
    await login.becomes({ emailVerified: true })
    const { pendingLogins } = h.store
    const { change } = pendingLogins
    const asked: Answer[] = []
    pendingLogins.change = async (...args) => {
      pendingLogins.change = change
      asked.push(await login.goesOn())
      return change(...args)
    }
    expectDenied(login, await cancel(login), h.oauthUrl)
    expect(asked.map(({ location }) => location)).to.deep.equal([undefined])
    await expectOver(login)
  })

  it('can do so long after the interaction is gone, and once the address is verified', async () => {
    const forgotten = await blockedLogin(h)
    await forgetInteraction(h, forgotten)
    const old = await blockedLogin(h)
    await moveTime(5 * 3_600_000)
    const verified = await blockedLogin(h)
    await verified.opensElsewhere()
    for (const login of [forgotten, old, verified]) {
      expectDenied(login, await cancel(login), h.oauthUrl)
      expect(sessionId(h, login.agent)).to.equal(undefined)
      await expectOver(login)
    }
  })

  it('answers a client that pushed or signed its request, and uses a pushed one up', async () => {
    const signed = await signedLogin(h)
    expectDenied(signed, await cancel(signed), h.oauthUrl)
    const { login, url } = await pushedLogin(h)
    expectDenied(login, await cancel(login), h.oauthUrl)
    expect(outcomeOf(await createUserAgent().get(url))).to.equal('invalid_request_uri')
  })

  it('answers in the way that the client asked for', async () => {
    const login = await blockedLogin(h, { extra: { response_mode: 'form_post' } })
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
    await login.isOnlyVerified(await login.agent.get(login.link))
  })

  it('keeps who is signed in meanwhile', async () => {
    const login = await blockedLogin(h)
    const { owner } = await signedIn(h, login.agent)
    expectDenied(login, await cancel(login), h.oauthUrl)
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
    const answer = await login.goesOn(OTHER_ACCOUNT)
    expect(answer.status).to.equal(302)
    expect(answer.headers.getSetCookie().join()).to.include('account_flows_login=')
    const page = await h.follow(login.agent, answer)
    expect(page.page).to.equal('login')
    return page
  }

  async function signInAs(login: Person, username: string) {
    const form = { username, password: PASSWORD }
    const answer = await login.agent.post(`${h.oauthUrl}/login`, form)
    return h.follow(login.agent, answer)
  }

  it('signs in with it to the very request, and the link of the first one verifies and signs nobody in', async () => {
    const login = await blockedLogin(h, { extra: { login_hint: 'somebody' } })
    const other = await addVerified(h)
    await leave(login)
    expect(sessionId(h, login.agent)).to.equal(undefined)
    await login.getsNothing(await login.reloads())
    const { location = '' } = await signInAs(login, other.username)
    const tokens = await login.party.exchange(login.request, location)
    expect(tokens.claims()).to.include({ sub: other.id, nonce: login.request.nonce })
    expect(new URL(location).searchParams.get('state')).to.equal(login.request.state)

    expectMode(await login.reloads(), 400, 'ended')
    expectMode(await login.agent.get(login.link), 200, 'other_account')
    expect(await login.isVerified()).to.equal(false)
    const agent = createUserAgent()
    await expectOnlyVerified(h, { ...login, agent }, await agent.get(login.link))
    expect(await login.account()).to.equal(other.id)
  })

  it('can do so long after the interaction is gone, and when the request had been pushed', async () => {
    const old = await blockedLogin(h)
    await forgetInteraction(h, old)
    await moveTime(5 * 3_600_000)
    const { login: pushed } = await pushedLogin(h)
    for (const login of [old, pushed]) {
      const other = await addVerified(h)
      await leave(login)
      const { location = '' } = await signInAs(login, other.username)
      expect((await login.party.exchange(login.request, location)).claims()?.sub).to.equal(other.id)
    }
  })

  it('may sign in with one that is blocked as well, which waits, also for a client that must push its requests', async () => {
    for (const login of [await blockedLogin(h), (await pushedLogin(h)).login]) {
      const user = await addUnverified(h)
      await leave(login)
      const blocked = await signInAs(login, user.username)
      expectMode(blocked, 200, 'blocked')
      const { link } = await h.mail.mailTo(user.email ?? '')
      const second = { ...login, user, blocked, link }
      await second.opensElsewhere()
      await second.comesBack(await second.goesOn())
      expect(await login.user.isVerified()).to.equal(false)
    }
  })

  it('can do so though the link has used the pushed request up elsewhere', async () => {
    const { login } = await pushedLogin(h)
    expect((await login.opensElsewhere()).location).to.match(/[?&]code=/)
    const other = await addVerified(h)
    await leave(login)
    const { location = '' } = await signInAs(login, other.username)
    expect((await login.party.exchange(login.request, location)).claims()?.sub).to.equal(other.id)
  })

  it('is asked who signs in, though somebody is signed in here meanwhile, who stays signed in', async () => {
    const login = await blockedLogin(h)
    const { owner } = await signedIn(h, login.agent)
    await leave(login)
    expect(await login.account()).to.equal(owner.id)
    const { location = '' } = await signInAs(login, owner.username)
    expect((await login.party.exchange(login.request, location)).claims()?.sub).to.equal(owner.id)
  })

  it('may sign in with the same one: that login waits anew, as often as that happens', async () => {
    const login = await blockedLogin(h)
    let window = windowOf(h, login)
    for (const _time of [1, 2]) {
      expect((await h.follow(login.agent, await window.goOn(OTHER_ACCOUNT))).page).to.equal('login')
      const blocked = await signInAs(login, login.username)
      expectMode(blocked, 200, 'blocked')
      window = windowOf(h, { agent: login.agent, blocked })
    }
    await h.mail.mailTo(login.email ?? '', 3)
    await login.becomes({ emailVerified: true })
    await login.comesBack(await window.goOn())
  })

  it('is told of it by a page with both ways out, which are of the form that waits', async () => {
    const { blocked } = await blockedLogin(h)
    const forms = formsOf(blocked).map(({ action }) => new URL(action).pathname.split('/').at(-1))
    expect(forms).to.deep.equal(['waiting', 'resend-verification'])
    const [waiting, resend] = formsOf(blocked)
    const values = ['', 'other_account', 'cancel']
    expect(waiting?.buttons.map(({ value }) => value)).to.deep.equal(values)
    expect(resend?.buttons).to.have.length(1)
  })
})

describe('A login that is blocked, and others who would end it', () => {
  const h = suiteHarness()
  const actions = [CANCEL, OTHER_ACCOUNT]

  /** Its link does all of its work. */
  async function expectUntouched(login: Person) {
    const window = windowOf(h, login)
    expect((await pendingOf(h, window)).continuedAt).to.equal(undefined)
  }

  it('goes on whoever posts its id, or another one with its cookie (VER-24)', async () => {
    const login = await blockedLogin(h)
    const other = await blockedLogin(h)
    const own = windowOf(h, login)
    const cookie = login.agent.cookiesFor(`${h.oauthUrl}/verify-email`)
    for (const action of actions) {
      for (const window of [own.in(createUserAgent()), own.in(other.agent)]) {
        expectMode(await window.goOn(action), 400, 'ended')
      }
      for (const id of ['', 'x', login.interaction, login.id, other.loginId()]) {
        const made = windowNamed(h.oauthUrl, id, createUserAgent())
        expectMode(await made.goOn(action, { cookie }), 400, 'ended')
      }
    }
    for (const each of [login, other]) await expectUntouched(each)
    await login.comesBack(await login.agent.get(login.link))
    expectDenied(other, await other.goesOn(CANCEL), h.oauthUrl)
  })

  it('goes on whatever another site, an address or another method sends (VER-24)', async () => {
    const login = await blockedLogin(h)
    const window = windowOf(h, login)
    for (const action of actions) {
      for (const headers of [
        { 'sec-fetch-site': 'cross-site' },
        { origin: 'https://evil.example' },
        { origin: 'null' },
      ]) {
        const answer = await window.goOn(action, headers)
        expect([answer.status, answer.mode]).to.deep.equal([403, 'refused'])
      }
      const query = new URLSearchParams({ login: window.id, ...action }).toString()
      const page = await login.agent.get(`${h.oauthUrl}/verify-email/waiting?${query}`)
      expectMode(page, 200, 'blocked')
      const repeated = `login=${window.id}&action=cancel&${new URLSearchParams(action).toString()}`
      const bad = await login.agent.post(`${h.oauthUrl}/verify-email/waiting`, repeated)
      expect([bad.status, bad.location]).to.deep.equal([400, undefined])
    }
    await expectUntouched(login)
    await login.comesBack(await login.agent.get(login.link))
  })
})

onBothStores('A login that is ended while it goes on', (technology) => {
  const h = suiteHarness({ technology })

  it('has one answer, whatever 20 posts ask for at once (VER-25)', async () => {
    const login = await blockedLogin(h)
    const window = windowOf(h, login)
    await login.opensElsewhere()
    const asked = [{}, CANCEL, OTHER_ACCOUNT, CANCEL].flatMap((each) => Array(5).fill(each))
    const answers = await Promise.all(asked.map((each) => window.goOn(each)))
    expect(answers.filter(({ location }) => location !== undefined)).to.have.length(1)
    for (const { location, mode } of answers) {
      if (location === undefined) expect(mode).to.be.oneOf(['ended', 'signed_in'])
    }
    const { location } = await h.signIn(login.agent, login.username)
    expect(location).to.match(/[?&]code=/)
  })
})
