import { expect } from 'chai'
import { outcomeOf, suiteAdmin } from '../support/admin.ts'
import {
  onEachStore,
  PASSWORD,
  type FinishLogin,
  type Harness,
  suiteHarness,
} from '../support/harness.ts'
import { eventually } from '../support/eventually.ts'
import { SERVER } from '../support/clients.ts'
import type { MailAnswer } from '../support/mail-server.ts'
import { describeWithMongo } from '../support/mongod.ts'
import { postLogin } from '../support/oauth-requests.ts'
import { sha256 } from '../support/observe.ts'
import { beforeFirst, dump, instead } from '../support/records.ts'
import { createUserAgent, type Answer, type UserAgent } from '../support/user-agent.ts'
import {
  codeIn,
  codeOn,
  disown,
  expectExpired,
  expectMode,
  setsSession,
  wrongCode,
  type Person,
} from '../support/person.ts'
import { moveTime } from '../support/time.ts'

const CAREFUL = { email_link_confirmation: 'other_browser' }
const WRONG = 'That code isn’t right'
const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

const inDigits = (zero: number) => (code: string) =>
  [...code].map((digit) => String.fromCodePoint(zero + Number(digit))).join('')
const WRITTEN = [
  (code: string) => ` ${code.slice(0, 3)}\u00A0${code.slice(3)}\t`,
  (code: string) => `${code.slice(0, 3)}-${code.slice(3, 5)}\u2011${code.slice(5)}`,
  (code: string) => `\u2067${code}\u2069\u200F`,
  // Arabic, Persian, Devanagari, and wide.
  ...[0x660, 0x6f0, 0x966, 0xff10].map(inDigits),
]
const MISSHAPEN = '1 12345 1234567 abcdef 12a456 - １２３ 0x1234 ½23456'.split(' ')

