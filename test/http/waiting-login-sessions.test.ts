import { expect } from 'chai'
import type { CheckedLogin } from '../../src/index.ts'
import { startHarness } from '../support/harness.ts'
import {
  expectPlantedReplaced,
  expectReplaced,
  sessionOf,
  signedIn,
} from '../support/other-account.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { moveTime } from '../support/time.ts'
import { createUserAgent, type Answer, type UserAgent } from '../support/user-agent.ts'
import { expectMode, windowOf } from '../support/waiting-window.ts'
import {
  addUnverified,
  addVerified,
  blockedLogin,
  sessionId,
  type Person,
} from '../support/person.ts'

describe('A waiting window in a browser with a session', () => {
  const h = suiteHarness()

  it('goes on over the session of another account, by button, code and link: the password was typed in this very browser (VER-18)', async () => {
    const ways: Record<string, (login: Person) => Promise<Answer>> = {
      async button(login) {
        await login.opensElsewhere()
        return login.goesOn()
      },
      code: (login) => login.types(login.code),
      link: (login) => login.agent.get(login.link),
    }
    for (const [way, goOn] of Object.entries(ways)) {
      await h.put({ email_link_confirmation: way === 'link' ? 'other_browser' : 'off' })
      const login = await blockedLogin(h)
      const { owner } = await signedIn(h, login.agent)
      const before = await sessionOf(h, login.agent)
      await login.comesBack(await goOn(login))
      await expectReplaced(h, before, await sessionOf(h, login.agent), [owner, login])
      expect(await login.account()).to.equal(login.id)
    }
    await h.put({ email_link_confirmation: 'off' })
  })

  async function endSession(agent: UserAgent, answer: { logout?: 'yes' }, headers = {}) {
    const { hidden } = await agent.get(`${h.oauthUrl}/session/end`, headers)
    const form = { ...hidden, ...answer }
    expect((await agent.post(`${h.oauthUrl}/session/end/confirm`, form)).status).to.equal(303)
  }

  it('goes on in no window once the person has signed out of the browser', async () => {
    const login = await blockedLogin(h)
    const window = windowOf(h, login)
    await login.opensElsewhere()
    await h.signIn(login.agent, login.username)
    expect(await login.account()).to.equal(login.id)
    await endSession(login.agent, { logout: 'yes' })
    expectMode(await window.reload(), 400, 'ended')
    expectMode(await window.goOn(), 400, 'ended')
    expectMode(await window.reload(), 400, 'ended')
    expect(await login.account()).to.equal(undefined)
    const next = await blockedLogin(h, { agent: login.agent })
    await next.opensElsewhere()
    await next.comesBack(await next.goesOn())
  })

  it('goes on though another site led the browser to sign out, where nobody was signed in', async () => {
    const login = await blockedLogin(h)
    await login.opensElsewhere()
    await endSession(login.agent, { logout: 'yes' }, { 'sec-fetch-site': 'cross-site' })
    await login.comesBack(await login.goesOn())
  })

  it('goes on where the person was asked whether to sign out, and stayed', async () => {
    const login = await blockedLogin(h)
    await login.opensElsewhere()
    await h.signIn(login.agent, login.username)
    await endSession(login.agent, {})
    expect(await login.account()).to.equal(login.id)
    await login.comesBack(await login.goesOn())
  })

  it('says of a window that went on before that it is over, and nothing of the other account that came since', async () => {
    const login = await blockedLogin(h)
    const window = windowOf(h, login)
    await login.comesBack(await login.agent.get(login.link))
    await (await sessionOf(h, login.agent))?.destroy()
    const { owner } = await signedIn(h, login.agent)
    for (const answer of [await window.goOn(), await window.reload()]) {
      expectMode(answer, 400, 'ended')
      expect(answer.text).to.not.include(owner.username)
    }
    expect(await login.account()).to.equal(owner.id)
  })

  it('keeps a session of the same account, under a new name', async () => {
    const user = await addVerified(h)
    const agent = createUserAgent()
    await h.signIn(agent, user.username)
    const before = await sessionOf(h, agent)
    await user.becomes({ emailVerified: false })
    const login = await blockedLogin(h, { user, agent })
    await login.opensElsewhere()
    await login.comesBack(await login.goesOn())
    const after = await sessionOf(h, agent)
    await expectReplaced(h, before, after, [user, user])
  })

  it('replaces an anonymous session that somebody planted (SES-07)', async () => {
    const login = await blockedLogin(h)
    await login.opensElsewhere()
    await expectPlantedReplaced(h, login.agent, async () => {
      await login.comesBack(await login.goesOn())
    })
  })

  it('signs nobody in with a login that somebody else made in a browser of his own (VER-22)', async () => {
    const attacker = await blockedLogin(h)
    await attacker.opensElsewhere()
    const victims = [createUserAgent(), (await blockedLogin(h)).agent]
    for (const victim of victims) {
      expectMode(await attacker.in(victim).goesOn(), 400, 'ended')
      expect(sessionId(h, victim)).to.equal(undefined)
    }
    await attacker.comesBack(await attacker.goesOn())
  })
})

