import { expect } from 'chai'
import { partyOf } from '../support/clients.ts'
import { expectPage, createUserAgent, type UserAgent } from '../support/user-agent.ts'
import {
  CLIENT,
  CONFIDENTIAL,
  PASSWORD,
  type FinishLogin,
  suiteHarness,
} from '../support/harness.ts'
import { jobs } from '../support/jobs.ts'
import { postLogin } from '../support/oauth-requests.ts'
import {
  codeIn,
  eventsLike,
  expectMode,
  setsSession,
  tokenOf,
  type Person,
} from '../support/person.ts'
import { requestFrom } from '../support/raw-request.ts'
import { instead } from '../support/records.ts'
import { moveTime } from '../support/time.ts'

const NEW = 'a brand new password'
const HAS_CODE = /[?&]code=/

describe('POST {oauth_path}/login (4.8)', () => {
  const h = suiteHarness()

  it('renders the verification page in mode blocked instead of issuing a code, with a form for a new link, mails one to the stored address, and records that (VER-10)', async () => {
    const login = await h.blockedLogin()
    const { blocked, username, request } = login
    expect(blocked.text).to.match(/<form[^>]*action="[^"]*\/oauth2\/resend-verification"/)
    expect(blocked.hidden).to.include({ username, state: request.state })
    expect(blocked.text).to.not.include(login.email)
    await login.getsNothing(blocked)
    expect(login.mailCount()).to.equal(1)
    expect(login.link.startsWith(`${h.oauthUrl}/verify-email?token=`)).to.equal(true)
    for (const type of ['email_login_blocked', 'email_verification_mail_sent'] as const) {
      const [event] = await eventsLike(h, { type, accountId: login.id })
      expect(event?.clientId).to.equal(CLIENT.client_id)
      expect(JSON.stringify(event)).to.not.include(tokenOf(login.link))
    }
    await login.stillGetsIn()
  })

  it('says where the mail goes, so that its owner sees a slip in it, and no one else learns the address', async () => {
    for (const [email, masked] of [
      ['somebody@mail.example.com', 's•••@mail.example.com'],
      ["o'b@localhost", 'o•••@localhost'],
      ['x@y.z', 'x•••@y.z'],
    ] as const) {
      const { blocked } = await h.blockedLogin({ user: await h.addUnverified({ email }) })
      expect(blocked.text).to.include(masked).and.not.include(email)
    }
    // No mail can go there.
    for (const email of ['a@b.example, c@d.example', '']) {
      const { text, mode } = await (await h.addUnverified({ email })).signsIn()
      expect(mode).to.equal('blocked')
      expect(text).to.not.include('goes to').and.not.include('•••')
    }
  })

  it('blocks each further login, in the same browser and in another, and does not take away what waits', async () => {
    for (const isSame of [true, false]) {
      const first = await h.blockedLogin()
      const agent = isSame ? first.agent : createUserAgent()
      const second = await h.blockedLogin({ user: first, agent })
      expect(second.link).to.not.equal(first.link)
      await first.stillGetsIn()
      expect(h.sessionId(agent) !== undefined).to.equal(isSame)
      expect(await first.account()).to.equal(first.id)
    }
  })

  it('sends nothing for a wrong password, nor for an unknown or disabled user, nor without an interaction to wait for', async () => {
    const user = await h.addUnverified()
    const disabled = await h.addUnverified({ disabled: true })
    const early = await postLogin(h, user.agent, user)
    expect([early.status, early.page]).to.deep.equal([400, undefined])
    await user.getsNothing(early)
    for (const [who, password] of [
      [user, 'wrong'],
      [user, ''],
      [disabled, PASSWORD],
      [{ ...user, username: 'nobody' }, PASSWORD],
    ] as const) {
      await user.starts()
      const answer = await postLogin(h, user.agent, who, password)
      expect([answer.status, answer.mode]).to.deep.equal([401, 'wrong'])
      await user.getsNothing(answer)
    }
    const login = await h.blockedLogin({ user, agent: user.agent })
    expect([user.mailCount(), disabled.mailCount()]).to.deep.equal([1, 0])
    await login.stillGetsIn()
  })
})