describe('The code of a login that waits (3.2)', () => {
  const finish: FinishLogin = (...login) => h.flows.finishLogin(...login)
  let hostLogin = finish
  const h: Harness = suiteHarness({
    settings: { mails_per_account_per_hour: '0' },
    finishLogin: (...login) => hostLogin(...login),
  })

  async function expectRefused(login: Person, code: string, words: string) {
    const page = await login.types(code)
    expectMode(page, 400, 'blocked')
    expect(page.text).to.include(words)
    await login.getsNothing(page)
  }

  async function guesses(login: Person, times: number) {
    for (let guess = 0; guess < times; guess += 1)
      await expectRefused(login, wrongCode(login.code, guess), WRONG)
  }

  /** The right code does all of its work: nothing of it was spent. */
  const codeStillWorks = async (login: Person) => login.comesBack(await login.types())

  const loginAt = async (email: string) =>
    h.blockedLogin({ user: await h.addUnverified({ email }) })

  const reset = async (user: Person) =>
    expect((await h.reset(await user.forgets(), 'a brand new password')).mode).to.equal('done')

  for (const email_link_confirmation of ['off', 'other_browser']) {
    it(`${email_link_confirmation}: typed where the login waits, verifies and finishes the very request of the client, once`, async () => {
      await h.put({ email_link_confirmation })
      const login = await h.blockedLogin()
      const tokens = await codeStillWorks(login)
      expect(tokens.claims()?.['nonce']).to.equal(login.request.nonce)
      expectMode(await login.types(), 200, 'signed_in')
      const events = login.events('email_verification_completed')
      expect(events.map(({ clientId }) => clientId)).to.deep.equal(['app'])
      expectExpired(await login.opensElsewhere())
    })
  }

  it('is in both parts of the mail, with the account, the client and the time, and nowhere that a locked phone shows (VER-08)', async () => {
    const login = await h.blockedLogin()
    const { subject = '', text = '', html } = (await login.mail()).mail
    const markup = String(html)
    expect(login.code).to.match(/^\d{6}$/)
    for (const part of [text, markup]) {
      const beside = part.slice(part.indexOf(login.code))
      for (const fact of [`Account: ${login.username}`, 'App: The App', 'Started: ', 'Never tell'])
        expect(beside).to.include(fact)
      expect(part.split(login.code)).to.have.length(2)
    }
    expect(subject).to.not.include(login.code)
    const preheader = /<div[^>]*display:none[^>]*>([^<]*)</.exec(markup)?.[1]
    expect(preheader).to.be.a('string').and.to.not.include(login.code)
    const invisible = /<head>[^]*<\/head>|<div[^>]*display:none[^]*?<\/div>|<[^>]*>/g
    const shown = markup.replaceAll(invisible, ' ').replaceAll(/\s+/g, ' ')
    expect(shown).to.include(login.code)
    for (const firstLines of [text.slice(0, 300), shown.slice(0, 200)])
      expect(firstLines).to.not.include(login.code)
  })

  it('is the same in every mail of its login, also where a stranger asks, and another one for each login', async () => {
    const login = await h.blockedLogin()
    const { code } = login
    const { login: _, ...parameters } = login.blocked.hidden
    await login.asksAgain(parameters)
    expect(login.code).to.equal(code)
    const others = [await h.blockedLogin({ user: login }), await h.blockedLogin()]
    expect(new Set([login, ...others].map((each) => each.code)).size).to.equal(3)
    await codeStillWorks(login)
  })

  it('is used up once its login has gone on: the same request again waits for another code, also where the account has the address back (0047)', async () => {
    const login = await h.blockedLogin()
    const { code: used, email = '', agent } = login
    const id = login.loginId()
    const sameRequest = async () => {
      await h.follow(agent, await agent.get(login.request.url))
      return h.follow(agent, await postLogin(h, agent, login))
    }
    login.blocked = await sameRequest()
    expect(codeIn((await login.mail(2)).mail)).to.equal(used)
    await h.isIdle()
    await login.comesBack(await login.types())
    await login.becomes({ emailVerified: false })
    await login.movesTo(`other-${email}`)
    await login.movesTo(email)
    login.blocked = await sameRequest()
    expect(login.loginId()).to.equal(id)
    const refused = await login.types(used)
    expectMode(refused, 400, 'blocked')
    expect(refused.text).to.include(WRONG)
    expect(await login.isVerified()).to.equal(false)
    await h.isIdle()
    const codes = h.mail.mails.filter(({ to }) => to[0] === email).map(({ mail }) => codeIn(mail))
    await login.comesBack(await login.types(codes.findLast((code) => code !== undefined)))
  })

  it('is that of the page which asks for another mail, also where a newer login has the same parameters', async () => {
    const extra = { state: 'the same' }
    const login = await h.blockedLogin({ extra })
    const newer = await h.blockedLogin({ user: login, extra })
    expectMode(await login.presses('/resend-verification'), 200, 'sent')
    const { mail } = await login.mail(3)
    expect(codeIn(mail)).to.equal(login.code).and.not.equal(newer.code)
    // Nobody logged in by that.
    expect(login.events('email_login_blocked')).to.have.length(2)
    // Another name on that page asks for a mail to that one, which has no code of this login.
    const other = await h.addUnverified()
    const fields = { ...login.blocked.hidden, username: other.username }
    await login.agent.post(`${h.oauthUrl}/resend-verification`, fields)
    expect(codeIn((await other.mail(1)).mail)).to.equal(undefined)
    await codeStillWorks(login)
  })

  it('is in no mail for no login that waits', async () => {
    const left = await h.blockedLogin()
    await left.goesOn({ action: 'cancel' })
    const { login: _, ...parameters } = left.blocked.hidden
    for (const fields of [{}, parameters]) {
      await left.asksAgain(fields)
      expect(left.code).to.equal('')
    }
  })

  it('is read with blanks, hyphens and invisible marks, and in the digits of other scripts', async () => {
    for (const written of WRITTEN) {
      const login = await h.blockedLogin()
      await login.comesBack(await login.types(written(login.code)))
    }
  })

  it('of a wrong shape is no try', async () => {
    const login = await h.blockedLogin()
    for (const typed of MISSHAPEN) await expectRefused(login, typed, 'six digits')
    for (const blank of ['', ' ', '\u00A0']) expectMode(await login.types(blank), 200, 'blocked')
    await guesses(login, 4)
    await codeStillWorks(login)
  })

  it('of another account or another login is a wrong one', async () => {
    const login = await h.blockedLogin()
    for (const other of [await h.blockedLogin(), await h.blockedLogin({ user: login })]) {
      await expectRefused(login, other.code, WRONG)
      expect(await other.isVerified()).to.equal(false)
    }
    expect(login.events('email_verification_rejected', 'wrong_code')).to.have.length(2)
    await codeStillWorks(login)
  })

  /** The login is over, also for the right code, and as the same request again; a new one is as good as any. */
  async function isOverForGood(login: Person) {
    expectMode(await login.types(), 400, 'ended')
    await h.follow(login.agent, await login.agent.get(login.request.url))
    expectMode(await postLogin(h, login.agent, login), 400, 'ended')
    expectMode(await login.types(), 400, 'ended')
    expect(await login.isVerified()).to.equal(false)
    expect(h.sessionId(login.agent)).to.equal(undefined)
    const next = await h.blockedLogin({ user: login })
    expect(next.code).to.not.equal(login.code)
    await codeStillWorks(next)
  }

  it('may be wrong five times; then the login is over, also for the right one, and as the same request again', async () => {
    const login = await h.blockedLogin()
    await guesses(login, 4)
    expectMode(await login.types(wrongCode(login.code)), 400, 'ended')
    await isOverForGood(login)
    expect(login.mailCount()).to.equal(2)
  })

  it('is compared 20 times an hour and 100 times in 30 days for a mailbox, over all its accounts; the pages say until when, and the link works', async () => {
    const name = `shared-${Date.now()}`
    const login = (tag = '') => loginAt(`${name}${tag}@users.example`)
    const guess20 = async () => {
      for (const tag of ['', '+tag', '', '+tag', '']) await guesses(await login(tag), 4)
    }
    await guess20()
    let honest = await login('+tag')
    await expectRefused(honest, honest.code, 'You can enter a code again in 60 minutes')
    await h.put(CAREFUL)
    const page = await honest.opensElsewhere()
    expect(codeOn(page)).to.equal(honest.code)
    expect(page.text).to.include('Codes work again in 60 minutes')
    await honest.stillGetsIn()
    for (let hour = 1; hour < 5; hour += 1) {
      await moveTime(HOUR_MS)
      await guess20()
    }
    await moveTime(HOUR_MS)
    honest = await login()
    await expectRefused(honest, honest.code, 'in 30 days')
    await reset(honest)
    const before = honest.mailCount()
    honest.blocked = await honest.signsIn('a brand new password')
    const { mail } = await honest.mail(before + 1)
    expect((await honest.types(codeIn(mail))).location).to.include('code=')
    await moveTime(30 * DAY_MS)
    await h.put({ email_link_confirmation: 'off' })
  })

  it('counts tries at all spellings of an address, and a reset gives back those at its own mailbox, with any tag', async () => {
    const name = `s.p.${Math.floor(Date.now())}`
    const [victim, eve] = [`${name}.x@users.example`, `${name}x@users.example`]
    for (const tag of ['', '+1', '+2', '+3', '+4'])
      await guesses(await loginAt(victim.replace('@', `${tag}@`)), 4)
    const refused = await loginAt(victim)
    await expectRefused(refused, refused.code, 'You can enter a code again')
    await reset(await loginAt(eve))
    await expectRefused(refused, refused.code, 'You can enter a code again')
    await reset(refused)
    await codeStillWorks(await loginAt(`${name}.x+5@users.example`))
  })

  it('gives a right one back: a person who signs in often is never stopped', async () => {
    const user = await h.addUnverified()
    for (let time = 0; time < 22; time += 1) {
      await codeStillWorks(await h.blockedLogin({ user }))
      await user.becomes({ emailVerified: false })
    }
  })

  it('verifies nothing once the account is disabled, gone, or has another address', async () => {
    for (const change of [
      (login: Person) => login.becomes({ disabled: true }),
      (login: Person) => login.becomes({ email: `new-${login.id}@users.example` }),
      (login: Person) => login.isDeleted(),
    ]) {
      const login = await h.blockedLogin()
      await change(login)
      expectMode(await login.types(), 400, 'ended')
      await login.getsNothing()
    }
    await codeStillWorks(await h.blockedLogin())
  })

  it('verifies nothing once its mail was disowned, also at the same moment, and its login stays over', async () => {
    for (const isAtOnce of [false, true]) {
      const login = await h.blockedLogin()
      const reported = async () =>
        expect((await disown(await login.notMeLink())).mode).to.equal('stopped')
      if (isAtOnce) beforeFirst(h.users, 'markEmailVerified', reported)
      else await reported()
      await isOverForGood(login)
    }
  })

  const HOST_LOGINS: Record<string, FinishLogin> = {
    finishLogin: finish,
    blockUnverified: async (...login) =>
      void expect(await h.flows.blockUnverified(...login)).to.equal(true),
    async decideLogin(req, res, login) {
      const decision = await h.flows.decideLogin(req, res, login)
      const mode = 'blocked' in decision ? decision.blocked.reason : 'goes on'
      res.writeHead(403).end(`<main data-mode="${mode}"></main>`)
    },
  }
  for (const [name, call] of Object.entries(HOST_LOGINS)) {
    it(`needs a login that waits, and by ${name} no login waits that another site sent`, async () => {
      const user = await h.addUnverified()
      const form = { username: user.username, password: PASSWORD }
      for (const headers of [
        { 'sec-fetch-site': 'cross-site' },
        { 'sec-fetch-site': 'same-site', origin: h.oauthUrl },
        { origin: 'https://evil.example' },
        { origin: 'null' },
      ]) {
        await user.starts()
        hostLogin = call
        const refused = await user.agent.post(`${h.oauthUrl}/login`, form, headers)
        hostLogin = finish
        expect([refused.status, refused.mode]).to.deep.equal([403, 'refused'])
        expect(refused.headers.getSetCookie().join()).to.not.include('account_flows_browser=')
      }
      expect(user.mailCount()).to.equal(0)
      await codeStillWorks(await h.blockedLogin({ user }))
    })
  }
})

