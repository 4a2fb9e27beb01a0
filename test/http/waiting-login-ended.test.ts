import { expect } from 'chai'
import { MongoClient, type Document } from 'mongodb'
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
import { onBothStores } from '../support/both-stores.ts'
import { PASSWORD, startHarness, type Harness } from '../support/harness.ts'
import { describeWithMongo, freshDatabase, type FreshDatabase } from '../support/mongod.ts'
import { databaseOf } from '../support/observe.ts'
import { createUserAgent } from '../support/user-agent.ts'
import { expectMode, openElsewhere, pendingOf, windowOf } from '../support/waiting-window.ts'

onBothStores('A window that waits for a login that is over (D9, D15)', (technology) => {
  let harness: Harness

  before(async () => {
    harness = await startHarness({ technology })
  })
  after(() => harness.close())

  /** The page says so, nobody is signed in, and the turn is not taken. */
  async function expectOver(login: BlockedLogin) {
    const window = windowOf(harness, login)
    for (const ask of [window.goOn, window.reload]) {
      const answer = await ask()
      expectMode(answer, 400, 'ended')
      expect(answer.text).to.match(/<a [^>]*href="https:\/\/app\.example\/"/)
    }
    const foreign = await window.in(createUserAgent()).goOn()
    expectMode(foreign, 400, 'ended')
    expect(foreign.text).not.to.include('The App')
    expect(await window.status()).to.be.oneOf(['waiting', 'verified'])
    expect((await pendingOf(harness, window)).continuedAt).to.equal(undefined)
    expect(sessionId(harness, login.agent)).to.equal(undefined)
  }

  /** A login that begins now is as good as any. */
  async function expectNextLoginWorks({ user, agent }: BlockedLogin, password = PASSWORD) {
    const request = await harness.party.begin()
    const answer = await harness.login(agent, request.url, user.username, password)
    const { location = '' } = await harness.follow(agent, answer)
    expect((await harness.party.exchange(request, location)).claims()?.sub).to.equal(user.id)
  }

  it('goes nowhere once everything of the account was ended, though its link still verifies', async () => {
    const login = await blockedLogin(harness)
    await harness.flows.endSessions(login.user.id)
    await expectOver(login)
    expectMode(await openElsewhere(login), 200, 'verified')
    await expectOver(login)
    await expectNextLoginWorks(login)
  })

  it('goes nowhere once the address was verified and everything was ended', async () => {
    const login = await blockedLogin(harness)
    await openElsewhere(login)
    await harness.flows.endSessions(login.user.id)
    await expectOver(login)
    await expectNextLoginWorks(login)
  })

  it('goes nowhere after a reset: who knew the old password stays out (VER-19)', async () => {
    const login = await blockedLogin(harness)
    const reset = await harness.reset(await harness.resetLink(login.user), 'a brand new password')
    expect(reset.mode).to.equal('done')
    await expectOver(login)
    const fresh = await createUserAgent().get(await resend(harness, login.user))
    expectMode(fresh, 200, 'verified')
    await expectOver(login)
    await expectNextLoginWorks(login, 'a brand new password')
  })

  it('goes nowhere while the account is disabled, and then on', async () => {
    const login = await blockedLogin(harness)
    await openElsewhere(login)
    await changeUser(harness, login.user, { disabled: true })
    await expectOver(login)
    await changeUser(harness, login.user, { disabled: false })
    await expectResumed(harness, login, await windowOf(harness, login).goOn())
  })

  it('goes nowhere under another address, be that verified or not', async () => {
    for (const emailVerified of [false, true]) {
      const login = await blockedLogin(harness)
      const email = `another-${login.user.id}@users.example`
      await changeUser(harness, login.user, { email, emailVerified })
      await expectOver(login)
      await changeUser(harness, login.user, { emailVerified: true })
      await expectNextLoginWorks(login)
    }
  })

  it('waits again, and keeps its turn, where the address is taken for unverified again', async () => {
    const login = await blockedLogin(harness)
    const window = windowOf(harness, login)
    await openElsewhere(login)
    await changeUser(harness, login.user, { emailVerified: false })
    expectMode(await window.goOn(), 200, 'blocked')
    expect(sessionId(harness, login.agent)).to.equal(undefined)
    await changeUser(harness, login.user, { emailVerified: true })
    await expectResumed(harness, login, await window.goOn())
  })

  it('is not told apart by its status, which judges no account', async () => {
    const user = await addUnverified(harness)
    const [alive, over] = [await blockedLogin(harness), await blockedLogin(harness, { user })]
    await changeUser(harness, user, { disabled: true })
    const texts = [alive, over].map(async (login) => (await windowOf(harness, login).poll()).text)
    expect(new Set(await Promise.all(texts)).size).to.equal(1)
    await changeUser(harness, user, { disabled: false })
    expect(await isVerified(harness, user)).to.equal(false)
  })

  if (technology === 'mongodb') {
    it('goes nowhere once the account is deleted', async () => {
      const login = await blockedLogin(harness)
      await openElsewhere(login)
      const users = databaseOf(harness).collection<{ _id: string }>('users')
      const record = await users.findOneAndDelete({ _id: login.user.id })
      await expectOver(login)
      await users.insertOne(record ?? { _id: '' })
      await expectResumed(harness, login, await windowOf(harness, login).goOn())
    })

    it('goes nowhere once the record is damaged or gone, and a new login works', async () => {
      const login = await blockedLogin(harness)
      await openElsewhere(login)
      const window = windowOf(harness, login)
      const logins = databaseOf(harness).collection<{ _id: string }>('pending_logins')
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
      await expectNextLoginWorks(login)
    })
  }
})

describeWithMongo('The page that waits costs little (D15), so that', () => {
  let database: FreshDatabase
  let client: MongoClient
  let harness: Harness
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
    harness = await startHarness({ database: { db: client.db(), drop: () => client.close() } })
  })

  after(async () => {
    await harness.close()
    await database.drop()
  })

  it('a poll of its own browser is one read by the primary key, and of any other none', async () => {
    const login = await blockedLogin(harness)
    const window = windowOf(harness, login)
    // Workers ask the database by themselves.
    await harness.flows.stop({ withinMs: 2_000 })
    await harness.flows.start({ workers: false })
    for (const status of ['waiting', 'verified']) {
      if (status === 'verified') await openElsewhere(login)
      commands = []
      expect(await window.status()).to.equal(status)
      expect(commands).to.deep.equal(['find pending_logins'])
    }
    const logins = databaseOf(harness).collection('pending_logins')
    const { executionStats, queryPlanner } = await logins.find(filter).explain('executionStats')
    expect([executionStats.totalDocsExamined, executionStats.totalKeysExamined]).to.deep.equal([
      1, 1,
    ])
    expect(JSON.stringify(queryPlanner.winningPlan)).to.not.include('COLLSCAN')

    commands = []
    expect(await window.in(createUserAgent()).status()).to.equal('ended')
    expect(commands).to.deep.equal([])

    await expectResumed(harness, login, await window.goOn())
  })
})
