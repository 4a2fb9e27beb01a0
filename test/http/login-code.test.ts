import { expect } from 'chai'
import { outcomeOf, suiteAdmin, withDeleted } from '../support/admin.ts'
import { eventsOf } from '../support/blocked-login.ts'
import { onBothStores } from '../support/both-stores.ts'
import { dump, sha256 } from '../support/observe.ts'
import { press } from '../support/page-forms.ts'
import { PASSWORD, type FinishLogin, type Harness } from '../support/harness.ts'
import type { MailAnswer } from '../support/mail-server.ts'
import { describeWithMongo } from '../support/mongod.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { moveTime } from '../support/time.ts'
import { createUserAgent } from '../support/user-agent.ts'
import { expectMode, typeCode, windowOf } from '../support/waiting-window.ts'
import {
  addUnverified,
  blockedLogin,
  codeIn,
  sessionId,
  setsSession,
  type Person,
  codeOn,
  wrongCode,
} from '../support/person.ts'

const CAREFUL = { email_link_confirmation: 'other_browser' }
const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

const inDigits = (zero: number) => (code: string) =>
  [...code].map((digit) => String.fromCodePoint(zero + Number(digit))).join('')
const WRITTEN = {
  blanks: (code: string) => ` ${code.slice(0, 3)}\u00A0${code.slice(3)}\t`,
  hyphens: (code: string) => `${code.slice(0, 3)}-${code.slice(3, 5)}\u2011${code.slice(5)}`,
  'marks of direction': (code: string) => `\u2067${code}\u2069\u200F`,
  Arabic: inDigits(0x660),
  Persian: inDigits(0x6f0),
  Devanagari: inDigits(0x966),
  wide: inDigits(0xff10),
}