describe('What a host’s login calls (4.8)', () => {
  const h = suiteHarness({
    async finishLogin(...login) {
      try {
        await hostLogin(...login)
      } catch (error) {
        thrown = error
        login[1].writeHead(500).end()
      }
    },
  })
  const honestLogin: FinishLogin = (...login) => h.flows.finishLogin(...login)
  const second = () => Math.floor(Date.now() / 1000)
  let hostLogin: FinishLogin
  let thrown: unknown

  beforeEach(() => {
    hostLogin = honestLogin
    thrown = undefined
  })

  async function expectBlocksOrFinishes() {
    await (await h.blockedLogin()).stillGetsIn()
    const user = await h.addVerified()
    expect((await user.signsIn()).location).to.match(HAS_CODE)
    expect(await user.account()).to.equal(user.id)
  }

  for (const isId of [false, true]) {
    const title = isId ? 'the user’s id' : 'the user’s record'
    const given = ({ account, startedAt }: Parameters<FinishLogin>[2]) => ({
      account: isId ? account.id : account,
      startedAt,
    })

    it(`blocks or finishes, given ${title}`, async () => {
      hostLogin = (req, res, login) => h.flows.finishLogin(req, res, given(login))
      await expectBlocksOrFinishes()
    })

    it(`decides without an answer, given ${title}: a page that posts by script goes on with what it is told`, async () => {
      hostLogin = async (req, res, login) => {
        const decision = await h.flows.decideLogin(req, res, given(login))
        expect(res.headersSent).to.equal(false)
        res.writeHead(200).end(JSON.stringify(decision))
      }
      const goesOn = async (user: Person, link: string) => {
        const { location = '' } = await user.agent.get(link)
        expect((await h.party.exchange(user.request, location)).claims()?.sub).to.equal(user.id)
      }

      interface Told {
        location: string
        blocked: Told
      }

      const verified = await h.addVerified()
      await goesOn(verified, (JSON.parse((await verified.signsIn()).text) as Told).location)

      const user = await h.addUnverified()
      const answer = await user.signsIn()
      expect([answer.status, setsSession(answer)]).to.deep.equal([200, false])
      const { location, ...blocked } = (JSON.parse(answer.text) as Told).blocked
      expect(blocked).to.include({ reason: 'email_unverified', lifetimeMs: 24 * 3_600_000 })
      expectMode(await user.agent.get(location), 200, 'blocked')
      await goesOn(user, (await user.mail(1)).link)
    })

    it(`answers only when it blocks, given ${title}: blockUnverified`, async () => {
      const answers: boolean[] = []
      hostLogin = async (req, res, login) => {
        const isBlocked = await h.flows.blockUnverified(req, res, given(login))
        answers.push(isBlocked)
        expect(res.writableEnded).to.equal(isBlocked)
        if (isBlocked) return
        const accountId = login.account.id
        await h.provider.interactionFinished(req, res, { login: { accountId } })
      }
      await expectBlocksOrFinishes()
      await h.put({ require_email_verification: 'false' })
      const { location } = await (await h.addUnverified()).signsIn()
      await h.put({ require_email_verification: 'true' })
      expect(location).to.match(HAS_CODE)
      expect(answers).to.deep.equal([true, false, false])
    })
  }

  it('goes by the id alone for a user whose record says verified since', async () => {
    const user = await h.addUnverified()
    hostLogin = async (req, res, { account, startedAt }) => {
      await h.users.markEmailVerified(user.id, user.email ?? '')
      await h.flows.finishLogin(req, res, { account: account.id, startedAt })
    }
    expect((await user.signsIn()).location).to.match(HAS_CODE)
    expect(user.mailCount()).to.equal(0)
  })

  for (const hash of [undefined, null, '']) {
    it(`blocks or finishes, also after a reset, where the host hands on ${JSON.stringify(hash)} for the hash`, async () => {
      hostLogin = (req, res, { account, startedAt }) => {
        // @ts-expect-error: some hosts strip the hash so
        const stripped: typeof account = { ...account, passwordHash: hash }
        return h.flows.finishLogin(req, res, { account: stripped, startedAt })
      }
      await expectBlocksOrFinishes()
      const user = await h.addVerified()
      await user.getsBackIn(NEW)
      await moveTime(1_000)
      expect((await user.signsIn(NEW)).location).to.match(HAS_CODE)
    })
  }

  it('keeps acr, amr and remember for the session that the link creates, and dates it at the login and not at the click', async () => {
    const startedAt = h.flows.loginStarted() - 30
    const more = { startedAt, acr: 'gold', amr: ['pwd'], remember: false }
    hostLogin = (req, res, login) => h.flows.finishLogin(req, res, { ...login, ...more })
    const login = await h.blockedLogin()
    const answer = await login.opensLink()
    const cookies = answer.headers.getSetCookie().filter((line) => line.startsWith('_session='))
    expect(cookies).to.have.length(1)
    expect(cookies[0]).to.not.match(/expires/i)
    const session = await h.sessionOf(login.agent)
    expect(session).to.deep.include({ acr: 'gold', amr: ['pwd'], loginTs: startedAt })
  })

  it('says of a browser that had the link alone what is so: by e-mail, when it was opened (VER-23)', async () => {
    const more = { acr: 'gold', amr: ['pwd'] }
    hostLogin = (req, res, login) => h.flows.finishLogin(req, res, { ...login, ...more })
    const login = await h.blockedLogin()
    await moveTime(90_000)
    const elsewhere = createUserAgent()
    const openedAt = second()
    const tokens = await login.comesBack(await elsewhere.get(login.link))
    expect(tokens.claims()?.auth_time ?? openedAt).to.be.at.least(openedAt)
    const session = await h.sessionOf(elsewhere)
    expect([session?.acr, session?.amr]).to.deep.equal([undefined, ['email']])
    expect(session?.loginTs).to.be.at.least(openedAt)
  })

  it('refuses a startedAt that is not from loginStarted(), which tells the second, whole', async () => {
    const before = second()
    const honest = h.flows.loginStarted()
    expect(Number.isInteger(honest)).to.equal(true)
    expect(honest).to.be.within(before, second())
    const user = await h.addUnverified()
    const people = [user, await h.addVerified()]
    const wrong: unknown[] = [Date.now(), second() + 3600, second() + 0.5, NaN, Infinity]
    for (const startedAt of [...wrong, undefined, null, String(second()), new Date()]) {
      for (const call of ['finishLogin', 'blockUnverified'] as const) {
        hostLogin = async (req, res, { account }) =>
          void (await h.flows[call](req, res, { account, startedAt: startedAt as number }))
        for (const person of people) {
          thrown = undefined
          const answer = await person.signsIn()
          expect(thrown, String(startedAt)).to.be.instanceOf(TypeError)
          expect(String(thrown)).to.include('loginStarted()')
          expect([answer.status, answer.location]).to.deep.equal([500, undefined])
          expect(h.sessionId(person.agent)).to.equal(undefined)
        }
      }
    }
    hostLogin = honestLogin
    expect(await user.isVerified()).to.equal(false)
    const login = await h.blockedLogin({ user })
    expect(user.mailCount()).to.equal(1)
    await login.stillGetsIn()
  })
})

