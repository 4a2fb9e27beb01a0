import { randomBytes } from 'node:crypto'
import bcrypt from 'bcrypt'
import { expect } from 'chai'
import { setTimeout as delay } from 'node:timers/promises'
import { hashToken, newId, newToken } from '../../src/crypto/token.ts'
import type { MailKind } from '../../src/ports/index.ts'
import type { User } from '../../src/index.ts'
import { silently } from '../support/blocked-login.ts'
import { onBothStores } from '../support/both-stores.ts'
import { eventually } from '../support/eventually.ts'
import { expectPage } from '../support/expect-page.ts'
import { PASSWORD, startHarness, type Harness } from '../support/harness.ts'
import { choose } from '../support/invitations.ts'
import { isIdle } from '../support/jobs.ts'
import { describeWithMongo } from '../support/mongod.ts'
import { shapeOf } from '../support/observe.ts'
import { linksOf, press } from '../support/page-forms.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { moveTime } from '../support/time.ts'
import { createUserAgent } from '../support/user-agent.ts'
import {
  accountOf,
  addUnverified,
  addVerified,
  blockedLogin,
  type Person,
  addImported,
  disown,
  tokenOf,
  userWithLink,
} from '../support/person.ts'

const DAY_MS = 86_400_000
const STOLEN = 'the password of a thief'
const HONEST = 'the password of its owner'
const agent = createUserAgent()

const disowned = (h: Harness, user: Person) =>
  user.events('mail_disowned').map(({ details }) => [details.mail, details.password])

/** What a process does that dies once it has written. */
function dyingAfter(part: object, method: string): () => void {
  const write: unknown = Reflect.get(part, method)
  if (typeof write !== 'function') throw new TypeError(`there is no ${method}`)
  Reflect.set(part, method, async (...of: unknown[]) => {
    await Reflect.apply(write, part, of)
    throw new Error(`died after ${method}`)
  })
  return () => void Reflect.set(part, method, write)
}

function withResolvers() {
  let resolve = () => {}
  const promise = new Promise<void>((done) => (resolve = done))
  return { promise, resolve }
}

async function expectDeadReset(link: string) {
  expectPage(await agent.get(link), 400, 'reset-password', 'invalid')
}