describe('The code of a login that waits (3.2)', () => {
  const deleted = new Set<string>()
  const finish: FinishLogin = (...login) => h.flows.finishLogin(...login)
  let hostLogin = finish
  const h: Harness = suiteHarness({
    flows: { users: withDeleted(() => h.users, deleted) },
    finishLogin: (...login) => hostLogin(...login),
  })

  async function expectRefused(login: Person, code: string, words: string) {
    const page = await login.types(code)
    expectMode(page, 400, 'blocked')
    expect(page.text).to.include(words)
    await login.getsNothing(page)
  }

  for (const email_link_confirmation of ['off', 'other_browser']) {
    it(`${email_link_confirmation}: typed where the login waits, verifies and finishes the very request of the client, once`, async () => {
      await h.put({ email_link_confirmation })
      const login = await blockedLogin(h)
      const tokens = await login.comesBack(await login.types(login.code))
      expect(tokens.claims()?.['nonce']).to.equal(login.request.nonce)
      expectMode(await login.types(login.code), 200, 'signed_in')
      const type = 'email_verification_completed' as const
      const events = await eventsOf(h, { type, accountId: login.id })
      expect(events.map(({ clientId }) => clientId)).to.deep.equal(['app'])
      expectMode(await createUserAgent().get(login.link), 400, 'expired')
    })
  }

  it('is in both parts of the mail, with the account, the client and the time, and nowhere that a locked phone shows', async () => {
    const login = await blockedLogin(h)
    const found = h.mail.mails.findLast(({ to }) => to.includes(login.email ?? ''))
    const { subject = '', text = '', html } = found?.mail ?? {}
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
    const login = await blockedLogin(h)
    const { login: _, ...carried } = login.blocked.hidden
    await login.asksAgain(carried)
    const codes = h.mail.mails
      .filter(({ to }) => to.includes(login.email ?? ''))
      .map(({ mail }) => codeIn(mail))
    expect(codes).to.deep.equal([login.code, login.code])
    const others = [await blockedLogin(h, { user: login }), await blockedLogin(h)]
    expect(new Set([login, ...others].map(({ code }) => code)).size).to.equal(3)
    await login.comesBack(await login.types(login.code))
  })

  it('is that of the page which asks for another mail, also where a newer login has the same parameters', async () => {
    const user = await addUnverified(h)
    const extra = { state: 'the same' }
    const login = await blockedLogin(h, { user, extra })
    const newer = await blockedLogin(h, { user, extra })
    const before = user.mailCount()
    expectMode(await press(login.agent, login.blocked, '/resend-verification'), 200, 'sent')
    const { mail } = await h.mail.mailTo(user.email ?? '', before + 1)
    expect(codeIn(mail)).to.equal(login.code).and.not.equal(newer.code)
    // Nobody logged in by that.
    const type = 'email_login_blocked' as const
    expect(await eventsOf(h, { type, accountId: user.id }, 2)).to.have.length(2)
    // Another name on that page asks for a mail to that one, which has no code of this login.
    const other = await addUnverified(h)
    const fields = { ...login.blocked.hidden, username: other.username }
    await login.agent.post(`${h.oauthUrl}/resend-verification`, fields)
    const named = await h.mail.mailTo(other.email ?? '')
    expect(codeIn(named.mail)).to.equal(undefined)
    await login.comesBack(await login.types(login.code))
  })

  it('is in no mail for no login that waits', async () => {
    const user = await addUnverified(h)
    const left = await blockedLogin(h, { user })
    await left.goesOn({ action: 'cancel' })
    const { login: _, ...carried } = left.blocked.hidden
    for (const fields of [{}, carried]) {
      const before = user.mailCount()
      await user.asksAgain(fields)
      const mails = h.mail.mails.filter(({ to }) => to.includes(user.email ?? ''))
      expect(codeIn(mails[before]?.mail ?? {})).to.equal(undefined)
    }
  })

  it('is read with blanks, hyphens and invisible marks, and in the digits of other scripts', async () => {
    for (const written of Object.values(WRITTEN)) {
      const login = await blockedLogin(h)
      await login.comesBack(await login.types(written(login.code)))
    }
  })

  it('of a wrong shape is no try', async () => {
    const login = await blockedLogin(h)
    for (const typed of [
      '1',
      '12345',
      '1234567',
      'abcdef',
      '12a456',
      '-',
      '１２３',
      '0x1234',
      '½23456',
    ])
      await expectRefused(login, typed, 'six digits')
    for (const blank of ['', ' ', '\u00A0']) expectMode(await login.types(blank), 200, 'blocked')
    for (let guess = 0; guess < 4; guess += 1)
      await expectRefused(login, wrongCode(login.code, guess), 'That code isn’t right')
    await login.comesBack(await login.types(login.code))
  })

  it('of another account or another login is a wrong one', async () => {
    const login = await blockedLogin(h)
    for (const other of [await blockedLogin(h), await blockedLogin(h, { user: login })]) {
      await expectRefused(login, other.code, 'That code isn’t right')
      expect(await other.isVerified()).to.equal(false)
    }
    const events = await eventsOf(
      h,
      { type: 'email_verification_rejected', accountId: login.id },
      2,
    )
    expect(events.map(({ reason }) => reason)).to.deep.equal(['wrong_code', 'wrong_code'])
    await login.comesBack(await login.types(login.code))
  })

  it('may be wrong five times; then the login is over, also for the right one, and as the same request again', async () => {
    const login = await blockedLogin(h)
    const { agent, request, user } = login
    for (let guess = 0; guess < 4; guess += 1)
      await expectRefused(login, wrongCode(login.code, guess), 'That code isn’t right')
    expectMode(await login.types(wrongCode(login.code)), 400, 'ended')
    expectMode(await login.types(login.code), 400, 'ended')
    await h.follow(agent, await agent.get(request.url))
    const form = { username: user.username, password: PASSWORD }
    const blocked = await agent.post(`${h.oauthUrl}/login`, form)
    expectMode(blocked, 400, 'ended')
    expectMode(await login.types(login.code), 400, 'ended')
    expect(user.mailCount()).to.equal(1)
    expect(await user.isVerified()).to.equal(false)
    const next = await blockedLogin(h, { user })
    await next.comesBack(await next.types(next.code))
  })

  it('is compared 20 times an hour and 100 times in 30 days for a mailbox, over all its accounts; the pages say until when, and the link works', async () => {
    const name = `shared-${Date.now()}`
    let made = 0
    const login = async () => {
      made += 1
      const email = `${name}${made % 2 ? '' : '+tag'}@users.example`
      return blockedLogin(h, { user: await addUnverified(h, { email }) })
    }
    const guessed = async (wrong: number) => {
      for (let left = wrong; left > 0; left -= 4) {
        const each = await login()
        for (let guess = 0; guess < Math.min(4, left); guess += 1)
          await expectRefused(each, wrongCode(each.code, guess), 'That code isn’t right')
      }
    }
    await h.put({ mails_per_account_per_hour: '0' })
    await guessed(20)
    let honest = await login()
    await expectRefused(honest, honest.code, 'You can enter a code again in 60 minutes')
    await h.put(CAREFUL)
    const page = await honest.opensElsewhere()
    expect(codeOn(page)).to.equal(honest.code)
    expect(page.text).to.include('Codes work again in 60 minutes')
    await honest.comesBack(await honest.agent.get(honest.link))
    for (let hour = 1; hour < 5; hour += 1) {
      await moveTime(HOUR_MS)
      await guessed(20)
    }
    await moveTime(HOUR_MS)
    honest = await login()
    await expectRefused(honest, honest.code, 'in 30 days')
    const reset = await h.reset(await honest.forgets(), 'a brand new password')
    expect(reset.mode).to.equal('done')
    const { user, agent } = honest
    const after = await h.follow(agent, await agent.get((await h.party.begin()).url))
    expect(after.page).to.equal('login')
    const form = { username: user.username, password: 'a brand new password' }
    const before = user.mailCount()
    const blocked = await agent.post(`${h.oauthUrl}/login`, form)
    const { mail } = await h.mail.mailTo(user.email ?? '', before + 1)
    expect((await typeCode(h, { agent, blocked }, codeIn(mail) ?? '')).location).to.include('code=')
    await moveTime(30 * DAY_MS)
    await h.put({ mails_per_account_per_hour: '10', email_link_confirmation: 'off' })
  })

  it('counts tries at all spellings of an address, and a reset gives back those at its own mailbox, with any tag', async () => {
    const spelled = (email: string) =>
      addUnverified(h, { email }).then((user) => blockedLogin(h, { user }))
    const guess = async (login: Person) => {
      for (const wrong of [0, 1, 2, 3])
        await expectRefused(login, wrongCode(login.code, wrong), 'That code isn’t right')
    }
    const name = `s.p.${Math.floor(Date.now())}`
    const [victim, eve] = [`${name}.x@users.example`, `${name}x@users.example`]
    await h.put({ mails_per_account_per_hour: '0' })
    for (const tag of ['', '+1', '+2', '+3', '+4'])
      await guess(await spelled(victim.replace('@', `${tag}@`)))
    const refused = await spelled(victim)
    await expectRefused(refused, refused.code, 'You can enter a code again')
    const { user } = await spelled(eve)
    expect((await h.reset(await user.forgets(), 'a brand new password')).mode).to.equal('done')
    await expectRefused(refused, refused.code, 'You can enter a code again')
    const reset = await h.reset(await refused.forgets(), 'a brand new password')
    expect(reset.mode).to.equal('done')
    const next = await spelled(`${name}.x+5@users.example`)
    await next.comesBack(await next.types(next.code))
    await h.put({ mails_per_account_per_hour: '10' })
  })

  it('gives a right one back: a person who signs in often is never stopped', async () => {
    const user = await addUnverified(h)
    await h.put({ mails_per_account_per_hour: '0' })
    for (let time = 0; time < 22; time += 1) {
      const login = await blockedLogin(h, { user })
      await login.comesBack(await login.types(login.code))
      await user.becomes({ emailVerified: false })
    }
    await h.put({ mails_per_account_per_hour: '10' })
  })

  it('verifies nothing once the account is disabled, gone, or has another address', async () => {
    const changes: ((login: Person) => unknown)[] = [
      ({ user }) => user.becomes({ disabled: true }),
      ({ user }) => user.becomes({ email: `new-${user.id}@users.example` }),
      ({ user }) => deleted.add(user.id),
    ]
    for (const change of changes) {
      const login = await blockedLogin(h)
      await change(login)
      expectMode(await login.types(login.code), 400, 'ended')
      expect((await h.users.findById(login.id))?.emailVerified).to.equal(false)
      expect(sessionId(h, login.agent)).to.equal(undefined)
    }
    const honest = await blockedLogin(h)
    await honest.comesBack(await honest.types(honest.code))
  })

  it('verifies nothing once its mail was disowned, also at the same moment, and its login stays over', async () => {
    for (const isAtOnce of [false, true]) {
      const login = await blockedLogin(h)
      const { user, agent } = login
      const disown = async () => {
        const page = await press(agent, await agent.get(await user.notMeLink()), '/not-me')
        expect([page.status, page.mode]).to.deep.equal([200, 'stopped'])
      }
      const { markEmailVerified } = h.users
      if (isAtOnce) {
        h.users.markEmailVerified = async (id, email) => {
          h.users.markEmailVerified = markEmailVerified
          await disown()
          return markEmailVerified(id, email)
        }
      } else await disown()
      expectMode(await login.types(login.code), 400, 'ended')
      h.users.markEmailVerified = markEmailVerified
      expect(await user.isVerified()).to.equal(false)
      expect(sessionId(h, agent)).to.equal(undefined)

      await h.follow(agent, await agent.get(login.request.url))
      const form = { username: user.username, password: PASSWORD }
      const blocked = await agent.post(`${h.oauthUrl}/login`, form)
      expectMode(blocked, 400, 'ended')
      expectMode(await login.types(login.code), 400, 'ended')
      const next = await blockedLogin(h, { user })
      expect(next.code).to.not.equal(login.code)
      await next.comesBack(await next.types(next.code))
    }
  })

  it('is of no use in another browser, which learns nothing', async () => {
    const login = await blockedLogin(h)
    const window = login.in(createUserAgent())
    expectMode(await window.goOn({ code: login.code }), 400, 'ended')
    expect(await login.isVerified()).to.equal(false)
    await login.comesBack(await login.types(login.code))
  })

  it('of a form of another site is refused', async () => {
    const login = await blockedLogin(h)
    const foreign = { 'sec-fetch-site': 'cross-site' }
    expect((await login.types(login.code, foreign)).status).to.equal(403)
    expect(await login.isVerified()).to.equal(false)
    await login.comesBack(await login.types(login.code))
  })

  const HOST_LOGINS: Record<string, FinishLogin> = {
    finishLogin: finish,
    async blockUnverified(...login) {
      expect(await h.flows.blockUnverified(...login)).to.equal(true)
    },
    async decideLogin(req, res, login) {
      const decision = await h.flows.decideLogin(req, res, login)
      const mode = 'blocked' in decision ? decision.blocked.reason : 'goes on'
      res.writeHead(403).end(`<main data-mode="${mode}"></main>`)
    },
  }
  for (const [name, call] of Object.entries(HOST_LOGINS)) {
    it(`needs a login that waits, and by ${name} no login waits that another site sent`, async () => {
      const user = await addUnverified(h)
      const form = { username: user.username, password: PASSWORD }
      for (const headers of [
        { 'sec-fetch-site': 'cross-site' },
        { 'sec-fetch-site': 'same-site', origin: h.oauthUrl },
        { origin: 'https://evil.example' },
        { origin: 'null' },
      ]) {
        const agent = createUserAgent()
        await h.follow(agent, await agent.get((await h.party.begin()).url))
        hostLogin = call
        const refused = await agent.post(`${h.oauthUrl}/login`, form, headers)
        hostLogin = finish
        expect([refused.status, refused.mode]).to.deep.equal([403, 'refused'])
        expect(refused.headers.getSetCookie().join()).to.not.include('account_flows_browser=')
      }
      expect(user.mailCount()).to.equal(0)
      const honest = await blockedLogin(h, { user })
      await honest.comesBack(await honest.types(honest.code))
    })
  }
})