describe('require_email_verification on every path to a code', () => {
  const h = suiteHarness()

  async function expectLoginPage(agent: UserAgent) {
    const { url } = await h.party.begin()
    expectPage(await h.follow(agent, await agent.get(url)), 200, 'login', 'login')
    expect((await h.silently(agent)).get('error')).to.equal('login_required')
  }

  it('holds for a session from before it was switched on (VER-11), which is good again once the setting is off or the address is verified', async () => {
    await h.put({ require_email_verification: 'false' })
    const [user, other] = [await h.addUnverified(), await h.addUnverified()]
    for (const each of [user, other]) await each.signsIn()
    await h.put({ require_email_verification: 'true' })
    for (const each of [user, other]) await expectLoginPage(each.agent)
    expect(user.mailCount()).to.equal(0)
    await h.put({ require_email_verification: 'false' })
    expect(await user.account()).to.equal(user.id)
    await h.put({ require_email_verification: 'true' })
    await other.becomes({ emailVerified: true })
    expect(await other.account()).to.equal(other.id)
    await expectLoginPage(user.agent)
    await (await h.blockedLogin({ user, agent: user.agent })).stillGetsIn()
    expect(await user.account()).to.equal(user.id)
  })

  it('leads the session of an account that is disabled or deleted to the login page, and not to an error (SES-13)', async () => {
    const user = await h.addSignedIn()
    await user.becomes({ disabled: true })
    await expectLoginPage(user.agent)
    await user.becomes({ disabled: false })
    expect(await user.account()).to.equal(user.id)
    await user.isDeleted()
    await expectLoginPage(user.agent)
  })
})