describe('A login that is checked while its account verifies its address', () => {
  let meanwhile = async () => {}
  const h = suiteHarness({
    async finishLogin(...login) {
      await meanwhile()
      await h.flows.finishLogin(...login)
    },
  })

  it('is not finished by its link, in its own browser, where the address is changed in that very moment (RACE-06)', async () => {
    const login = await h.blockedLogin()
    const isChanged = () => login.becomes({ email: `new-${login.email}` })
    beforeFirst(h.users, 'markEmailVerified', isChanged)
    await login.opensLink()
    await login.sees('verify-email', 'expired', 400)
    await login.getsNothing()
    await (await h.blockedLogin()).stillGetsIn()
  })

  it('does not go on by its button, pressed in that very moment', async () => {
    const left = await h.blockedLogin()
    const own = await h.blockedLogin({ user: left })
    beforeFirst(h.users, 'findById', async () => own.comesBack(await own.types()))
    expectMode(await left.goesOn(), 400, 'ended')
    expect(h.sessionId(left.agent)).to.equal(undefined)
  })

  it('is over while another login of the account verifies the address, and so is one that begins in that moment', async () => {
    const left = await h.blockedLogin()
    const login = await h.blockedLogin({ user: left })
    const begun: Person[] = []
    const around = (mark: typeof h.users.markEmailVerified): typeof mark => {
      return async (...of) => {
        begun.push(await h.blockedLogin({ user: left }))
        const isFirst = await mark(...of)
        expectMode(await left.goesOn(), 400, 'ended')
        return isFirst
      }
    }
    const answer = await instead(h.users, 'markEmailVerified', around, () => login.types())
    await login.comesBack(answer)
    expect(begun).to.have.length(1)
    for (const each of [left, ...begun]) expectMode(await each.goesOn(), 400, 'ended')
  })

  it('leaves no code to whoever opened the link elsewhere, where it is cancelled in that moment (VER-25)', async () => {
    const login = await h.blockedLogin()
    beforeFirst(h.users, 'markEmailVerified', () => login.goesOn({ action: 'cancel' }))
    const elsewhere = login.in()
    await elsewhere.isOnlyVerified(await elsewhere.opensLink())
    for (const over of [await login.reloads(), await login.goesOn()]) expectMode(over, 400, 'ended')
    const another = await h.blockedLogin()
    await another.comesBack(await another.opensElsewhere())
  })

  it('waits for nothing and goes nowhere, and the next one is as good as any', async () => {
    const own = await h.blockedLogin()
    meanwhile = async () => {
      meanwhile = async () => {}
      await own.comesBack(await own.types())
    }
    const late = own.in()
    expectMode(await late.signsIn(), 400, 'ended')
    expect(h.sessionId(late.agent)).to.equal(undefined)
    expect(own.mailCount()).to.equal(1)
    expect((await late.signsIn()).location).to.include('code=')
  })
})