describe('A login that waited in a browser where its account signed in again since', () => {
  let how: Partial<CheckedLogin> = {}
  const h = suiteHarness({
    finishLogin: (req, res, login) => h.flows.finishLogin(req, res, { ...login, ...how }),
  })
  const MAX_AGE_S = 600

  beforeEach(() => {
    how = {}
  })

  /** A login that waits, and after a while a stronger one, of the same account in the same browser. */
  async function overtaken(seconds: number, extra: Record<string, string>) {
    how = { acr: 'bronze', amr: ['pwd'], remember: false }
    const login = await blockedLogin(h, { extra: { max_age: String(MAX_AGE_S), ...extra } })
    await moveTime(seconds * 1000)
    await login.becomes({ emailVerified: true })
    how = { acr: 'gold', amr: ['pwd', 'otp'] }
    const { url } = await h.party.begin({ prompt: 'login' })
    const back = await h.follow(login.agent, await h.login(login.agent, url, login.username))
    expect(back.location).to.match(/[?&]code=/)
    const newer = await sessionOf(h, login.agent)
    expect(newer?.acr).to.equal('gold')
    await moveTime(2_000)
    return { login, newer }
  }

  const finishers: Record<string, (login: Person) => Promise<Answer>> = {
    'its window': (login) => login.goesOn(),
    async 'its link'(login) {
      await login.becomes({ emailVerified: false })
      return login.agent.get(login.link)
    },
  }
  for (const [finisher, finish] of Object.entries(finishers)) {
    for (const [title, seconds, extra] of [
      ['after a minute', 60, {}],
      ['with prompt=login', 60, { prompt: 'login' }],
      ['once its own is older than max_age', MAX_AGE_S + 1, { prompt: 'login' }],
    ] as const) {
      it(`is finished by ${finisher} with the newer login, which stays as it is, ${title} (SES-15)`, async () => {
        const { login, newer } = await overtaken(seconds, extra)
        const answer = await finish(login)
        const tokens = await login.comesBack(answer)
        expect(tokens.claims()?.auth_time).to.equal(newer?.loginTs)
        const after = await sessionOf(h, login.agent)
        const { accountId, loginTs, acr, amr } = newer ?? {}
        expect(after).to.deep.include({ accountId, loginTs, acr, amr, uid: newer?.uid })
        expect(after?.transient).to.equal(newer?.transient)
      })
    }
  }

  it('replaces a session from before that login', async () => {
    const user = await addVerified(h)
    const agent = createUserAgent()
    how = { acr: 'gold' }
    await h.signIn(agent, user.username)
    const before = await sessionOf(h, agent)
    await moveTime(5_000)
    await user.becomes({ emailVerified: false })
    how = { acr: 'bronze' }
    const login = await blockedLogin(h, { user, agent, extra: { prompt: 'login' } })
    await login.opensElsewhere()
    await login.comesBack(await login.goesOn())
    const after = await sessionOf(h, agent)
    expect(after?.acr).to.equal('bronze')
    expect(after?.loginTs).to.be.greaterThan(before?.loginTs ?? Infinity)
  })
})

