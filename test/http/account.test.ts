import { expect } from 'chai'
import type { UserStore } from '../../src/contract/users.ts'
import { usersVoidingLinks } from '../../src/flows/void-links.ts'
import { onEachStore, CLIENT, PASSWORD, type Harness, suiteHarness } from '../support/harness.ts'
import { eventually } from '../support/eventually.ts'
import { APP } from '../support/clients.ts'
import { ask } from '../support/observe.ts'
import { dump } from '../support/records.ts'
import { expectExpired, expectMode, resetForm, tokenOf } from '../support/person.ts'
import { createUserAgent } from '../support/user-agent.ts'

const NEW = 'a new password'

onEachStore('What an account was mailed before it was disabled (TOK-25)', (technology) => {
  const h: Harness = suiteHarness({ technology })

  async function mailed() {
    const login = await h.blockedLogin()
    // Another login, whose link and window nobody touches.
    const other = await h.blockedLogin({ user: login })
    const asking = login.in()
    // No login waits for it: it is asked for by name.
    const loose = await asking.asksAgain({ ...APP, state: 's' })
    return { login, other, loose, reset: await asking.forgets() }
  }
  type Mailed = Awaited<ReturnType<typeof mailed>>

  async function expectAllDead({ login, other, reset, loose }: Mailed) {
    for (const each of [login, other]) expectMode(await each.goesOn(), 400, 'ended')
    const elsewhere = login.in()
    for (const link of [login.link, other.link, loose]) {
      expectExpired(await elsewhere.opensLink(link))
      await elsewhere.getsNothing()
    }
    expect((await elsewhere.opensLink(reset)).mode).to.equal('invalid')
    expect((await h.reset(reset, NEW)).mode).to.equal('invalid')
    expect(await login.hasPassword(PASSWORD)).to.equal(true)
    // However the address comes to be verified, no login from before goes on.
    await login.becomes({ emailVerified: true })
    expectMode(await other.goesOn(), 400, 'ended')
    await login.becomes({ emailVerified: false })
  }

  async function expectNewOnesWork({ login }: Mailed) {
    const fresh = await h.blockedLogin({ user: login })
    await fresh.comesBack(await fresh.opensElsewhere())
    await fresh.getsBackIn(NEW)
  }

  const agent = createUserAgent()
  const meetings: Record<string, (all: Mailed) => Promise<unknown>> = {
    'its reset link was opened': ({ reset }) => agent.get(reset),
    'a password was posted with its reset link': ({ reset }) => h.reset(reset, NEW),
    'a new reset link was asked for with it': ({ reset }) =>
      agent.post(`${h.oauthUrl}/forgot-password`, { token: tokenOf(reset) }),
    'one of its verification links was opened': ({ login }) => agent.get(login.link),
    'that without a login was fetched ahead': ({ loose }) =>
      agent.get(loose, { 'sec-purpose': 'prefetch' }),
    'one of its windows was reloaded': ({ login }) => login.reloads(),
    'somebody asked for its reset link': ({ login }) => ask(h, login.username),
    async 'somebody asked for its verification link'({ login: { username } }) {
      await h.resend(username)
      await h.isIdle()
    },
    'the host ended everything of the account': ({ login }) => h.flows.endSessions(login.id),
  }
  for (const [what, meet] of Object.entries(meetings)) {
    it(`stays dead once it is enabled again, where meanwhile ${what}`, async () => {
      const all = await mailed()
      await all.login.becomes({ disabled: true })
      await meet(all)
      await all.login.becomes({ disabled: false })
      await expectAllDead(all)
      await expectNewOnesWork(all)
    })
  }

  it('leaves what other accounts were mailed as it is', async () => {
    const [one, another] = [await mailed(), await mailed()]
    await one.login.becomes({ disabled: true })
    await agent.get(one.reset)
    await another.login.comesBack(await another.login.opensElsewhere())
    expect((await h.reset(another.reset, NEW)).mode).to.equal('done')
  })

  it('and a mail that was on its way meanwhile brings no link that works, where the host ended everything', async () => {
    const user = await h.addUnverified()
    h.mail.fallSilent()
    await h.forgot(user.username)
    await eventually('the worker waits for the mail server', () => h.mail.mostOpen() > 0)
    await user.becomes({ disabled: true })
    await h.flows.endSessions(user.id)
    h.mail.speak()
    await h.isIdle()
    await user.becomes({ disabled: false })
    expect(user.mailCount()).to.equal(0)
    await user.getsBackIn(NEW)
  })
})

const USER_AGENT = 'A Browser/1.0'