onBothStores('"This wasn\'t me" of a mail (3.6)', (technology) => {
  const h = suiteHarness({
    technology,
    settings: { password_changed_email: 'true' },
    mayLogErrors: true,
  })

  /** A user whose password somebody reset by a mailed link, and the links of both mails. */
  async function stolen(changes: Partial<User> = {}) {
    const { user, link } = await userWithLink(h, changes)
    const ofReset = await user.notMeLink()
    const browser = createUserAgent()
    expect((await h.signIn(browser, user.username)).location).to.include('code=')
    expectPage(await h.reset(link, STOLEN), 200, 'reset-password', 'done')
    await h.mail.mailTo(user.email ?? '', 2)
    await isIdle(h)
    return { user, ofReset, ofNotice: await user.notMeLink() }
  }

  async function expectSecured({ user }: { user: Person }, thief = createUserAgent()) {
    expect(await user.hasPassword(STOLEN)).to.equal(false)
    expect((await silently(h, thief)).get('error')).to.equal('login_required')
    expect((await h.login(thief, (await h.party.begin()).url, user.username, STOLEN)).status)
      .to //
      .equal(401)
    await user.getsBackIn()
    const owner = createUserAgent()
    const { location } = await h.signIn(owner, user.username, 'an honest password')
    expect(location).to.include('code=')
    expect(await accountOf(h, owner)).to.equal(user.id)
  }

  it('of a reset mail voids its link, and ends the logins that wait; nothing else changes', async () => {
    const { user, link } = await userWithLink(h)
    const browser = createUserAgent()
    expect((await h.signIn(browser, user.username)).location).to.include('code=')
    const other = await userWithLink(h)
    const page = await disown(await user.notMeLink())
    expectPage(page, 200, 'not-me', 'stopped')
    expect(linksOf(page)).to.deep.equal([])
    await expectDeadReset(link)
    expectPage(await h.reset(link, STOLEN), 400, 'reset-password', 'invalid')
    expect(await user.hasPassword(PASSWORD)).to.equal(true)
    expect(disowned(h, user)).to.deep.equal([['password_reset', 'kept']])
    expect(user.events('sessions_ended')).to.deep.equal([])
    expect(await accountOf(h, browser)).to.equal(user.id)
    expectPage(await agent.get(other.link), 200, 'reset-password', 'form')
    await user.getsBackIn()
  })

  it('of a reset mail ends the login that waits, though another mail was sent for that', async () => {
    const login = await blockedLogin(h)
    await login.forgets()
    expectPage(await disown(await login.notMeLink()), 200, 'not-me', 'stopped')
    const waiting = { login: login.blocked.hidden['login'] ?? '' }
    const page = await login.agent.post(`${h.oauthUrl}/verify-email/waiting`, waiting)
    expectPage(page, 400, 'verify-email', 'ended')
    expect(disowned(h, login)).to.deep.equal([['password_reset', 'kept']])
  })

  it('of a reset mail voids one that is still in the outbox, too', async () => {
    const { user } = await userWithLink(h)
    const notMe = await user.notMeLink()
    await h.put({ mails_per_minute: '1' })
    try {
      await h.forgot(user.username)
      await eventually('it waits to be sent', async () =>
        (await h.store.outbox.requestsOf(user.id, 'password_reset')).some(
          ({ isResolved, isWaiting }) => isResolved && isWaiting,
        ),
      )
      expectPage(await disown(notMe), 200, 'not-me', 'stopped')
    } finally {
      await h.put({ mails_per_minute: '0' })
    }
    await isIdle(h)
    expect(user.mailCount()).to.equal(1)
  })

  it('of a verification mail ends the login that waits, and voids all its links', async () => {
    const login = await blockedLogin(h)
    const again = await login.asksAgain()
    expectPage(await disown(await login.notMeLink()), 200, 'not-me', 'stopped')
    for (const link of [login.link, again])
      expectPage(await login.agent.get(link), 400, 'verify-email', 'expired')
    const { login: id = '' } = login.blocked.hidden
    const waiting = { login: id, action: 'go' }
    const page = await login.agent.post(`${h.oauthUrl}/verify-email/waiting`, waiting)
    expectPage(page, 400, 'verify-email', 'ended')
    expect(await login.isVerified()).to.equal(false)
    expect(disowned(h, login)).to.deep.equal([['email_verification', 'kept']])
  })

  for (const [how, verify] of [
    ['link', (login: Person) => login.agent.get(login.link)],
    [
      'code',
      async (login: Person) => {
        const { mail } = await h.mail.mailTo(login.email ?? '')
        const code = /^\d{6}$/m.exec(mail.text ?? '')?.[0] ?? ''
        const form = { login: login.blocked.hidden['login'] ?? '', code, action: 'go' }
        return login.agent.post(`${h.oauthUrl}/verify-email/waiting`, form)
      },
    ],
  ] as const) {
    it(`of a verification mail whose ${how} verified takes that back, and ends everything (NOT-13)`, async () => {
      const login = await blockedLogin(h)
      const notMe = await login.notMeLink()
      await verify(login)
      expect(await login.account()).to.equal(login.id)
      const page = await disown(notMe)
      expectPage(page, 200, 'not-me', 'unverified')
      expect(linksOf(page)).to.deep.equal([])
      expect(await login.isVerified()).to.equal(false)
      expect((await silently(h, login.agent)).get('error')).to.equal('login_required')
      expect(await login.hasPassword(PASSWORD)).to.equal(true)
      expect(disowned(h, login)).to.deep.equal([['email_verification', 'kept']])
    })
  }

  it('of a verification mail ends everything where the user store takes nothing back, and says so', async () => {
    const { markEmailUnverified } = h.users
    delete h.users.markEmailUnverified
    try {
      const login = await blockedLogin(h)
      const notMe = await login.notMeLink()
      await login.agent.get(login.link)
      expectPage(await disown(notMe), 200, 'not-me', 'signed_out')
      expect(await login.isVerified()).to.equal(true)
      expect((await silently(h, login.agent)).get('error')).to.equal('login_required')
    } finally {
      if (markEmailUnverified) h.users.markEmailUnverified = markEmailUnverified
    }
  })

  it('of an invitation voids it, and a new one works', async () => {
    const user = await addImported(h)
    const link = await user.isInvited()
    expectPage(await disown(await user.notMeLink()), 200, 'not-me', 'stopped')
    expectPage(await choose(h, link, STOLEN), 400, 'accept-invitation', 'invalid')
    expect((await h.users.findById(user.id))?.passwordHash).to.equal(undefined)
    const again = await user.isInvited()
    expectPage(await choose(h, again, HONEST), 200, 'accept-invitation', 'done')
  })

  it('of the notice blocks the new password (NOT-07), ends all sessions and leads to a new link, which works', async () => {
    const { user, ofNotice } = await stolen()
    const thief = createUserAgent()
    expect((await h.signIn(thief, user.username, STOLEN)).location).to.include('code=')
    const open = await user.forgets()
    const page = await disown(ofNotice)
    expectPage(page, 200, 'not-me', 'secured')
    expect(linksOf(page).map((link) => link.split('?')[0])).to.deep.equal([
      `${h.oauthUrl}/forgot-password`,
    ])
    expect(disowned(h, user)).to.deep.equal([['password_changed', 'blocked']])
    expect(user.events('sessions_ended')).to.have.length(1)
    await expectDeadReset(open)
    await expectSecured({ user }, thief)
  })

  it('of a reset mail does the same once its link was used (NOT-07)', async () => {
    const { user, ofReset } = await stolen()
    expectPage(await disown(ofReset), 200, 'not-me', 'secured')
    expect(disowned(h, user)).to.deep.equal([['password_reset', 'blocked']])
    await expectSecured({ user })
  })

  it('of an invitation does the same once its first password is set', async () => {
    const user = await addImported(h)
    const link = await user.isInvited()
    const notMe = await user.notMeLink()
    expectPage(await choose(h, link, STOLEN), 200, 'accept-invitation', 'done')
    await isIdle(h)
    expectPage(await disown(notMe), 200, 'not-me', 'secured')
    expect(disowned(h, user)).to.deep.equal([['invitation', 'blocked']])
    await expectSecured({ user })
  })

  it('leaves everything alone once a link was used that was mailed later (NOT-08)', async () => {
    const { user, ofReset, ofNotice } = await stolen()
    expectPage(await h.reset(await user.forgets(), HONEST), 200, 'reset-password', 'done')
    await isIdle(h)
    const browser = createUserAgent()
    await h.signIn(browser, user.username, HONEST)
    const open = await user.forgets()
    for (const link of [ofReset, ofNotice, ofNotice]) {
      const page = await disown(link)
      expectPage(page, 200, 'not-me', 'later')
      expect(linksOf(page)).to.have.length(1)
    }
    expect(await user.hasPassword(HONEST)).to.equal(true)
    expect(await accountOf(h, browser)).to.equal(user.id)
    expectPage(await agent.get(open), 200, 'reset-password', 'form')
    expect(user.events('sessions_ended')).to.deep.equal([])
  })

  /** What the host does on a page of its own, and the link of its notice. */
  async function changedByHost(user: Person, password: string) {
    await user.becomes({ passwordHash: await bcrypt.hash(password, 4) })
    await h.flows.passwordChanged(user.id)
    await isIdle(h)
    return user.notMeLink()
  }

  it('blocks whatever password is in force: after a reset and a change on the page of the host, by the first mail (NOT-14)', async () => {
    const { user, ofReset } = await stolen()
    await changedByHost(user, HONEST)
    expectPage(await disown(ofReset), 200, 'not-me', 'secured')
    expect(await user.hasPassword(HONEST)).to.equal(false)
    await expectSecured({ user })
  })

  it('blocks whatever password is in force: the same one, hashed anew by the host (NOT-14)', async () => {
    const { user, ofNotice } = await stolen()
    await user.becomes({ passwordHash: await bcrypt.hash(STOLEN, 5) })
    expectPage(await disown(ofNotice), 200, 'not-me', 'secured')
    expect(disowned(h, user)).to.deep.equal([['password_changed', 'blocked']])
    await expectSecured({ user })
  })

  it('blocks whatever password is in force: after two changes, by the first notice (NOT-14)', async () => {
    const user = await addVerified(h)
    const first = await changedByHost(user, STOLEN)
    await changedByHost(user, HONEST)
    expectPage(await disown(first), 200, 'not-me', 'secured')
    expect(await user.hasPassword(HONEST)).to.equal(false)
    await expectSecured({ user })
  })

  it('blocks it also for an address that was changed since, and sends to support: a reset would go to the thief (NOT-15)', async () => {
    for (const emailVerified of [true, false]) {
      const { user, ofNotice } = await stolen()
      await user.becomes({ email: `thief-${user.username}@users.example`, emailVerified })
      await h.put({ reset_requires_verified_email: 'true' })
      const page = await disown(ofNotice)
      await h.put({ reset_requires_verified_email: 'false' })
      expectPage(page, 200, 'not-me', 'secured')
      expect(linksOf(page)).to.deep.equal([])
      expect(await user.hasPassword(STOLEN)).to.equal(false)
    }
  })

  it('happens once: a second time does nothing, and says so; at the same time all say the same (NOT-03)', async () => {
    const { user, ofNotice } = await stolen()
    const [first, ...others] = await Promise.all([1, 2, 3].map(() => disown(ofNotice)))
    await user.getsBackIn()
    const browser = createUserAgent()
    await h.signIn(browser, user.username, 'an honest password')
    const again = await disown(ofNotice)
    expectPage(again, 200, 'not-me', 'done')
    // The way on to a password, also after a reload.
    expect(linksOf(again)).to.deep.equal(first && linksOf(first))
    for (const other of others) expect(shapeOf(other)).to.deep.equal(first && shapeOf(first))
    expect(await accountOf(h, browser)).to.equal(user.id)
    expect(await user.hasPassword('an honest password')).to.equal(true)
    expect(disowned(h, user)).to.have.length(1)
  })

  it('of a used link still blocks its password after many more links', async () => {
    const { user, ofReset } = await stolen()
    const [used] = await h.store.resetTokens.ofUser(user.id, 1)
    if (!used) throw new Error('there is no link')
    for (let later = 1; later <= 101; later += 1) {
      const after = (at: Date) => new Date(at.getTime() + later)
      // The one is time of the database, the other of the process.
      const times = { requestedAt: after(used.requestedAt), createdAt: after(used.createdAt) }
      const token = { ...used, id: newId(), tokenHash: hashToken(newToken()), ...times }
      expect(await h.store.resetTokens.issue(token)).to.equal(true)
    }
    expectPage(await disown(ofReset), 200, 'not-me', 'secured')
    await expectSecured({ user })
  })

  it('of a notice to a mailbox that gets no reset link leaves the password alone, so that nobody is locked out', async () => {
    await h.put({ reset_requires_verified_email: 'true' })
    const user = await addUnverified(h)
    await h.flows.passwordChanged(user.id)
    await isIdle(h)
    expectPage(await disown(await user.notMeLink()), 200, 'not-me', 'signed_out')
    await h.put({ reset_requires_verified_email: 'false' })
    expect(await user.hasPassword(PASSWORD)).to.equal(true)
    expect(disowned(h, user)).to.deep.equal([['password_changed', 'kept']])
  })

  it('gives a mailbox that the account has left no say over its new one (NOT-12)', async () => {
    const { user } = await userWithLink(h)
    const notMe = await user.notMeLink()
    await user.becomes({ email: `new-${user.username}@users.example` })
    const now = { ...user, email: `new-${user.username}@users.example` }
    const link = await now.forgets()
    expectPage(await disown(notMe), 200, 'not-me', 'stopped')
    expectPage(await agent.get(link), 200, 'reset-password', 'form')
    await now.getsBackIn()
  })

  it('is for the account of the mail alone, also once that is disabled (NOT-04)', async () => {
    const { user } = await userWithLink(h)
    const notMe = await user.notMeLink()
    const neighbour = await userWithLink(h)
    await user.becomes({ disabled: true })
    expectPage(await disown(notMe), 200, 'not-me', 'stopped')
    expectPage(await agent.get(neighbour.link), 200, 'reset-password', 'form')
  })

  it('waits for a password that is being set just now, and blocks it then (NOT-09)', async () => {
    const { user, link } = await userWithLink(h)
    const notMe = await user.notMeLink()
    const { replacePasswordHash } = h.users
    const set = withResolvers()
    const asked = withResolvers()
    h.users.replacePasswordHash = async (...of) => {
      asked.resolve()
      await set.promise
      return replacePasswordHash(...of)
    }
    const reset = h.reset(link, STOLEN)
    await asked.promise
    const early = await disown(notMe)
    expectPage(early, 503, 'error', 'unavailable')
    expect(early.headers.get('retry-after')).to.equal('60')
    expect(disowned(h, user)).to.deep.equal([])
    h.users.replacePasswordHash = replacePasswordHash
    set.resolve()
    expectPage(await reset, 200, 'reset-password', 'done')
    await isIdle(h)
    expectPage(await disown(notMe), 200, 'not-me', 'secured')
    expect(disowned(h, user)).to.deep.equal([['password_reset', 'blocked']])
    await expectSecured({ user })
  })

  /** Each write of it, as one that a process can die after. */
  const STEPS: [string, (h: Harness) => object, string][] = [
    ['the block is noted', ({ store }) => store.notMeTokens, 'block'],
    ['the password is blocked', ({ users }) => users, 'replacePasswordHash'],
    ['mails in the outbox are void', ({ store }) => store.outbox, 'supersede'],
    ['links are void', ({ store }) => store.resetTokens, 'revoke'],
    ['sessions are ended', ({ store }) => store.cutoffs, 'end'],
    ['it is recorded', ({ store }) => store.audit, 'record'],
  ]

  for (const [step, partOf, method] of STEPS) {
    it(`is finished by pressing again, where its process died once ${step} (NOT-11)`, async () => {
      const { user, ofNotice } = await stolen()
      const undo = dyingAfter(partOf(h), method)
      const died = await disown(ofNotice)
      undo()
      expectPage(died, 500, 'error', 'error')
      expectPage(await disown(ofNotice), 200, 'not-me', 'secured')
      expect(disowned(h, user)).to.deep.equal([['password_changed', 'blocked']])
      await expectSecured({ user })
    })
  }
})

