import { expect } from 'chai'
import { startExampleServer, type ExampleServer } from '../support/example-server.ts'
import { addAccounts, forgot, opensForm, outboxIsQuiet } from '../support/example-requests.ts'
import { eventually } from '../support/eventually.ts'
import { steadyLoad } from '../support/load.ts'
import { describeWithMongo } from '../support/mongod.ts'
import { scaled } from './scale.ts'
import { suiteService } from './suite-service.ts'
import { tokenOf } from '../support/person.ts'

const JOBS = scaled({ full: 500, short: 150 })

describeWithMongo('Two processes on one database', function (this: Mocha.Suite) {
  this.timeout(scaled({ full: 300_000, short: 120_000 }))

  let second: ExampleServer
  // Before the database goes.
  after(() => second?.kill())
  const { database, mail, server } = suiteService()
  before(async () => {
    // It reads at its start what the first was told.
    second = await startExampleServer({ MONGODB_URI: database.uri })
  })

  it(`deliver ${JOBS} jobs as ${JOBS} mails, none of them twice (RACE-11)`, async () => {
    const accounts = await addAccounts(database.db, 'shared', JOBS)
    const startedAt = performance.now()
    await steadyLoad({ perSecond: 100, count: JOBS }, (index) =>
      forgot(index % 2 === 0 ? server : second, accounts[index]?.username ?? ''),
    )
    await eventually('every mail arrives', () => mail.mails.length >= JOBS, 120_000)
    await outboxIsQuiet(database.db)
    const seconds = (performance.now() - startedAt) / 1000

    expect(mail.mails.map(({ to }) => to.join()).toSorted()).to.deep.equal(
      accounts.map(({ email }) => email).toSorted(),
    )
    const links = mail.mails.map(({ link }) => link)
    expect(new Set(links.map(tokenOf)).size).to.equal(JOBS)

    // A process builds links from its own base URL, which tells who sent a mail.
    const sent = [server, second].map(
      ({ baseUrl }) => links.filter((link) => link.startsWith(baseUrl)).length,
    )
    expect(sent[0]).to.be.greaterThan(0)
    expect(sent[1]).to.be.greaterThan(0)
    expect((sent[0] ?? 0) + (sent[1] ?? 0)).to.equal(JOBS)

    for (const link of [links.at(0), links.at(-1)]) {
      expect(await opensForm(link ?? '')).to.equal(true)
    }
    console.log(
      `two processes: ${JOBS} jobs, ${links.length} mails in ${seconds.toFixed(1)} s, ${sent.join(' + ')}`,
    )
  })
})