/** Somebody made an account with the address of another person, knows its password, and waits. */
onEachStore(
  'A login of a stranger that waits for the owner of the mailbox (VER-26)',
  (technology) => {
    const h = suiteHarness({ technology, settings: CAREFUL })

    it('gets nothing by the link that the owner opens, anywhere and often', async () => {
      const attack = await h.blockedLogin()
      const victim = attack.in()
      for (const _time of [1, 2]) expectMode(await victim.opensLink(), 200, 'elsewhere')
      const own = await h.blockedLogin({ agent: victim.agent })
      expectMode(await victim.opensLink(), 200, 'elsewhere')
      for (const answer of [await attack.goesOn(), await attack.reloads()])
        await attack.getsNothing(answer)
      await own.comesBack(await own.types())
    })

    it('is ended by the owner who signs in and verifies, before or while that happens', async () => {
      const user = await h.addUnverified()
      const attacks: Person[] = []
      while (attacks.length < 4) attacks.push(await h.blockedLogin({ user }))
      const own = await h.blockedLogin({ user })
      const pressed = attacks.flatMap((attack) => Array.from({ length: 5 }, () => attack.goesOn()))
      const [answer, ...others] = await Promise.all([own.types(), ...pressed])
      await own.comesBack(answer)
      expect(others.map(({ location }) => location)).to.deep.equal(others.map(() => undefined))
      for (const attack of attacks) {
        expectMode(await attack.goesOn(), 400, 'ended')
        expect(h.sessionId(attack.agent)).to.equal(undefined)
      }
    })

    it('has five guesses, also of 100 that are sent at once', async () => {
      const attack = await h.blockedLogin()
      const guesses = Array.from({ length: 100 }, (_, at) =>
        attack.types(wrongCode(attack.code, at)),
      )
      const answers = await Promise.all(guesses)
      const compared = answers.filter(({ text }) => text.includes(WRONG))
      expect(compared.length).to.be.at.most(4)
      expectMode(await attack.types(), 400, 'ended')
      for (const answer of [await attack.goesOn(), await attack.reloads()])
        await attack.getsNothing(answer)
      const honest = await h.blockedLogin({ user: attack })
      await honest.comesBack(await honest.types())
    })

    it('finishes once where the code is sent twice at once, or with its link', async () => {
      for (const isByLink of [false, true]) {
        const login = await h.blockedLogin()
        const other = isByLink ? login.opensLink() : login.types()
        const answers = await Promise.all([login.types(), other])
        const [redirect, ...more] = answers.filter(({ location }) => location !== undefined)
        expect(more).to.deep.equal([])
        await login.comesBack(redirect ?? login.blocked)
      }
    })
  },
)

