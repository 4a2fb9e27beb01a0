import bcrypt from 'bcrypt'
import { expect } from 'chai'
import { eventually } from '../support/eventually.ts'
import {
  addAccounts,
  type ExampleServer,
  forgot,
  opensForm,
  outboxIsQuiet,
  PASSWORD,
} from '../support/example-server.ts'
import { describeWithMongo } from '../support/mongod.ts'
import { tokenOf } from '../support/person.ts'
import { describeWithPostgresql } from '../support/postgresql.ts'
import { steadyLoad } from './load.ts'
import { addPerson, countEvents, linkFor, opens, passwordHashOf, postReset } from './people.ts'
import { type Processes, scaled, suiteOnPostgresql, suiteService } from './servers.ts'

const JOBS = scaled({ full: 500, short: 150 })
const ROUNDS = scaled({ full: 20, short: 3 })
const POSTS = 50

describeWithMongo('Two processes on one database', () => {
  itTakesTurns(suiteService({ isDirect: true }))
})

describeWithPostgresql('Two processes on one PostgreSQL', () => {
  itTakesTurns(suiteOnPostgresql())
})

/** What they do, whichever database it is. */
function itTakesTurns(at: Processes): void {
  let second: ExampleServer
  before(async () => {
    // It reads at its start what the first was told.
    second = await at.another({ BASE_URL: undefined })
  })

  it(`deliver ${JOBS} jobs as ${JOBS} mails, none of them twice (RACE-11)`, async () => {
    const accounts = await addAccounts(at.database, 'shared', JOBS)
    const startedAt = performance.now()
    await steadyLoad({ perSecond: 100, count: JOBS }, (index) =>
      forgot(index % 2 === 0 ? at : second, accounts[index]?.username ?? ''),
    )
    await eventually('every mail arrives', () => at.mail.mails.length >= JOBS, 120_000)
    await outboxIsQuiet(at.database)
    const seconds = (performance.now() - startedAt) / 1000

    expect(at.mail.mails.map(({ to }) => to.join()).toSorted()).to.deep.equal(
      accounts.map(({ email }) => email).toSorted(),
    )
    const links = at.mail.mails.map(({ link }) => link)
    expect(new Set(links.map(tokenOf)).size).to.equal(JOBS)

    // A process builds links from its own base URL, which tells who sent a mail.
    const sent = [at, second].map(
      ({ baseUrl }) => links.filter((link) => link.startsWith(baseUrl)).length,
    )
    expect(Math.min(...sent)).to.be.greaterThan(0)
    expect((sent[0] ?? 0) + (sent[1] ?? 0)).to.equal(JOBS)

    for (const link of [links.at(0), links.at(-1)]) {
      expect(await opensForm(link ?? '')).to.equal(true)
    }
    console.log(
      `two processes: ${JOBS} jobs, ${links.length} mails in ${seconds.toFixed(1)} s, ${sent.join(' + ')}`,
    )
  })

  for (let round = 1; round <= ROUNDS; round += 1) {
    it(`take one link that is posted ${POSTS} times at once, with the password of that form (round ${round} of ${ROUNDS}) (RACE-01)`, async () => {
      const person = await addPerson(at)
      const link = await linkFor(at, person)
      expect(await opensForm(link)).to.equal(true)

      const passwords = Array.from({ length: POSTS }, (_, of) => `the password of form ${of}`)
      const answers = await Promise.all(
        passwords.map(async (password, index) => {
          const { status, mode } = await postReset(index % 2 === 0 ? at : second, link, password)
          return { password, outcome: `${status} ${mode}` }
        }),
      )
      const successes = answers.filter(({ outcome }) => outcome === '200 done')
      const refusals = answers.filter(({ outcome }) => outcome === '400 invalid')
      expect([successes.length, refusals.length]).to.deep.equal([1, POSTS - 1])

      const winner = successes[0]?.password ?? ''
      const hash = await passwordHashOf(at, person)
      const matching = []
      for (const password of passwords) {
        if (await bcrypt.compare(password, hash)) matching.push(password)
      }
      expect(matching).to.deep.equal([winner])
      expect(await opens(at, person, winner)).to.equal(true)
      expect(await opens(at, person, PASSWORD)).to.equal(false)
      expect(await countEvents(at, person, 'password_reset_completed')).to.equal(1)
      expect(await opensForm(link)).to.equal(false)
    })
  }
}