describe('The page behind "This wasn\'t me" (4.10)', () => {
  const h = suiteHarness()

  const MAILED: Record<
    Exclude<MailKind, 'password_changed'>,
    (user: Person) => Promise<unknown>
  > = {
    password_reset: (user) => user.forgets(),
    email_verification: (user) => user.asksAgain(),
    invitation: (user) => user.isInvited(),
  }

  it('asks, and does nothing however often it is opened, also by whatever looks into mails (NOT-01)', async () => {
    const { user, link } = await userWithLink(h)
    const notMe = await user.notMeLink()
    for (const method of ['HEAD', 'GET', 'GET']) {
      const answer = await agent.request(method, notMe, { headers: { 'Sec-Purpose': 'prefetch' } })
      expect([answer.status, answer.headers.get('cache-control')]).to.deep.equal([200, 'no-store'])
      expect(answer.headers.get('referrer-policy')).to.equal('no-referrer')
    }
    expect(disowned(h, user)).to.deep.equal([])
    expectPage(await agent.get(link), 200, 'reset-password', 'form')
  })

  it('is one page for all kinds and accounts, and names neither account nor address (NOT-06)', async () => {
    const shown = new Set<string>()
    for (const [kind, mailed] of Object.entries(MAILED)) {
      const user = await (kind === 'password_reset'
        ? addVerified(h)
        : addUnverified(h, kind === 'invitation' ? { passwordHash: undefined } : {}))
      await mailed(user)
      const notMe = await user.notMeLink()
      const page = await agent.get(notMe)
      expectPage(page, 200, 'not-me', 'confirm')
      const text = page.text.replaceAll(tokenOf(notMe), '')
      shown.add(text)
      for (const secret of [user.username, user.email ?? '', `"${user.id}"`, 'The App'])
        expect(text).not.to.include(secret)
      const done = await disown(notMe)
      expect(done.text).not.to.include(user.username)
      shown.add(done.text)
    }
    expect(shown.size).to.equal(2)
  })

  it('is one page for all tokens that do nothing: altered or unknown (NOT-04)', async () => {
    const { user, link } = await userWithLink(h)
    const notMe = await user.notMeLink()
    const token = tokenOf(notMe)
    const bad = [
      '',
      'x',
      tokenOf(link),
      newToken(),
      `${token}A`,
      token.slice(0, -1),
      token.toUpperCase(),
      hashToken(token),
    ]
    const shapes = new Set<string>()
    for (const each of bad) {
      const got = await agent.get(`${h.oauthUrl}/not-me?token=${encodeURIComponent(each)}`)
      const posted = await agent.post(`${h.oauthUrl}/not-me`, { token: each, action: 'confirm' })
      for (const page of [got, posted]) {
        expectPage(page, 400, 'not-me', 'invalid')
        shapes.add(JSON.stringify(shapeOf(page)))
      }
    }
    expect(shapes.size).to.equal(1)
    expect(disowned(h, user)).to.deep.equal([])
    expectPage(await disown(notMe), 200, 'not-me', 'stopped')
  })

  it('is for its own tokens alone, and they open nothing else (NOT-05)', async () => {
    const { user, link } = await userWithLink(h)
    const token = tokenOf(await user.notMeLink())
    expect(token).to.match(/^[\w-]{43}$/)
    const foreign = { token: tokenOf(link), action: 'confirm' }
    expectPage(await agent.post(`${h.oauthUrl}/not-me`, foreign), 400, 'not-me', 'invalid')
    const at = (page: string) => agent.get(`${h.oauthUrl}/${page}?token=${token}`)
    expectPage(await at('reset-password'), 400, 'reset-password', 'invalid')
    expectPage(await at('accept-invitation'), 400, 'accept-invitation', 'invalid')
    expectPage(await at('verify-email'), 400, 'verify-email', 'expired')
    expectPage(await agent.get(link), 200, 'reset-password', 'form')
    expect(disowned(h, user)).to.deep.equal([])
  })

  it('takes no post of a script, of another site or without its button (NOT-02)', async () => {
    const { user, link } = await userWithLink(h)
    const token = tokenOf(await user.notMeLink())
    const CHROME =
      'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/140.0.0.0 Safari/537.36'
    const post = (form: Record<string, string>, headers: Record<string, string>) =>
      agent.post(`${h.oauthUrl}/not-me`, { token, ...form }, headers)
    const own = { 'Sec-Fetch-Site': 'same-origin', 'User-Agent': CHROME }
    const scripted = await post({ action: 'confirm' }, own)
    const unpressed = await post({}, { ...own, 'Sec-Fetch-User': '?1' })
    for (const page of [scripted, unpressed]) {
      expectPage(page, 400, 'not-me', 'confirm')
      expect(page.text).to.include('role="alert"')
    }
    const crossSite = await post({ action: 'confirm' }, { Origin: 'https://evil.example' })
    expectPage(crossSite, 403, 'error', 'refused')
    expect(disowned(h, user)).to.deep.equal([])
    expectPage(await agent.get(link), 200, 'reset-password', 'form')
    const pressed = await post({ action: 'confirm' }, { ...own, 'Sec-Fetch-User': '?1' })
    expectPage(pressed, 200, 'not-me', 'stopped')
  })

  it('opens a link that a mail program changed at its ends', async () => {
    const { user } = await userWithLink(h)
    const notMe = await user.notMeLink()
    for (const broken of [
      `${notMe}.`,
      `${notMe}%3E`,
      `${notMe}.)`,
      notMe.replace('token=', 'utm=1&amp;token='),
    ])
      expectPage(await agent.get(broken), 200, 'not-me', 'confirm')
  })

  it('blocks the password that was set by a later link to another mailbox (NOT-14)', async () => {
    await h.put({ password_changed_email: 'true' })
    const { user, link } = await userWithLink(h)
    await h.reset(link, HONEST)
    await isIdle(h)
    const notice = await user.notMeLink()
    const email = `thief-${user.id}@users.example`
    await user.becomes({ email })
    const taken = { ...user, email }
    await h.reset(await taken.forgets(), STOLEN)
    const page = await disown(notice)
    expectPage(page, 200, 'not-me', 'secured')
    expect(page.text).to.not.include('/forgot-password')
    expect(await user.hasPassword(STOLEN)).to.equal(false)
    await h.put({ password_changed_email: 'false' })
  })

  it('is good for eight days, whatever its mail and the links that came later', async () => {
    await h.put({ password_changed_email: 'true' })
    const { user, link } = await userWithLink(h)
    const ofReset = await user.notMeLink()
    await h.reset(link, STOLEN)
    await isIdle(h)
    const ofNotice = await user.notMeLink()
    const other = await userWithLink(h)
    const ofOther = await other.user.notMeLink()
    await h.reset(other.link, STOLEN)
    await isIdle(h)
    await h.reset(await other.user.forgets(), HONEST)
    await isIdle(h)
    await moveTime(8 * DAY_MS - 60_000)
    for (const each of [ofReset, ofNotice])
      expectPage(await agent.get(each), 200, 'not-me', 'confirm')
    // Nothing that it is judged by is purged yet.
    await h.resetLink(await addVerified(h))
    expectPage(await disown(ofReset), 200, 'not-me', 'secured')
    expectPage(await disown(ofOther), 200, 'not-me', 'later')
    await moveTime(60_000)
    expectPage(await agent.get(ofNotice), 400, 'not-me', 'invalid')
    await h.put({ password_changed_email: 'false' })
  })
})