describe('A login that is checked while its account verifies its address', () => {
  let meanwhile = async () => {}
  const h = suiteHarness({
    async finishLogin(req, res, login) {
      await meanwhile()
      await h.flows.finishLogin(req, res, login)
    },
  })

  it('does not go on by its button, pressed in that very moment', async () => {
    const left = await blockedLogin(h)
    const own = await blockedLogin(h, { user: left })
    const { findById } = h.users
    h.users.findById = async (id) => {
      h.users.findById = findById
      await own.comesBack(await own.types(own.code))
      return findById(id)
    }
    expectMode(await left.goesOn(), 400, 'ended')
    h.users.findById = findById
    expect(sessionId(h, left.agent)).to.equal(undefined)
  })

  it('waits for nothing and goes nowhere, and the next one is as good as any', async () => {
    const own = await blockedLogin(h)
    const { user } = own
    meanwhile = async () => {
      meanwhile = async () => {}
      await own.comesBack(await own.types(own.code))
    }
    const agent = createUserAgent()
    const { url } = await h.party.begin()
    const page = await h.login(agent, url, user.username)
    expectMode(page, 400, 'ended')
    expect(sessionId(h, agent)).to.equal(undefined)
    expect(user.mailCount()).to.equal(1)
    expect((await h.signIn(agent, user.username)).location).to.include('code=')
  })
})

