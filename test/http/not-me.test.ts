import { EventEmitter, once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import bcrypt from 'bcrypt'
import { expect } from 'chai'
import { hashToken, newId, newToken } from '../../src/crypto/token.ts'
import { linkKinds, MAIL_KINDS } from '../../src/contract/mail-kinds.ts'
import { cliOf } from '../support/cli.ts'
import { eventually } from '../support/eventually.ts'
import {
  expectPage,
  expectUnavailable,
  linksOf,
  press,
  createUserAgent,
} from '../support/user-agent.ts'
import {
  type Harness,
  onEachStore,
  PASSWORD,
  startHarness,
  suiteHarness,
} from '../support/harness.ts'
import { describeWithMongo } from '../support/mongod.ts'
import { shapeOf } from '../support/observe.ts'
import { disown, notMeOf, type Person, personAt, tokenOf } from '../support/person.ts'
import { beforeFirst, databaseOf, instead } from '../support/records.ts'
import { movableClock, moveTime } from '../support/time.ts'
import type { Answer } from '../support/user-agent.ts'

const DAY_MS = 86_400_000
const STOLEN = 'the password of a thief'
const HONEST = 'the password of its owner'
const agent = createUserAgent()

const reported = (user: Person) =>
  user.events('mail_reported').map(({ details }) => [details.mail, details.password])

type Write = (...of: unknown[]) => unknown

/** What a process does that dies once it has written. */
const thenDies =
  (write: Write) =>
  async (...of: unknown[]) => {
    await write(...of)
    throw new Error('the process died')
  }

async function expectDeadReset(link: string) {
  expectPage(await agent.get(link), 400, 'reset-password', 'invalid')
}

onEachStore('"This wasn\'t me" of a mail (3.6)', (technology) => {
  const h = suiteHarness({
    technology,
    settings: { password_changed_email: 'true' },
    mayLogErrors: true,
    mail: {
      async reaches(point, to = '') {
        if (point === 'data complete' && arriveTwice.delete(to)) throw new Error('it is not told')
      },
    },
  })
  /** Of their next mail the server tells not that it took it, so that it comes again. */
  const arriveTwice = new Set<string>()

  /** A user whose password somebody reset by a mailed link, and the links of both mails. */
  async function stolen() {
    const { user } = await h.userWithLink()
    const ofReset = await user.notMeLink()
    expect((await user.in().signsIn()).location).to.include('code=')
    expectPage(await user.choosesPassword(STOLEN), 200, 'reset-password', 'done')
    await user.mail(2)
    await h.isIdle()
    return { user, ofReset, ofNotice: await user.notMeLink() }
  }

  async function expectSecured(user: Person, thief = createUserAgent()) {
    expect(await user.hasPassword(STOLEN)).to.equal(false)
    expect(await h.accountOf(thief)).to.equal(undefined)
    expect((await user.in(thief).signsIn(STOLEN)).status).to.equal(401)
    await user.getsBackIn()
    const owner = user.in()
    expect((await owner.signsIn('an honest password')).location).to.include('code=')
    expect(await owner.account()).to.equal(user.id)
  }

  it('of a reset mail voids its link, and ends the logins that wait; nothing else changes', async () => {
    const { user, link } = await h.userWithLink()
    const browser = user.in()
    expect((await browser.signsIn()).location).to.include('code=')
    const other = await h.userWithLink()
    const page = await disown(await user.notMeLink())
    expectPage(page, 200, 'not-me', 'stopped')
    expect(linksOf(page)).to.deep.equal([])
    await expectDeadReset(link)
    expectPage(await h.reset(link, STOLEN), 400, 'reset-password', 'invalid')
    expect(await user.hasPassword(PASSWORD)).to.equal(true)
    expect(reported(user)).to.deep.equal([['password_reset', 'kept']])
    expect(user.events('sessions_ended')).to.deep.equal([])
    expect(await browser.account()).to.equal(user.id)
    expectPage(await agent.get(other.link), 200, 'reset-password', 'form')
    await user.getsBackIn()
  })

  it('of a reset mail ends the login that waits, though another mail was sent for that', async () => {
    const login = await h.blockedLogin()
    await login.forgets()
    expectPage(await disown(await login.notMeLink()), 200, 'not-me', 'stopped')
    expectPage(await login.goesOn(), 400, 'verify-email', 'ended')
    expect(reported(login)).to.deep.equal([['password_reset', 'kept']])
  })

  it('of a reset mail voids one that is still in the outbox, too', async () => {
    const { user } = await h.userWithLink()
    const notMe = await user.notMeLink()
    await h.put({ mails_per_minute: '1' })
    try {
      await h.forgot(user.username)
      await eventually('it waits to be sent', async () =>
        (await h.store.outbox.requestsOf(user.id, 'password_reset')).some(
          ({ state }) => state === 'resolved',
        ),
      )
      expectPage(await disown(notMe), 200, 'not-me', 'stopped')
    } finally {
      await h.put({ mails_per_minute: '0' })
    }
    await h.isIdle()
    expect(user.mailCount()).to.equal(1)
  })

  it('of a verification mail ends the login that waits, and voids all its links', async () => {
    const login = await h.blockedLogin()
    const links = [login.link, await login.asksAgain()]
    expectPage(await disown(await login.notMeLink()), 200, 'not-me', 'stopped')
    for (const link of links)
      expectPage(await login.agent.get(link), 400, 'verify-email', 'expired')
    expectPage(await login.goesOn({ action: 'go' }), 400, 'verify-email', 'ended')
    expect(await login.isVerified()).to.equal(false)
    expect(reported(login)).to.deep.equal([['email_verification', 'kept']])
  })

  for (const [how, verify] of [
    ['link', (login: Person) => login.opensLink()],
    ['code', (login: Person) => login.types()],
  ] as const) {
    it(`of a verification mail whose ${how} verified takes that back, and ends everything (NOT-13)`, async () => {
      const login = await h.blockedLogin()
      const notMe = await login.notMeLink()
      await verify(login)
      expect(await login.account()).to.equal(login.id)
      const page = await disown(notMe)
      expectPage(page, 200, 'not-me', 'unverified')
      expect(linksOf(page)).to.deep.equal([])
      expect(await login.isVerified()).to.equal(false)
      expect(await login.account()).to.equal(undefined)
      expect(await login.hasPassword(PASSWORD)).to.equal(true)
      expect(reported(login)).to.deep.equal([['email_verification', 'kept']])
    })
  }

  it('of a verification mail ends everything where the user store takes nothing back, and says so', async () => {
    const login = await h.blockedLogin()
    const notMe = await login.notMeLink()
    await login.opensLink()
    const nothing = () => undefined
    const page = await instead(h.users, 'markEmailUnverified', nothing, () => disown(notMe))
    expectPage(page, 200, 'not-me', 'signed_out')
    expect(await login.isVerified()).to.equal(true)
    expect(await login.account()).to.equal(undefined)
  })

  it('of a mail that came twice undoes what the link of the other copy did (NOT-07, NOT-13)', async () => {
    const user = await h.addVerified()
    arriveTwice.add(user.email ?? '')
    await user.forgets()
    const { link } = await user.mail(2)
    expectPage(await user.choosesPassword(STOLEN, link), 200, 'reset-password', 'done')
    await user.mail(3)
    await h.isIdle()
    expectPage(await disown(notMeOf(await user.mail(1))), 200, 'not-me', 'secured')
    await expectSecured(user)

    const unverified = await h.addUnverified()
    arriveTwice.add(unverified.email ?? '')
    const login = await h.blockedLogin({ user: unverified })
    await login.comesBack(await login.opensLink((await login.mail(2)).link))
    expectPage(await disown(notMeOf(await login.mail(1))), 200, 'not-me', 'unverified')
    expect(await login.isVerified()).to.equal(false)
  })

  it('of an invitation voids it, and a new one works', async () => {
    const user = await h.addImported()
    const link = await user.isInvited()
    expectPage(await disown(await user.notMeLink()), 200, 'not-me', 'stopped')
    expectPage(await user.choosesPassword(STOLEN, link), 400, 'accept-invitation', 'invalid')
    expect((await h.users.findById(user.id))?.passwordHash).to.equal(undefined)
    const again = await user.isInvited()
    expectPage(await user.choosesPassword(HONEST, again), 200, 'accept-invitation', 'done')
  })

  it('of the notice blocks the new password (NOT-07), ends all sessions and leads to a new link, which works', async () => {
    const { user, ofNotice } = await stolen()
    const thief = createUserAgent()
    expect((await user.in(thief).signsIn(STOLEN)).location).to.include('code=')
    const open = await user.forgets()
    const page = await disown(ofNotice)
    expectPage(page, 200, 'not-me', 'secured')
    expect(linksOf(page).map((link) => link.split('?')[0])).to.deep.equal([
      `${h.oauthUrl}/forgot-password`,
    ])
    expect(reported(user)).to.deep.equal([['password_changed', 'blocked']])
    expect(user.events('sessions_ended')).to.have.length(1)
    await expectDeadReset(open)
    await expectSecured(user, thief)
  })

  it('leaves everything alone once a link was used that was mailed later (NOT-08)', async () => {
    const { user, ofReset, ofNotice } = await stolen()
    expectPage(await h.reset(await user.forgets(), HONEST), 200, 'reset-password', 'done')
    await h.isIdle()
    const browser = user.in()
    await browser.signsIn(HONEST)
    const open = await user.forgets()
    for (const link of [ofReset, ofNotice, ofNotice]) {
      const page = await disown(link)
      expectPage(page, 200, 'not-me', 'later')
      expect(linksOf(page)).to.have.length(1)
    }
    expect(await user.hasPassword(HONEST)).to.equal(true)
    expect(await browser.account()).to.equal(user.id)
    expectPage(await agent.get(open), 200, 'reset-password', 'form')
    expect(user.events('sessions_ended')).to.deep.equal([])
  })

  /** What the host does on a page of its own, and the link of its notice. */
  async function changedByHost(user: Person, password: string) {
    await user.becomes({ passwordHash: await bcrypt.hash(password, 4) })
    await h.flows.passwordChanged(user.id)
    await h.isIdle()
    return user.notMeLink()
  }

  /** How a thief came to set the password, the link that blocks it, and the mail that this is of. */
  const inForce: Record<string, () => Promise<[user: Person, link: string, mail: string]>> = {
    async 'by a reset'() {
      const { user, ofReset } = await stolen()
      return [user, ofReset, 'password_reset']
    },
    async 'by an invitation'() {
      const user = await h.addImported()
      const link = await user.isInvited()
      const notMe = await user.notMeLink()
      expectPage(await user.choosesPassword(STOLEN, link), 200, 'accept-invitation', 'done')
      await h.isIdle()
      return [user, notMe, 'invitation']
    },
    async 'by a reset, and changed on the page of the host since'() {
      const { user, ofReset } = await stolen()
      await changedByHost(user, HONEST)
      return [user, ofReset, 'password_reset']
    },
    async 'by a reset, and hashed anew by the host since'() {
      const { user, ofNotice } = await stolen()
      await user.becomes({ passwordHash: await bcrypt.hash(STOLEN, 5) })
      return [user, ofNotice, 'password_changed']
    },
    async 'by two changes, of which this is the first notice'() {
      const user = await h.addVerified()
      const link = await changedByHost(user, STOLEN)
      await changedByHost(user, HONEST)
      return [user, link, 'password_changed']
    },
    async 'by a reset, with many more links since'() {
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
      return [user, ofReset, 'password_reset']
    },
  }
  for (const [how, prepare] of Object.entries(inForce)) {
    it(`blocks the password that is in force: set ${how} (NOT-07, NOT-14)`, async () => {
      const [user, link, mail] = await prepare()
      expectPage(await disown(link), 200, 'not-me', 'secured')
      expect(await user.hasPassword(HONEST)).to.equal(false)
      expect(reported(user)).to.deep.equal([[mail, 'blocked']])
      await expectSecured(user)
    })
  }

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

  it('of a disabled account blocks it too, and sends to support: no reset link would be sent', async () => {
    const { user, ofNotice } = await stolen()
    await user.becomes({ disabled: true })
    for (const mode of ['secured', 'done']) {
      const page = await disown(ofNotice)
      expectPage(page, 200, 'not-me', mode)
      expect(linksOf(page)).to.deep.equal([])
    }
    await user.becomes({ disabled: false })
    await expectSecured(user)
  })

  /** So many presses, of which each has found its link before one of them blocks the password. */
  async function atOnce(count: number, press: () => Promise<Answer>) {
    const events = new EventEmitter()
    const all = once(events, 'all')
    let arrived = 0
    const meeting =
      (real: typeof h.store.notMeTokens.block): typeof real =>
      async (...given) => {
        arrived += 1
        if (arrived === count) events.emit('all')
        await all
        return real(...given)
      }
    return instead(h.store.notMeTokens, 'block', meeting, () =>
      Promise.all(Array.from({ length: count }, press)),
    )
  }

  it('happens once: a second time does nothing, and says so; at the same time all say the same (NOT-03)', async () => {
    const { user, ofNotice } = await stolen()
    const [first, ...others] = await atOnce(3, () => disown(ofNotice))
    await user.getsBackIn()
    const browser = user.in()
    await browser.signsIn('an honest password')
    const again = await disown(ofNotice)
    expectPage(again, 200, 'not-me', 'done')
    // The way on to a password, also after a reload.
    expect(linksOf(again)).to.deep.equal(first && linksOf(first))
    for (const other of others) expect(shapeOf(other)).to.deep.equal(first && shapeOf(first))
    expect(await browser.account()).to.equal(user.id)
    expect(await user.hasPassword('an honest password')).to.equal(true)
    expect(reported(user)).to.have.length(1)
  })

  it('of a notice to a mailbox that gets no reset link leaves the password alone, so that nobody is locked out', async () => {
    await h.put({ reset_requires_verified_email: 'true' })
    const user = await h.addUnverified()
    await h.flows.passwordChanged(user.id)
    await h.isIdle()
    expectPage(await disown(await user.notMeLink()), 200, 'not-me', 'signed_out')
    await h.put({ reset_requires_verified_email: 'false' })
    expect(await user.hasPassword(PASSWORD)).to.equal(true)
    expect(reported(user)).to.deep.equal([['password_changed', 'kept']])
  })

  it('gives a mailbox that the account has left no say over its new one (NOT-12)', async () => {
    const { user } = await h.userWithLink()
    const notMe = await user.notMeLink()
    const email = `new-${user.username}@users.example`
    await user.becomes({ email })
    const now = personAt(h, { ...user, email })
    const link = await now.forgets()
    expectPage(await disown(notMe), 200, 'not-me', 'stopped')
    expectPage(await agent.get(link), 200, 'reset-password', 'form')
    await now.getsBackIn()
  })

  it('is for the account of the mail alone, also once that is disabled (NOT-04)', async () => {
    const { user } = await h.userWithLink()
    const notMe = await user.notMeLink()
    const neighbour = await h.userWithLink()
    await user.becomes({ disabled: true })
    expectPage(await disown(notMe), 200, 'not-me', 'stopped')
    expectPage(await agent.get(neighbour.link), 200, 'reset-password', 'form')
  })

  it('waits for a password that is being set just now, and blocks it then (NOT-09)', async () => {
    const { user, link } = await h.userWithLink()
    const notMe = await user.notMeLink()
    let early = user.page
    beforeFirst(h.users, 'replacePasswordHash', async () => {
      early = await disown(notMe)
    })
    expectPage(await h.reset(link, STOLEN), 200, 'reset-password', 'done')
    expectUnavailable(early)
    expect(reported(user)).to.deep.equal([])
    await h.isIdle()
    expectPage(await disown(notMe), 200, 'not-me', 'secured')
    expect(reported(user)).to.deep.equal([['password_reset', 'blocked']])
    await expectSecured(user)
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
      const part = partOf(h) as Record<string, Write>
      const died = await instead(part, method, thenDies, () => disown(ofNotice))
      expectPage(died, 500, 'error', 'error')
      expectPage(await disown(ofNotice), 200, 'not-me', 'secured')
      expect(reported(user)).to.deep.equal([['password_changed', 'blocked']])
      await expectSecured(user)
    })
  }
})