describeWithMongo(
  '"This wasn\'t me" and a reset by a later link, over two processes [full]',
  () => {
    it('block the password, or leave it, as the page says, in 24 races (NOT-09)', async () => {
      const secrets = [randomBytes(32)]
      const h = await startHarness({ technology: 'mongodb', flows: { secrets } })
      const { db } = h
      if (!db) throw new Error('no database')
      const links = []
      // One after the other: of one network, few passwords wait to be hashed.
      for (let round = 0; round < 24; round += 1) {
        const { user, link: first } = await userWithLink(h)
        const notMe = await user.notMeLink()
        await h.reset(first, 'the first password')
        links.push({ user, notMe, later: await user.forgets() })
      }
      await isIdle(h)
      const other = await startHarness({
        database: { db, drop: async () => {} },
        flows: { secrets },
      })
      try {
        for (const [index, { user, notMe, later }] of links.entries()) {
          const there = notMe.replace(h.oauthUrl, other.oauthUrl)
          const page = await createUserAgent().get(there)
          const reset = () => h.reset(later, STOLEN)
          const pressed = () => press(createUserAgent(), page, '/not-me')
          const [done] = await Promise.all(
            index % 2 === 0 ? [pressed(), reset()] : [pressed(), delay(index * 3).then(reset)],
          )
          const { mode, status } = status503(done) ? await disown(there) : done
          expect([status, mode]).to.be.deep.oneOf([
            [200, 'secured'],
            [200, 'later'],
          ])
          expect(await user.hasPassword(STOLEN)).to.equal(mode === 'later')
        }
      } finally {
        await other.close()
        await h.close()
      }
    }).timeout(180_000)
  },
)

const status503 = ({ status }: { status: number }) => status === 503
