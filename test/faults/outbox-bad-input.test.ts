import { expect } from 'chai'
import { ObjectId, type Document } from 'mongodb'
import {
  type Account,
  addAccounts,
  forgot,
  opensForm,
  outboxIsQuiet,
  putSettings,
  smtpSettings,
} from '../support/example-server.ts'
import { eventually } from '../support/eventually.ts'
import { describeWithMongo } from '../support/mongod.ts'
import { addPerson, linkFor, liveTokensOf, usersOf } from './people.ts'
import { suiteService } from './servers.ts'

const DEAD_WITHIN_MS = 10_000

interface JobDocument extends Document {
  _id: string | ObjectId
}

const BAD_ADDRESSES: Record<string, unknown> = {
  'with a line break': 'bad@example.com\r\nBcc: other@example.com',
  'of two people': 'bad@example.com, other@example.com',
  'with a name': 'Bad <bad@example.com>',
  'with a space': 'bad person@example.com',
  'without a host': 'bad',
  empty: '',
  'that is a number': 7,
  'that is a list': ['bad@example.com', 'other@example.com'],
}

describeWithMongo('Bad input in the database', function (this: Mocha.Suite) {
  this.timeout(120_000)

  const deferred = new Set<string>()
  const answer = (recipient: string) => (deferred.has(recipient) ? 'defer' : 'take')
  const at = suiteService({ mail: { answer }, isDirect: true })
  const outbox = () => at.database.db.collection<JobDocument>('mail_outbox')
  let honest = 0

  /** Lines of the log, from that character on, that warn of something about it. */
  const complaintsAbout = (what: string, from = 0) =>
    at.server
      .output()
      .slice(from)
      .split('\n')
      .filter((line) => /"level":"(?:warn|error)"/.test(line) && line.includes(what))

  /** Some rounds of the worker later, nothing but these mails has arrived. */
  async function honestRequestsAreServed() {
    const before = at.mail.mails.length
    const accounts = await addAccounts(at.database.db, `honest-${(honest += 1)}`, 3)
    for (const account of accounts) {
      expect(await opensForm(await linkFor(at, account))).to.equal(true)
    }
    expect(at.mail.mails.slice(before).flatMap(({ to }) => to)).to.deep.equal(
      accounts.map(({ email }) => email),
    )
  }

  async function expectDeadLetter({ _id }: JobDocument, what: string) {
    const job = await outbox().findOne({ _id })
    expect(job?.['state'], what).to.equal('dead')
    expect(job?.['reason'], what).to.be.a('string').and.not.equal('')
    expect(job?.['purge_at'], what).to.be.instanceOf(Date)
    expect(job?.['identifier'], what).to.equal(null)
  }

  /** Until so many more jobs are dead letters than at first, or the time for that is up: the assertions tell which are not. */
  async function areDeadSoon(first: number, more: number) {
    const isOver = async () => (await deadLetters()) >= first + more
    await eventually('each job is a dead letter', isOver, DEAD_WITHIN_MS).catch(() => {})
  }

  const deadLetters = () => outbox().countDocuments({ state: 'dead' })

  /** Asks, and answers what the outbox holds before any worker has seen it. */
  async function jobAsAsked(identifier: string): Promise<JobDocument> {
    return eventually('a job is caught', async () => {
      await forgot(at, identifier)
      process.kill(at.server.pid, 'SIGSTOP')
      try {
        return (await outbox().findOne({ identifier })) ?? false
      } finally {
        process.kill(at.server.pid, 'SIGCONT')
      }
    })
  }

  it('makes dead letters of jobs for accounts that no mail can reach', async () => {
    const changes: Record<string, Document> = {
      'no address': { $unset: { email: true } },
      'no right to sign in': { $set: { disabled: true } },
    }
    for (const [what, email] of Object.entries(BAD_ADDRESSES)) {
      changes[`an address ${what}`] = { $set: { email } }
    }
    const accounts: Record<string, Account> = {}
    const first = await deadLetters()
    for (const [what, change] of Object.entries(changes)) {
      const account = (accounts[what] = await addPerson(at))
      await usersOf(at).updateOne({ _id: account.id }, change)
      await forgot(at, account.username)
    }
    await areDeadSoon(first, Object.keys(changes).length)
    await honestRequestsAreServed()

    for (const [what, account] of Object.entries(accounts)) {
      const job = await outbox().findOne({ account_id: account.id })
      if (!job) throw new Error(`no dead letter: ${what}`)
      await expectDeadLetter(job, what)
      expect(complaintsAbout(String(job._id)), what).to.have.length(1)
      expect(await liveTokensOf(at, account), what).to.deep.equal([])
    }
  })

  it('makes a dead letter of a job for an account that was deleted after it was looked up', async () => {
    const account = await addPerson(at)
    deferred.add(account.email)
    await forgot(at, account.username)
    const waiting = await eventually('a first attempt fails', async () =>
      outbox()
        .findOne({ account_id: account.id, reason: { $ne: null } })
        .then((job) => job ?? false),
    )
    const before = at.server.output().length
    await usersOf(at).deleteOne({ _id: account.id })
    deferred.delete(account.email)

    await eventually('its job is a dead letter', async () => {
      return (await outbox().countDocuments({ _id: waiting._id, state: 'dead' })) === 1
    })
    await expectDeadLetter(waiting, 'deleted')
    await honestRequestsAreServed()
    expect(complaintsAbout(String(waiting._id), before)).to.have.length(1)
    expect(await liveTokensOf(at, account)).to.deep.equal([])
  })

  it('keeps nothing of a job for an unknown name, and makes dead letters of jobs that it cannot read', async () => {
    await outboxIsQuiet(at.database.db)
    const [before, first] = [await outbox().countDocuments(), await deadLetters()]
    const asked = await jobAsAsked('nobody@example.com')
    await honestRequestsAreServed()
    await outboxIsQuiet(at.database.db)
    expect(await outbox().countDocuments()).to.equal(before)
    expect(complaintsAbout(String(asked._id))).to.deep.equal([])
    expect(complaintsAbout('nobody@example.com')).to.deep.equal([])

    const { _id, kind, identifier: _typed, ...unnamed } = asked
    const whole = { ...unnamed, kind, identifier: 'nobody@example.com' }
    // Each field in each wrong way: test/stores/store.test.ts.
    const damaged: Record<string, Document> = {
      'no kind': { ...unnamed, identifier: 'nobody@example.com' },
      'a kind that is a list': { ...whole, kind: [kind] },
      'a carried state that is a list': { ...whole, carried: { state: ['a', 'b'] } },
      'an account that is a number': { ...unnamed, kind, account_id: 7 },
      'an account that never was': { ...unnamed, kind, account_id: 'nobody at all' },
    }
    const jobs = Object.entries(damaged).map(([what, job], number) => ({
      what,
      job: { _id: `by-hand-${number}`, ...job } as JobDocument,
    }))
    // No id of ours: nobody works on it, and it stands in nobody's way.
    const strange = new ObjectId()
    await outbox().insertMany([{ ...whole, _id: strange }, ...jobs.map(({ job }) => job)])
    await areDeadSoon(first, jobs.length)
    await honestRequestsAreServed()
    for (const { what, job } of jobs) {
      await expectDeadLetter(job, what)
      expect(complaintsAbout(String(job._id)), what).to.have.length(1)
    }
    expect(await outbox().findOne({ _id: strange })).to.include({ state: 'requested', attempts: 0 })
  })

  const version = { $add: ['$version', 1] }
  const otherTypes = {
    smtp_port: ['25'],
    smtp_host: 7,
    smtp_from: { $literal: { address: 'accounts@example.org' } },
    password_reset_expiration: null,
    require_email_verification: 'yes',
  }
  const bad = { 'values.smtp_port': 'abc' }
  const list = [['smtp_port', '25']]
  const typed = [
    'smtp_port',
    'smtp_from',
    'password_reset_expiration',
    'require_email_verification',
  ]
  const settingsRecords: [what: string, change: Document[], keys: string[]][] = [
    ['values that are not acceptable', [{ $set: { ...bad, version } }], ['smtp_port']],
    ['values of other types', [{ $set: { values: otherTypes, version } }], typed],
    ['a list for values', [{ $set: { values: list, version } }], ['values']],
    ['no version', [{ $unset: 'version' }], ['values']],
    ['a version that is a text', [{ $set: { version: 'seven' } }], ['values']],
  ]
  for (const [what, change, keys] of settingsRecords) {
    it(`says once what is wrong with a settings record with ${what}, and takes the admin's correction`, async () => {
      const good = {
        ...smtpSettings(at.mail.port),
        password_reset_expiration: '1h',
        require_email_verification: 'false',
      }
      await putSettings(at.server, good)
      const before = at.server.output().length
      const settings = at.database.db.collection<{ _id: string }>('settings')
      const { matchedCount } = await settings.updateOne({ _id: 'settings' }, change)
      expect(matchedCount).to.equal(1)
      for (const key of keys) {
        await eventually(
          `a line about ${key}`,
          () => complaintsAbout(`"${key}"`, before).length > 0,
        )
      }
      if (keys.includes('values')) {
        const refused: unknown = await putSettings(at.server, good).catch((error) => error)
        expect(String(refused)).to.include('settings_unreadable')
        await settings.updateOne({ _id: 'settings' }, { $set: { values: {}, version: 1 } })
      }
      await putSettings(at.server, good)
      await honestRequestsAreServed()
      const lines = keys.map((key) => [key, complaintsAbout(`"${key}"`, before).length])
      expect(lines).to.deep.equal(keys.map((key) => [key, 1]))
    })
  }
})
