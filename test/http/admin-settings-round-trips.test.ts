import { expect } from 'chai'
import { MongoClient } from 'mongodb'
import type { Clock } from '../../src/clock.ts'
import { settingsOf } from '../support/admin-requests.ts'
import { eventually } from '../support/eventually.ts'
import { PASSWORD, startHarness, type Harness } from '../support/harness.ts'
import { describeWithMongo, freshDatabase, type FreshDatabase } from '../support/mongod.ts'
import { movableClock } from '../support/time.ts'
import { createUserAgent } from '../support/user-agent.ts'

/** What follows the settings looks at its start, and then not for an hour: all else is for the requests. */
const following: Clock = {
  ...movableClock,
  sleep: (ms, options) => movableClock.sleep(options?.ref === false ? 3_600_000 : ms, options),
}

describeWithMongo('Settings are held in memory and followed (D27), so that [full]', () => {
  let database: FreshDatabase
  let client: MongoClient
  let h: Harness
  let commands: string[] = []

  before(async function () {
    this.timeout(60_000)
    database = await freshDatabase()
    client = await MongoClient.connect(database.uri, { monitorCommands: true })
    client.on('commandStarted', ({ commandName, command }) => {
      commands.push(`${commandName} ${command[commandName]}`)
    })
    h = await startHarness({
      database: { db: client.db(), drop: () => client.close() },
      flows: { clock: following },
    })
    // Workers ask the database by themselves.
    await h.flows.stop({ withinMs: 2_000 })
    commands = []
    await h.flows.start({ workers: false })
    await eventually('it has followed the settings once', () => ofSettings().length >= 2)
  })

  after(async () => {
    await h.close()
    await database.drop()
  })

  beforeEach(() => {
    commands = []
  })

  const ofSettings = () => commands.filter((command) => command.endsWith(' settings'))

  it('GET settings costs one command', async () => {
    const { get } = settingsOf(h)
    expect((await get()).status).to.equal(200)
    expect(commands).to.deep.equal(['find settings'])
    await get()
    expect(commands).to.have.length(2)
  })

  it('a refused change costs no more, and a change is seen to cost a write', async () => {
    const { put } = settingsOf(h)
    expect((await put({ body: { smtp_port: 'x' } })).status).to.equal(400)
    expect((await put({ body: { smtp_from_name: 'X' }, query: 'dry_run=true' })).status).to.equal(
      200,
    )
    expect(commands).to.deep.equal(['find settings', 'find settings'])
    expect((await put({ body: { smtp_from_name: 'X' } })).status).to.equal(200)
    expect(ofSettings()).to.include('update settings')
  })

  it('requests in the flows cost none for settings', async () => {
    await h.addUser({ username: 'verified' })
    await h.addUser({ username: 'waiting', emailVerified: false })
    const agent = createUserAgent()
    commands = []
    expect((await h.signIn(createUserAgent(), 'verified')).location).to.include('code=')
    expect((await h.signIn(agent, 'waiting')).page).to.be.a('string')
    expect((await h.forgot('verified')).mode).to.equal('sent')
    await agent.post(`${h.oauthUrl}/resend-verification`, { username: 'waiting' })
    await agent.get(`${h.oauthUrl}/forgot-password`)
    await agent.get(`${h.oauthUrl}/reset-password?token=${'x'.repeat(43)}`)
    await h.reset(`${h.oauthUrl}/reset-password?token=${'x'.repeat(43)}`, PASSWORD)
    await agent.get(`${h.oauthUrl}/verify-email?token=${'x'.repeat(43)}`)
    expect(commands).not.to.deep.equal([])
    expect(ofSettings()).to.deep.equal([])
  })
})