describeWithMongo('The code of a login that was mailed, typed wrong and right [full]', () => {
  const lines: string[] = []
  let answer: MailAnswer = 'take'
  const h = suiteHarness({
    technology: 'mongodb',
    settings: CAREFUL,
    flows: { log: (...line) => lines.push(JSON.stringify(line)) },
    mail: { answer: () => answer },
  })
  const admin = suiteAdmin(h)

  it('is in no collection, log, event or answer of the admin API, nor are its hashes, and HEAD and support see none (LOG-01)', async () => {
    const logins = [await h.blockedLogin(), await h.blockedLogin()]
    const seen: unknown[] = []
    for (const login of logins) {
      const { username: user, id: account_id, link } = login
      answer = 'refuse'
      const { mail_id } = await admin.sendVerification({ user })
      await outcomeOf(h, mail_id, 'dead')
      answer = 'take'
      const { request, get } = createUserAgent()
      const pages = [await request('HEAD', link), await get(link, { 'sec-purpose': 'prefetch' })]
      seen.push(pages.map(({ text, headers }) => [text, ...headers]))
      await login.getsNothing(await login.types(wrongCode(login.code)))
      seen.push(
        await dump(h),
        await admin.userStatus({ user }),
        await admin.listOutbox({ account_id }),
        await admin.showMail({ mail_id }),
        await admin.listAudit({ account_id }),
        await admin.explainLink({ link }),
      )
      await login.comesBack(await login.types())
      seen.push(await dump(h), await admin.userStatus({ user }))
    }
    // One of them may be in there by chance.
    const hasBoth = (text: string) =>
      logins.every(({ code }) =>
        [code, sha256(code)].some((form) => new RegExp(`(?<!\\d)${form}(?!\\d)`).test(text)),
      )
    expect(hasBoth(JSON.stringify(h.mail.mails))).to.equal(true)
    expect(hasBoth(JSON.stringify([seen, lines]))).to.equal(false)
    expect(lines.join()).to.include('mail')
  })
})

