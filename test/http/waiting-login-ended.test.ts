import { expect } from 'chai'
import { MongoClient, type Document } from 'mongodb'
import { withDeleted } from '../support/admin-calls.ts'
import {
  addUnverified,
  blockedLogin,
  changeUser,
  expectResumed,
  isVerified,
  resend,
  sessionId,
  type BlockedLogin,
} from '../support/blocked-login.ts'
import { PASSWORD, startHarness, type Harness } from '../support/harness.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { describeWithMongo, freshDatabase, type FreshDatabase } from '../support/mongod.ts'
import { databaseOf } from '../support/observe.ts'
import { createUserAgent } from '../support/user-agent.ts'
import { expectMode, openElsewhere, pendingOf, windowOf } from '../support/waiting-window.ts'

describe('A window that waits for a login that is over (D9, D15)', () => {
  const deleted = new Set<string>()
  const h: Harness = suiteHarness({ flows: { users: withDeleted(() => h.users, deleted) } })

  /** The page says so, nobody is signed in, and the turn is not taken. */
  async function expectOver(login: BlockedLogin) {
    const window = windowOf(h, login)
    for (const ask of [window.goOn, window.reload]) {
      const answer = await ask()
      expectMode(answer, 400, 'ended')
      expect(answer.text).to.match(/<a [^>]*href="https:\/\/app\.example\/"/)
    }
    const foreign = await window.in(createUserAgent()).goOn()
    expectMode(foreign, 400, 'ended')
    expect(foreign.text).not.to.include('The App')
    expect(await window.status()).to.be.oneOf(['waiting', 'verified'])
    expect((await pendingOf(h, window)).continuedAt).to.equal(undefined)
    expect(sessionId(h, login.agent)).to.equal(undefined)
  }

  /** A login that begins now is as good as any. */
  async function expectNextLoginWorks({ user, agent }: BlockedLogin, password = PASSWORD) {
    const request = await h.party.begin()
    const answer = await h.login(agent, request.url, user.username, password)
    const { location = '' } = await h.follow(agent, answer)
    expect((await h.party.exchange(request, location)).claims()?.sub).to.equal(user.id)
  }

  it('goes nowhere once everything of the account was ended, though its link still verifies', async () => {
    const login = await blockedLogin(h)
    await h.flows.endSessions(login.user.id)
    await expectOver(login)
    expectMode(await openElsewhere(login), 200, 'verified')
    await expectOver(login)
    await expectNextLoginWorks(login)
  })

  it('goes nowhere once the address was verified and everything was ended', async () => {
    const login = await blockedLogin(h)
    await openElsewhere(login)
    await h.flows.endSessions(login.user.id)
    await expectOver(login)
    await expectNextLoginWorks(login)
  })

  it('goes nowhere after a reset: who knew the old password stays out (VER-19)', async () => {
    const login = await blockedLogin(h)
    const reset = await h.reset(await h.resetLink(login.user), 'a brand new password')
    expect(reset.mode).to.equal('done')
    await expectOver(login)
    const fresh = await createUserAgent().get(await resend(h, login.user))
    expectMode(fresh, 200, 'verified')
    await expectOver(login)
    await expectNextLoginWorks(login, 'a brand new password')
  })

  it('goes nowhere while the account is disabled, and then on', async () => {
    const login = await blockedLogin(h)
    await openElsewhere(login)
    await changeUser(h, login.user, { disabled: true })
    await expectOver(login)
    await changeUser(h, login.user, { disabled: false })
    await expectResumed(h, login, await windowOf(h, login).goOn())
  })

  it('goes nowhere under another address, be that verified or not', async () => {
    for (const emailVerified of [false, true]) {
      const login = await blockedLogin(h)
      const email = `another-${login.user.id}@users.example`
      await changeUser(h, login.user, { email, emailVerified })
      await expectOver(login)
      await changeUser(h, login.user, { emailVerified: true })
      await expectNextLoginWorks(login)
    }
  })

  it('waits again, and keeps its turn, where the address is taken for unverified again', async () => {
    const login = await blockedLogin(h)
    const window = windowOf(h, login)
    await openElsewhere(login)
    await changeUser(h, login.user, { emailVerified: false })
    expectMode(await window.goOn(), 200, 'blocked')
    expect(sessionId(h, login.agent)).to.equal(undefined)
    await changeUser(h, login.user, { emailVerified: true })
    await expectResumed(h, login, await window.goOn())
  })

  it('is not told apart by its status, which judges no account', async () => {
    const user = await addUnverified(h)
    const [alive, over] = [await blockedLogin(h), await blockedLogin(h, { user })]
    await changeUser(h, user, { disabled: true })
    const texts = [alive, over].map(async (login) => (await windowOf(h, login).poll()).text)
    expect(new Set(await Promise.all(texts)).size).to.equal(1)
    await changeUser(h, user, { disabled: false })
    expect(await isVerified(h, user)).to.equal(false)
  })

  it('goes nowhere once the account is deleted', async () => {
    const login = await blockedLogin(h)
    await openElsewhere(login)
    deleted.add(login.user.id)
    await expectOver(login)
    deleted.delete(login.user.id)
    await expectResumed(h, login, await windowOf(h, login).goOn())
  })
})

