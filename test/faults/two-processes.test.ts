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
import { steadyLoad } from '../support/load.ts'
import type { MongoCommand } from '../support/mongo-proxy.ts'
import { describeWithMongo } from '../support/mongod.ts'
import { tokenOf } from '../support/person.ts'
import { addPerson, countEvents, opens, postReset, usersOf } from './people.ts'
import { scaled, startService, suiteService } from './servers.ts'

const JOBS = scaled({ full: 500, short: 150 })
const ROUNDS = scaled({ full: 20, short: 3 })
const POSTS = 50

describeWithMongo('Two processes on one database', function (this: Mocha.Suite) {
  this.timeout(scaled({ full: 300_000, short: 120_000 }))

  const at = suiteService({ isDirect: true })
  let second: ExampleServer
  before(async () => {
    // It reads at its start what the first was told.
    second = await at.another({ BASE_URL: undefined })
  })

  it(`deliver ${JOBS} jobs as ${JOBS} mails, none of them twice (RACE-11)`, async () => {
    const accounts = await addAccounts(at.database.db, 'shared', JOBS)
    const startedAt = performance.now()
    await steadyLoad({ perSecond: 100, count: JOBS }, (index) =>
      forgot(index % 2 === 0 ? at : second, accounts[index]?.username ?? ''),
    )
    await eventually('every mail arrives', () => at.mail.mails.length >= JOBS, 120_000)
    await outboxIsQuiet(at.database.db)
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

  for (let round = 1; round <= ROUNDS; round += 1) {
    it(`take one link that is posted ${POSTS} times at once, with the password of that form (round ${round} of ${ROUNDS}) (RACE-01)`, async () => {
      const person = await addPerson(at)
      await forgot(at, person.username)
      const { link } = await at.mail.mailTo(person.email)
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
      const users = usersOf<{ password_hash: string }>(at)
      const hash = (await users.findOne({ _id: person.id }))?.password_hash ?? ''
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
})

/** Longer than the lease of a mail that is being sent, and the time until somebody looks. */
const TAKEN_OVER_WITHIN_MS = 90_000

interface Pause {
  title: string
  isReached(command: MongoCommand): boolean
}

const LOOKING_UP: Pause = {
  title: 'while it looks the account up',
  isReached: ({ name, collection, body }) =>
    name === 'insert' &&
    collection === 'audit_events' &&
    JSON.stringify(body).includes('requested:'),
}

const SENDING: Pause = {
  title: 'before it stores the token',
  isReached: ({ name, collection }) => name === 'find' && collection === 'password_reset_tokens',
}

describeWithMongo('A worker that is paused for longer than its lease', () => {
  for (const { title, isReached } of scaled({ full: [LOOKING_UP, SENDING], short: [LOOKING_UP] })) {
    it(`undoes nothing of what another one did meanwhile, paused ${title}`, async function () {
      this.timeout(2 * TAKEN_OVER_WITHIN_MS)
      const at = await startService()
      const { mail, proxy, server: paused } = at
      try {
        const person = await addPerson(at)
        let isPaused = false
        const stopWatching = proxy.watch({
          reply(command) {
            if (isPaused || !isReached(command)) return
            isPaused = true
            paused.signal('SIGSTOP')
          },
        })
        await forgot(at, person.username)
        await eventually('the worker is paused', () => isPaused)
        stopWatching()
        const other = await at.another()
        const { link } = await eventually(
          'the other worker sends the mail',
          () => mail.mails[0],
          TAKEN_OVER_WITHIN_MS,
        )
        const atOther = link.replace(at.baseUrl, other.baseUrl)
        expect(await opensForm(atOther)).to.equal(true)
        const outbox = at.database.db.collection('mail_outbox')
        await eventually('the job is over', async () => (await outbox.countDocuments()) === 0)

        paused.signal('SIGCONT')
        await eventually('it goes on', async () => (await fetch(at.baseUrl)).ok)
        // What it had begun is at its end.
        expect(await paused.stop()).to.equal(0)
        expect(await opensForm(atOther)).to.equal(true)
        expect(mail.mails).to.have.length(1)
        expect(await outbox.countDocuments()).to.equal(0)
        expect(await countEvents(at, person, 'password_reset_mail_failed')).to.equal(0)
      } finally {
        paused.signal('SIGCONT')
        await at.close()
      }
    })
  }
})