describe('The code of a login whose mail was deferred once (3.2)', () => {
  let answer: MailAnswer = 'take'
  const h = suiteHarness({ settings: CAREFUL, mail: { answer: () => answer } })
  const MEANWHILE = {
    'nobody asks': async () => {},
    'a stranger asks by name': ({ username }: Person) => h.resend(username),
    'a stranger signs in': (login: Person) => login.in().signsIn(),
  }
  for (const [what, meanwhile] of Object.entries(MEANWHILE)) {
    it(`is mailed all the same, though ${what} meanwhile`, async () => {
      const login = await h.addUnverified()
      const { defer } = h.mail.answered
      answer = 'defer'
      login.blocked = await login.signsIn()
      await eventually('it is deferred', () => h.mail.answered.defer > defer)
      answer = 'take'
      await meanwhile(login)
      if (what !== 'nobody asks') await login.mail(1)
      await moveTime(600_000)
      await h.isIdle()
      const led = []
      for (let count = 1; count <= login.mailCount(); count += 1) {
        const answer = await login.types(codeIn((await login.mail(count)).mail))
        led.push(answer.location !== undefined)
      }
      expect(led).to.include(true)
    })
  }
})

describe('The setting email_link_confirmation, other_browser', () => {
  const h = suiteHarness()

  const setMode = (email_link_confirmation: string) => h.put({ email_link_confirmation })

  before(() => setMode('other_browser'))

  it('finishes the login that waits where the link is opened: its own, each with its own request', async () => {
    const agent = createUserAgent()
    const first = await h.blockedLogin({ agent })
    const second = await h.blockedLogin({ agent })
    for (const login of [second, first]) {
      await login.comesBack(await agent.get(login.link))
      expectMode(await login.reloads(), 200, 'signed_in')
    }
  })

  it('otherwise the newest one of the account there, never with the parameters of the link; so by a link that support sent, and that no login waits for', async () => {
    const elsewhere = await h.blockedLogin()
    const agent = createUserAgent()
    const older = await h.blockedLogin({ user: elsewhere, agent })
    const extra = { state: 'of the newest' }
    const newest = await h.blockedLogin({ user: elsewhere, agent, extra })
    await newest.comesBack(await agent.get(elsewhere.link))
    for (const each of [elsewhere, older]) expectMode(await each.goesOn(), 400, 'ended')
    const login = await h.blockedLogin()
    await login.asksAgain()
    await login.stillGetsIn()
  })

  it('does not finish a login of another account that waits in the browser', async () => {
    const [login, own] = [await h.blockedLogin(), await h.blockedLogin()]
    expect(codeOn(await own.agent.get(login.link))).to.equal(login.code)
    expect(await login.isVerified()).to.equal(false)
    for (const { agent } of [login, own]) expect(h.sessionId(agent)).to.equal(undefined)
    await own.stillGetsIn()
  })

  describe('in any other browser', () => {
    let login: Person
    let other: UserAgent

    beforeEach(async () => {
      login = await h.blockedLogin()
      other = createUserAgent()
    })

    async function expectNoCode(person: Person, page: Answer) {
      expectMode(page, 200, 'elsewhere')
      expect(codeOn(page)).to.equal(undefined)
      expect(await person.isVerified()).to.equal(false)
    }

    it('verifies nothing, and shows the code with the account, the client and the time (VER-03, VER-04)', async () => {
      for (const agent of [other, other, (await h.addSignedIn()).agent]) {
        const session = h.sessionId(agent)
        const page = await agent.get(login.link)
        expectMode(page, 200, 'elsewhere')
        expect(codeOn(page)).to.equal(login.code)
        const facts = [...page.text.matchAll(/<li>([^<]*)<\/li>/g)].map(([, fact]) => fact)
        expect(facts.slice(0, 2)).to.deep.equal([`Account: ${login.username}`, 'App: The App'])
        expect(facts[2]).to.include(String(new Date().getUTCFullYear())).and.to.include('UTC')
        expect(page.text).to.include('Never tell this code').and.to.not.include('<form')
        expect(setsSession(page)).to.equal(false)
        expect(h.sessionId(agent)).to.equal(session)
        expect(await login.isVerified()).to.equal(false)
      }
      await login.comesBack(await login.types())
      const [event] = login.events('email_verification_completed')
      expect(event?.clientId).to.equal('app')
      expectExpired(await other.get(login.link))
    })

    it('shows no code once its login waits no more, and says to sign in again, nor for a link that no login waits for', async () => {
      for (const end of [
        () => login.goesOn({ action: 'cancel' }),
        async () => h.store.pendingLogins.change({ id: login.loginId() }, { isVoid: true }),
        async () => {
          await h.put({ require_email_verification: 'false' })
          expect((await login.goesOn()).location).to.include('code=')
          await h.put({ require_email_verification: 'true' })
        },
      ]) {
        login = await h.blockedLogin()
        await end()
        const page = await other.get(login.link)
        await expectNoCode(login, page)
        expect(page.text).to.include('Sign in again where you want to be signed in')
      }
      const next = await h.blockedLogin({ user: login })
      await next.comesBack(await next.types())
      const user = await h.addUnverified()
      await expectNoCode(user, await other.get(await user.asksAgain(SERVER)))
    })

    it('shows nothing for a link that is not genuine, or was changed on its way, and goes by the mode that is in force when it is opened', async () => {
      for (const [name, value] of [
        ['state', 'evil'],
        ['token', 'A'.repeat(43)],
        ['authorize_sig', 'x'],
      ] as const) {
        const url = new URL(login.link)
        url.searchParams.set(name, value)
        const page = await other.get(url)
        expectExpired(page)
        expect(page.text).to.not.include(login.code)
      }
      expectMode(await other.get(login.link), 200, 'elsewhere')
      await setMode('off')
      const answer = await other.get(login.link)
      await setMode('other_browser')
      await login.comesBack(answer)
      expect(await h.accountOf(other)).to.equal(login.id)
    })
  })
})