/** Somebody made an account with the address of another person, knows its password, and waits. */
onBothStores(
  'A login of a stranger that waits for the owner of the mailbox (VER-26)',
  (technology) => {
    const h = suiteHarness({ technology, settings: CAREFUL })

    /** No code and no session, however it is asked for. */
    async function expectNothing(attack: Person) {
      const window = windowOf(h, attack)
      for (const ask of [window.goOn(), window.reload()]) {
        const answer = await ask
        expect([answer.location, setsSession(answer)]).to.deep.equal([undefined, false])
      }
      expect(sessionId(h, attack.agent)).to.equal(undefined)
      expect(await attack.isVerified()).to.equal(false)
    }

    it('gets nothing by the link that the owner opens, anywhere and often', async () => {
      const attack = await blockedLogin(h)
      const victim = createUserAgent()
      for (const _time of [1, 2]) expectMode(await victim.get(attack.link), 200, 'elsewhere')
      const own = await blockedLogin(h, { agent: victim })
      expectMode(await victim.get(attack.link), 200, 'elsewhere')
      await expectNothing(attack)
      await own.comesBack(await own.types(own.code))
    })

    it('is ended by the owner who signs in and verifies, before or while that happens', async () => {
      const attacks = []
      const user = await addUnverified(h)
      for (let made = 0; made < 4; made += 1) attacks.push(await blockedLogin(h, { user }))
      const own = await blockedLogin(h, { user })
      const pressed = attacks.flatMap((attack) => Array.from({ length: 5 }, () => attack.goesOn()))
      const [answer, ...others] = await Promise.all([own.types(own.code), ...pressed])
      await own.comesBack(answer)
      expect(others.map(({ location }) => location)).to.deep.equal(others.map(() => undefined))
      for (const attack of attacks) {
        expectMode(await attack.goesOn(), 400, 'ended')
        expect(sessionId(h, attack.agent)).to.equal(undefined)
      }
    })

    it('has five guesses, also of 100 that are sent at once', async () => {
      const attack = await blockedLogin(h)
      const guesses = Array.from({ length: 100 }, (_, at) => wrongCode(attack.code, at))
      const answers = await Promise.all(guesses.map((code) => attack.types(code)))
      const compared = answers.filter(({ text }) => text.includes('That code isn’t right'))
      expect(compared.length).to.be.at.most(4)
      expectMode(await attack.types(attack.code), 400, 'ended')
      await expectNothing(attack)
      const honest = await blockedLogin(h, { user: attack })
      await honest.comesBack(await honest.types(honest.code))
    })

    it('finishes once where the code is sent twice at once, or with its link', async () => {
      for (const other of [
        (login: Person) => login.types(login.code),
        (login: Person) => login.agent.get(login.link),
      ]) {
        const login = await blockedLogin(h)
        const answers = await Promise.all([login.types(login.code), other(login)])
        const [redirect, ...more] = answers.filter(({ location }) => location !== undefined)
        expect(more).to.deep.equal([])
        await login.comesBack(redirect ?? login.blocked)
      }
    })
  },
)