describe('The page behind "This wasn\'t me" (4.10)', () => {
  const h = suiteHarness()

  it('asks, and does nothing however often it is opened, also by whatever looks into mails (NOT-01)', async () => {
    const { user, link } = await h.userWithLink()
    const notMe = await user.notMeLink()
    for (const method of ['HEAD', 'GET', 'GET']) {
      const answer = await agent.request(method, notMe, { headers: { 'Sec-Purpose': 'prefetch' } })
      expect([answer.status, answer.headers.get('cache-control')]).to.deep.equal([200, 'no-store'])
      expect(answer.headers.get('referrer-policy')).to.equal('no-referrer')
    }
    expect(reported(user)).to.deep.equal([])
    expectPage(await agent.get(link), 200, 'reset-password', 'form')
  })

  it('is one page for all kinds and accounts, and names neither account nor address (NOT-06)', async () => {
    const shown = new Set<string>()
    for (const kind of linkKinds) {
      const user = await (kind === 'password_reset'
        ? h.addVerified()
        : h.addUnverified(kind === 'invitation' ? { passwordHash: undefined } : {}))
      const command = MAIL_KINDS[kind].link.command.split(' ')
      await cliOf(h).done([...command, '--id', user.id, '--wait', '0'])
      const notMe = notMeOf(await user.mail(1))
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

  it('blocks the password that was set by a later link to another mailbox (NOT-14)', async () => {
    await h.put({ password_changed_email: 'true' })
    const { user, link } = await h.userWithLink()
    await h.reset(link, HONEST)
    await h.isIdle()
    const notice = await user.notMeLink()
    const email = `thief-${user.id}@users.example`
    await user.becomes({ email })
    const taken = personAt(h, { ...user, email })
    await h.reset(await taken.forgets(), STOLEN)
    const page = await disown(notice)
    expectPage(page, 200, 'not-me', 'secured')
    expect(page.text).to.not.include('/forgot-password')
    expect(await user.hasPassword(STOLEN)).to.equal(false)
    await h.put({ password_changed_email: 'false' })
  })

  it('is good for eight days, whatever its mail and the links that came later', async () => {
    await h.put({ password_changed_email: 'true' })
    const { user, link } = await h.userWithLink()
    const ofReset = await user.notMeLink()
    await h.reset(link, STOLEN)
    await h.isIdle()
    const ofNotice = await user.notMeLink()
    const other = await h.userWithLink()
    const ofOther = await other.user.notMeLink()
    await h.reset(other.link, STOLEN)
    await h.isIdle()
    await h.reset(await other.user.forgets(), HONEST)
    await h.isIdle()
    await moveTime(8 * DAY_MS - 60_000)
    for (const each of [ofReset, ofNotice])
      expectPage(await agent.get(each), 200, 'not-me', 'confirm')
    // Nothing that it is judged by is purged yet.
    await (await h.addVerified()).forgets()
    expectPage(await disown(ofReset), 200, 'not-me', 'secured')
    expectPage(await disown(ofOther), 200, 'not-me', 'later')
    // One that is over, and not purged yet.
    const token = await h.store.notMeTokens.find(hashToken(tokenOf(ofNotice)))
    const over = { id: hashToken('x'.repeat(43)), purgeAt: movableClock.now() }
    if (token) await h.store.notMeTokens.issue({ ...token, ...over })
    const ofOver = ofNotice.replace(tokenOf(ofNotice), 'x'.repeat(43))
    expectPage(await agent.get(ofOver), 400, 'not-me', 'invalid')
    await moveTime(60_000)
    expectPage(await agent.get(ofNotice), 400, 'not-me', 'invalid')
    await h.put({ password_changed_email: 'false' })
  })
})

describeWithMongo(
  '"This wasn\'t me" and a reset by a later link, over two processes [full]',
  () => {
    it('block the password, or leave it, as the page says, in 24 races (NOT-09)', async () => {
      const h = await startHarness({ technology: 'mongodb' })
      const links = []
      // One after the other: of one network, few passwords wait to be hashed.
      for (let round = 0; round < 24; round += 1) {
        const { user, link: first } = await h.userWithLink()
        const notMe = await user.notMeLink()
        await h.reset(first, 'the first password')
        links.push({ user, notMe, later: await user.forgets() })
      }
      await h.isIdle()
      const other = await startHarness({ database: { db: databaseOf(h), drop: async () => {} } })
      try {
        for (const [index, { user, notMe, later }] of links.entries()) {
          const there = notMe.replace(h.oauthUrl, other.oauthUrl)
          const page = await createUserAgent().get(there)
          const reset = () => h.reset(later, STOLEN)
          const pressed = () => press(createUserAgent(), page, '/not-me')
          const [done] = await Promise.all(
            index % 2 === 0 ? [pressed(), reset()] : [pressed(), delay(index * 3).then(reset)],
          )
          const { mode, status } = done.status === 503 ? await disown(there) : done
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
    })
  },
)