describe('The audit log (6)', () => {
  const h = suiteHarness()

  const headers = { 'user-agent': USER_AGENT }
  const post = (path: string, form: Record<string, string>) =>
    createUserAgent().post(`${h.oauthUrl}${path}`, form, headers)
  const opens = (link: string) => createUserAgent().get(link, headers)
  const resetBy = (link: string) => post('/reset-password', resetForm(link, NEW))
  const who = { address: '127.0.0.1', userAgent: USER_AGENT }
  it('tells of a reset: requested, mailed and completed, each with who asked and for which client (LOG-06)', async () => {
    const user = await h.addVerified()
    await post('/forgot-password', { identifier: user.username, ...APP })
    const { link } = await user.mail(1)
    expect((await resetBy(link)).mode).to.equal('done')
    for (const type of [
      'password_reset_requested',
      'password_reset_mail_sent',
      'password_reset_completed',
    ] as const) {
      const [event, another] = user.events(type)
      expect(event, type).to.include({ clientId: CLIENT.client_id, ...who })
      expect(event?.at, type).to.be.instanceOf(Date)
      expect(another, type).to.equal(undefined)
    }
  })

  it('tells nothing of a token that nobody was ever given', async () => {
    await h.isIdle()
    const before = h.events.length
    for (const token of ['A'.repeat(43), 'short', '']) {
      expect((await resetBy(`${h.oauthUrl}/reset-password?token=${token}`)).status).to.equal(400)
    }
    await opens(`${h.oauthUrl}/verify-email?token=${'A'.repeat(43)}&authorize_sig=x`)
    expect(h.events.slice(before)).to.deep.equal([])
  })

  it('tells of a login that was blocked, and of its verification', async () => {
    const user = await h.blockedLogin()
    expect((await opens(user.link)).status).to.equal(302)
    expectExpired(await opens(user.link))
    for (const type of [
      'email_verification_requested',
      'email_login_blocked',
      'email_verification_mail_sent',
      'email_verification_completed',
    ] as const)
      expect(user.events(type), type).to.have.length(1)
    expect(user.events('email_verification_completed')[0]).to.include(who)
    const [rejected] = user.events('email_verification_rejected')
    expect(rejected).to.include({ reason: 'already_verified', clientId: CLIENT.client_id, ...who })
  })

  it('tells by one name why a verification link was refused, whether it is opened or asks for a new one', async () => {
    const [moved, used] = [await h.blockedLogin(), await h.blockedLogin()]
    await moved.becomes({ email: `new-${moved.email}` })
    await used.opensLink()
    await used.becomes({ emailVerified: false })
    for (const [user, why] of [
      [moved, 'account_changed'],
      [used, 'used'],
    ] as const) {
      await post('/resend-verification', Object.fromEntries(new URL(user.link).searchParams))
      const [event] = user.events('email_verification_rejected')
      expect(event).to.include({ reason: why, clientId: CLIENT.client_id, ...who })
      await opens(user.link)
      for (const { reason } of user.events('email_verification_rejected'))
        expect(reason).to.equal(why)
    }
  })

  it('tells once an hour that a verification link was refused, however often it is opened', async () => {
    const users = [await h.blockedLogin(), await h.blockedLogin()]
    for (const user of users) {
      await user.opensLink()
      const refused = await Promise.all(Array.from({ length: 20 }, () => user.opensElsewhere()))
      for (const { status } of refused) expect(status).to.equal(400)
    }
    // At most two: an hour may have passed.
    for (const user of users)
      expect(user.events('email_verification_rejected').length).to.be.within(1, 2)
  })
})

onEachStore('What the audit log holds', (technology) => {
  const h = suiteHarness({ technology })

  it('keeps a hash of what a stranger typed, and no token (LOG-07)', async () => {
    const user = await h.addUser({ username: 'ann' })
    await ask(h, 'a-stranger@nowhere.example')
    const asked = h.eventsOf('password_reset_requested')
    const event = asked.find(({ reason }) => reason === 'unknown')
    expect(event?.details?.identifier_hash).to.match(/^[\w-]{20,}$/)
    const link = await user.forgets()
    await h.reset(link, NEW)
    const stored = await dump(h)
    expect(stored).not.to.include('a-stranger@nowhere')
    expect(stored).not.to.include(tokenOf(link))
    expect(stored).to.include(user.id)
  })
})

describe('A user store of the host, where the links of disabled users are voided', () => {
  const h = suiteHarness()

  it('has its own methods, also as a frozen object of a class, and lacks those that it has not', async () => {
    class Users {
      #ann = { id: '1', username: 'ann', email: 'ann@example.com', emailVerified: true }
      findById = async () => undefined
      async findByEmail() {
        return [{ ...this.#ann, passwordHash: undefined, disabled: false }]
      }
    }
    const given: object = Object.freeze(new Users())
    const users = usersVoidingLinks(given as UserStore, h.store)
    expect(await users.findByEmail?.('ann@example.com')).to.have.length(1)
    expect(await users.findById('1')).to.equal(undefined)
    expect(users.setFirstPassword).to.equal(undefined)
  })
})