describe('The cookie by which the browser that logged in is known', () => {
  const NAME = 'account_flows_browser'
  const lineOf = ({ headers }: Answer) =>
    headers.getSetCookie().find((line) => line.includes(NAME)) ?? ''
  const valueOf = (line: string) => /=([\w-]{43});/.exec(line)?.[1]

  describe('over http', () => {
    const h = suiteHarness({
      finishLogin: (req, res, login) =>
        h.flows.finishLogin(req, res, { ...login, ...(remember !== undefined && { remember }) }),
    })
    let remember: boolean | undefined

    beforeEach(() => {
      remember = undefined
    })

    it('is for no script and no other site, lives as long as the login can wait, and is stored hashed', async () => {
      const login = await blockedLogin(h)
      const line = lineOf(login.blocked)
      const value = valueOf(line)
      const eightDays = `Max-Age=${8 * 86_400}`
      expect(line).to.equal(`${NAME}=${value}; ${eightDays}; Path=/; HttpOnly; SameSite=Lax`)
      const stored = await h.store.pendingLogins.find({ id: login.loginId() })
      expect(JSON.stringify(stored)).to.not.include(value)
      expect(stored?.browserHash).to.match(/^[\da-f]{64}$/)
    })

    it('stays the same for the browser, and is another one for each', async () => {
      const agent = createUserAgent()
      const lines: string[] = []
      for (const _time of [1, 2]) lines.push(lineOf((await blockedLogin(h, { agent })).blocked))
      const elsewhere = lineOf((await blockedLogin(h)).blocked)
      expect(lines[0]).to.equal(lines[1])
      expect(valueOf(elsewhere)).to.match(/^[\w-]{43}$/)
      expect(valueOf(elsewhere)).to.not.equal(valueOf(lines[0] ?? ''))
    })

    it('is given to nobody who is not blocked, and not by a link', async () => {
      const login = await blockedLogin(h)
      const elsewhere = createUserAgent()
      for (const answer of [
        await h.signIn(createUserAgent(), (await addVerified(h)).username),
        await elsewhere.get(login.link),
      ]) {
        expect(lineOf(answer)).to.equal('')
      }
      expect(elsewhere.cookiesFor(h.oauthUrl)).to.not.include(NAME)
      await login.comesBack(await login.goesOn())
    })

    it('ends with the browser where the login is not to be remembered', async () => {
      remember = false
      const login = await blockedLogin(h)
      const line = lineOf(login.blocked)
      expect(line).to.equal(`${NAME}=${valueOf(line)}; Path=/; HttpOnly; SameSite=Lax`)
      await login.opensElsewhere()
      const answer = await login.goesOn()
      const session = answer.headers.getSetCookie().find((each) => each.startsWith('_session='))
      expect(session).to.not.match(/expires|max-age/i)
      await login.comesBack(answer)
    })

    it('of the person before gives the next person of a browser nothing', async () => {
      const agent = createUserAgent()
      const before = await blockedLogin(h, { agent })
      const next = await blockedLogin(h, { agent })
      await next.opensElsewhere()
      expectMode(await before.goesOn(), 200, 'blocked')
      await next.comesBack(await next.goesOn())
      expect(await before.isVerified()).to.equal(false)
    })
  })

  it('is bound to this host over https', async () => {
    const h = await startHarness({ flows: { baseUrl: 'https://idp.example' } })
    const user = await addUnverified(h)
    const agent = createUserAgent()
    const { url } = await h.party.begin()
    const line = lineOf(await h.login(agent, url, user.username))
    await h.close()
    const name = `__Host-${NAME}`
    expect(line).to.match(
      new RegExp(`^${name}=[\\w-]{43}; Max-Age=691200; Path=/; HttpOnly; SameSite=Lax; Secure$`),
    )
  })
})