describeWithMongo('The page that waits (D15) [full]', () => {
  let database: FreshDatabase
  let client: MongoClient
  let h: Harness
  let commands: string[] = []
  let filter: Document

  before(async function () {
    this.timeout(60_000)
    database = await freshDatabase()
    client = await MongoClient.connect(database.uri, { monitorCommands: true })
    client.on('commandStarted', ({ commandName, command }) => {
      // The settings are followed once a second, whatever is requested.
      if (command[commandName] === 'settings') return
      commands.push(`${commandName} ${String(command[commandName])}`)
      filter = command['filter']
    })
    h = await startHarness({ database: { db: client.db(), drop: () => client.close() } })
  })

  after(async () => {
    await h.close()
    await database.drop()
  })

  it('goes nowhere once the record is damaged or gone, and a new login works', async () => {
    const login = await blockedLogin(h)
    await openElsewhere(login)
    const window = windowOf(h, login)
    const logins = databaseOf(h).collection<{ _id: string }>('pending_logins')
    for (const damage of [
      { captured: '{}' },
      { captured: 'no JSON' },
      { purge_at: 'never' },
      { browser_hash: 7 },
    ]) {
      const before = await logins.findOneAndUpdate({ _id: window.id }, { $set: damage })
      expectMode(await window.goOn(), 400, 'ended')
      expect((await window.poll()).text).to.equal('{"status":"ended"}')
      await logins.replaceOne({ _id: window.id }, before ?? {})
    }
    expect(await window.status()).to.equal('verified')
    await logins.deleteOne({ _id: window.id })
    expectMode(await window.goOn(), 400, 'ended')
    expect((await h.signIn(login.agent, login.user.username)).location).to.include('code=')
  })

  it('costs little: a poll of its own browser is one read by the primary key, and of any other none', async () => {
    const login = await blockedLogin(h)
    const window = windowOf(h, login)
    // Workers ask the database by themselves.
    await h.flows.stop({ withinMs: 2_000 })
    await h.flows.start({ workers: false })
    for (const status of ['waiting', 'verified']) {
      if (status === 'verified') await openElsewhere(login)
      commands = []
      expect(await window.status()).to.equal(status)
      expect(commands).to.deep.equal(['find pending_logins'])
    }
    const logins = databaseOf(h).collection('pending_logins')
    const { executionStats, queryPlanner } = await logins.find(filter).explain('executionStats')
    expect([executionStats.totalDocsExamined, executionStats.totalKeysExamined]).to.deep.equal([
      1, 1,
    ])
    expect(JSON.stringify(queryPlanner.winningPlan)).to.not.include('COLLSCAN')

    commands = []
    expect(await window.in(createUserAgent()).status()).to.equal('ended')
    expect(commands).to.deep.equal([])

    await expectResumed(h, login, await window.goOn())
  })
})