describe('A host that forgot finishLogin', () => {
  const h = suiteHarness({ usesHook: false })

  it('gets no code for an unverified user, however often the password is right, and one for a verified user, and for everybody once the setting is off', async () => {
    const user = await h.addUnverified()
    for (const _time of [1, 2, 3]) {
      expect((await user.signsIn()).location).to.equal(undefined)
      await user.sees('login', 'login')
    }
    expect((await h.silently(user.agent)).get('error')).to.equal('login_required')
    expect(await user.isVerified()).to.equal(false)
    expect((await (await h.addVerified()).signsIn()).location).to.match(HAS_CODE)
    await h.put({ require_email_verification: 'false' })
    expect((await user.signsIn()).location).to.match(HAS_CODE)
  })
})

describe('Logins that wait for a link are few, and small (RATE-16)', () => {
  const MAX = 10
  let isByScript = false
  const h = suiteHarness({
    clients: [CLIENT, CONFIDENTIAL],
    async finishLogin(req, res, login) {
      if (!isByScript) return h.flows.finishLogin(req, res, login)
      const decision = await h.flows.decideLogin(req, res, login)
      res.writeHead(200).end(JSON.stringify(decision))
    },
  })

  beforeEach(() => h.put({ mails_per_account_per_hour: '0', mails_per_minute: '0' }))

  /** Posts the same login again, in the browser where it waits. */
  const again = (login: Person) => postLogin(h, login.agent, login)

  /** Blocked, whether or not it gets a mail. */
  async function isBlocked(login: Person) {
    login.blocked = await login.signsIn()
    expectMode(login.blocked, 200, 'blocked')
    return login
  }

  const modesOf = (logins: Person[]) =>
    Promise.all(logins.map(async (login) => (await login.reloads()).mode))

  it('of one account the newest wait; a link whose login went verifies, and signs nobody in', async () => {
    const first = await h.blockedLogin()
    const stranger = await h.blockedLogin()
    const kept: Person[] = []
    while (kept.length < MAX) kept.push(await h.blockedLogin({ user: first }))
    const modes = await modesOf([first, ...kept])
    expect(modes).to.deep.equal(['ended', ...kept.map(() => 'blocked')])
    await first.isOnlyVerified(await first.opensLink())
    for (const login of kept) expectMode(await login.goesOn(), 400, 'ended')
    await stranger.comesBack(await stranger.opensElsewhere())
  })

  it('so does a link that is made when its login is gone', async () => {
    const login = await h.addUnverified()
    login.party = await partyOf(h, CONFIDENTIAL)
    await h.put({ mails_per_minute: '1' })
    await h.blockedLogin()
    await isBlocked(login)
    const pending = await h.store.pendingLogins.find({ id: login.loginId() })
    if (!pending) throw new Error('nothing waits')
    await h.store.pendingLogins.save({ ...pending, id: 'another' }, 1)
    expectMode(await login.reloads(), 400, 'ended')
    expect(login.mailCount()).to.equal(0)
    await h.put({ mails_per_minute: '0' })
    const { link } = await login.mail(1)
    expect(new URL(link).searchParams.get('state')).to.equal(login.request.state)
    const elsewhere = login.in()
    await elsewhere.isOnlyVerified(await elsewhere.opensLink(link))
  })

  it('the same request, posted again in its browser, is blocked in the same way, with a mail, and stays one login', async () => {
    const elsewhere = await h.blockedLogin()
    const login = await h.blockedLogin({ user: elsewhere })
    for (let posted = 0; posted <= MAX; posted += 1) {
      const blocked = await again(login)
      expectMode(blocked, 200, 'blocked')
      expect(blocked.hidden['login']).to.equal(login.loginId())
      await login.getsNothing(blocked)
    }
    await login.mail(MAX + 3)
    expect(await modesOf([elsewhere, login])).to.deep.equal(['blocked', 'blocked'])
    await login.comesBack(await login.opensElsewhere())
    expectMode(await elsewhere.goesOn(), 400, 'ended')
  })

  it('the same request waits anew, as another login, once its account was ended', async () => {
    const login = await h.blockedLogin()
    await h.flows.endSessions(login.id)
    expectMode(await login.goesOn(), 400, 'ended')
    const next = login.in(login.agent)
    next.blocked = await again(login)
    const { mail } = await login.mail(2)
    expect(next.loginId()).not.to.equal(login.loginId())
    expectMode(await login.goesOn(), 400, 'ended')
    await login.comesBack(await next.types(codeIn(mail)))
  })

  it('one that is posted again gets no other mail than its account may have, and is finished by its link; another one is over by that', async () => {
    await h.put({ mails_per_account_per_hour: '1' })
    const login = await h.blockedLogin()
    const repeated = await again(login)
    const other = await isBlocked(login.in())
    await h.isIdle()
    expect(login.mailCount()).to.equal(2)
    expect(repeated.hidden['login']).to.equal(login.loginId())
    await login.comesBack(await login.opensElsewhere())
    expectMode(await other.goesOn(), 400, 'ended')
  })

  it('a request that is too long to be kept is refused by a page, and nothing is written or mailed', async () => {
    const small = await h.blockedLogin()
    const known = await jobs(h)
    const large = small.in()
    const sized = async (length: number) => {
      // The provider keeps it twice: among the parameters, and as a detail of its prompt.
      large.request = await h.party.begin({ login_hint: 'x'.repeat(length) })
      const form = Object.fromEntries(large.request.url.searchParams)
      const { text } = await large.agent.post(`${h.oauthUrl}/request`, form)
      const { request_uri } = JSON.parse(text) as { request_uri: string }
      const query = new URLSearchParams({ client_id: CLIENT.client_id, request_uri })
      await h.follow(large.agent, await large.agent.get(`${h.oauthUrl}/auth?${query.toString()}`))
      return again(large)
    }
    expectPage(await sized(16_500), 400, 'error', 'request_too_long')
    isByScript = true
    const { text: told } = await sized(16_500)
    isByScript = false
    expect(JSON.parse(told)).to.deep.equal({ blocked: { reason: 'request_too_long' } })
    await h.isIdle()
    expect(known).to.include.members(await jobs(h))
    expect(small.mailCount()).to.equal(1)
    expect(await small.isVerified()).to.equal(false)
    large.blocked = await sized(15_500)
    expectMode(large.blocked, 200, 'blocked')
    await small.becomes({ emailVerified: true })
    await large.comesBack(await large.goesOn())
    await small.comesBack(await small.goesOn())
  })
})