onBothStores('1,000 guesses at once at 50 accounts of one mailbox [full]', (technology) => {
  const h = suiteHarness({ technology, settings: CAREFUL, flows: { trustedProxies: 1 } })

  it('from 100 addresses: 20 are compared, then no code of this mailbox for an hour; its links work, and codes of others', async function () {
    this.timeout(120_000)
    const email = 'guessed@users.example'
    const login = async () => blockedLogin(h, { user: await addUnverified(h, { email }) })
    const [owner, late, other] = [await login(), await login(), await blockedLogin(h)]
    const attacks: Person[] = []
    while (attacks.length < 50) attacks.push(await login())
    const guesses = Array.from({ length: 20 }, (_, guess) =>
      attacks.map((attack, at) => {
        const from = { 'x-forwarded-for': `192.0.2.${(guess * 50 + at) % 100}` }
        return attack.types(wrongCode(attack.code, guess), from)
      }),
    )
    await other.comesBack(await other.types(other.code))
    for (const { status, location } of await Promise.all(guesses.flat()))
      expect([status, location]).to.deep.equal([400, undefined])
    expect(await eventsOf(h, { reason: 'wrong_code' }, 20)).to.have.length(20)
    for (const { user } of attacks) expect(await user.isVerified()).to.equal(false)

    const refused = await owner.types(owner.code)
    expectMode(refused, 400, 'blocked')
    expect(refused.text).to.match(/enter a code again in (59|60) minutes/)
    await owner.getsNothing(refused)
    await owner.comesBack(await owner.agent.get(owner.link))
    await moveTime(HOUR_MS)
    // MongoDB keeps its own time.
    const anHourEarlier = [{ $set: { expire: { $subtract: ['$expire', HOUR_MS] } } }]
    await h.db?.collection('rate_limits').updateMany({}, anHourEarlier)
    await late.comesBack(await late.types(late.code))
  })
})

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
    const logins = [await blockedLogin(h), await blockedLogin(h)]
    const seen: unknown[] = []
    for (const login of logins) {
      const { user, link } = login
      answer = 'refuse'
      const { mail_id } = await admin.sendVerification({ user: user.username })
      await outcomeOf(h, mail_id, 'dead')
      answer = 'take'
      const { request, get } = createUserAgent()
      const pages = [await request('HEAD', link), await get(link, { 'sec-purpose': 'prefetch' })]
      seen.push(pages.map(({ text, headers }) => [text, ...headers]))
      await login.getsNothing(await login.types(wrongCode(login.code)))
      seen.push(
        await dump(h),
        await admin.userStatus({ user: user.username }),
        await admin.listOutbox({ account_id: user.id }),
        await admin.showMail({ mail_id }),
        await admin.listAudit({ account_id: user.id }),
        await admin.explainLink({ link }),
      )
      await login.comesBack(await login.types(login.code))
      seen.push(await dump(h), await admin.userStatus({ user: user.username }))
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