const HERE = '192.0.2.1'
const ELSEWHERE = '198.51.100.1'
const MINUTE = 60_000

describe('Tries at a name (RATE-28)', () => {
  const h = suiteHarness()
  const limit = (username: string, from = HERE) => h.flows.limitLogin(requestFrom(from), username)

  async function guess(username: string, times: number, from = HERE) {
    const waits = await Promise.all(Array.from({ length: times }, () => limit(username, from)))
    return waits.filter((seconds) => seconds === undefined).length
  }

  it('are ten from one network, in any spelling and also at once, whether or not there is such a user', async () => {
    const { username } = await h.addUser({ username: 'ann.limited' })
    for (const name of [username, 'nobody.limited']) {
      expect(await guess(name, 30)).to.equal(10)
      for (const spelling of [name, name.toUpperCase(), ` ${name}\uFEFF`, name.replace('a', 'á')])
        expect(await limit(spelling), spelling).to.be.within(1, 900)
    }
    expect(await limit('ann.limite')).to.equal(undefined)
  })

  it('are never refused to a network that made none, and go on after 15 minutes', async () => {
    expect(await guess('petra', 30)).to.equal(10)
    expect(await guess('petra', 30, ELSEWHERE)).to.equal(10)
    expect(await guess('petra', 30, '2001:db8:0:1::1')).to.equal(10)
    expect(await limit('petra', '2001:db8:0:1::2')).to.be.within(1, 900)
    expect(await limit('petra', '2001:db8:0:2::1')).to.equal(undefined)
    await moveTime(15 * MINUTE)
    expect(await guess('petra', 30)).to.equal(10)
  })

  it('are given back where the password is right', async () => {
    const user = await h.addUser({ username: 'quinn' })
    const tries = async (times: number, password: string) => {
      for (let time = 0; time < times; time += 1) {
        const req = requestFrom(HERE)
        expect(await h.flows.limitLogin(req, user.username), `${time}`).to.equal(undefined)
        const isRight = password === PASSWORD
        // Given back once for each request.
        for (const _time of isRight ? [1, 2] : [1])
          expect(await h.flows.verifyPassword(user, password, req)).to.equal(isRight)
      }
    }
    await tries(30, PASSWORD)
    await tries(9, 'wrong')
    await tries(1, PASSWORD)
    expect(await guess(user.username, 2)).to.equal(1)
  })

  it('are forgotten where a mailed link sets a password, in that network', async () => {
    const { user, link } = await h.userWithLink()
    const names = [user.username, user.email ?? '', 'somebody else']
    const guessAtAll = (from: string) => Promise.all(names.map((name) => guess(name, 30, from)))
    await guessAtAll('127.0.0.1')
    await guessAtAll(HERE)
    expect((await h.reset(link, 'a new password')).mode).to.equal('done')
    expect(await guessAtAll('127.0.0.1')).to.deep.equal([10, 10, 0])
    expect(await guessAtAll(HERE)).to.deep.equal([0, 0, 0])
  })

  it('are not forgotten at the name of somebody else: an address, by an account that is named so, nor one that differs in case alone', async () => {
    const owner = await h.addUser({ username: 'owned' })
    const eve = await h.addUser({ username: owner.email ?? '', email: 'eve@users.example' })
    await h.addUser({ username: 'Twin' })
    const twin = await h.addUser({ username: 'twin' })
    for (const [person, name] of [
      [eve, owner.email ?? ''],
      [twin, 'Twin'],
    ] as const) {
      await h.forgot(person.email ?? '')
      const { link } = await person.mail(1)
      expect(await guess(name, 30, '127.0.0.1')).to.equal(10)
      expect((await h.reset(link, 'a new password')).mode).to.equal('done')
      expect(await guess(name, 30, '127.0.0.1')).to.equal(0)
    }
    expect(await guess('eve@users.example', 30, '127.0.0.1')).to.equal(10)
  })

  it('are not forgotten where the host looks up no names in any case: another account may have the name', async () => {
    await h.addUser({ username: 'Victim' })
    const eve = await h.addUser({ username: 'victim' })
    await h.forgot(eve.email ?? '')
    const { link } = await eve.mail(1)
    expect(await guess('Victim', 30, '127.0.0.1')).to.equal(10)
    const without = () => undefined
    const reset = () => h.reset(link, 'a new password')
    const done = await instead(h.users, 'findByUsernameInAnyCase', without, reset)
    expect(done.mode).to.equal('done')
    expect(await guess('Victim', 30, '127.0.0.1')).to.equal(0)
    expect(await guess(eve.email ?? '', 30, '127.0.0.1')).to.equal(10)
  })
})
