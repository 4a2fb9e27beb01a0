import { expect } from 'chai'
import { ObjectId, type Collection, type Document } from 'mongodb'
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
import { addPerson, usersOf } from './people.ts'
import { suiteService } from './servers.ts'

const DEAD_WITHIN_MS = 10_000

interface LogLine {
  level: string
  text: string
}

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
  let outbox: Collection<JobDocument>
  let honest = 0

  before(() => {
    outbox = at.database.db.collection<JobDocument>('mail_outbox')
  })

  const logLines = (from = 0): LogLine[] =>
    at.server
      .output()
      .slice(from)
      .split('\n')
      .map((text) => ({ text, level: /"level":"(\w+)"/.exec(text)?.[1] ?? '' }))

  const complaintsAbout = (what: string, from?: number) =>
    logLines(from)
      .filter(({ level, text }) => ['warn', 'error'].includes(level) && text.includes(what))
      .map(({ text }) => text)

  /** Some rounds of the worker later, nothing but these mails has arrived. */
  async function honestRequestsAreServed() {
    const before = at.mail.mails.length
    const accounts = await addAccounts(at.database.db, `honest-${(honest += 1)}`, 3)
    for (const { username, email } of accounts) {
      await forgot(at, username)
      expect(await opensForm((await at.mail.mailTo(email)).link)).to.equal(true)
    }
    expect(at.mail.mails.slice(before).flatMap(({ to }) => to)).to.deep.equal(
      accounts.map(({ email }) => email),
    )
  }

  async function expectDeadLetter({ _id }: JobDocument, what: string) {
    const job = await outbox.findOne({ _id })
    expect(job?.['state'], what).to.equal('dead')
    expect(job?.['reason'], what).to.be.a('string').and.not.equal('')
    expect(job?.['purge_at'], what).to.be.instanceOf(Date)
    expect(job, what).to.not.have.property('identifier')
  }

  /** What there is once each job is a dead letter, or when the time for that is up. */
  async function foundSoon<T extends { dead: unknown }>(look: () => Promise<T[]>): Promise<T[]> {
    let seen: T[] = []
    await eventually(
      'each job is a dead letter',
      async () => {
        seen = await look()
        return seen.every(({ dead }) => dead)
      },
      DEAD_WITHIN_MS,
    ).catch(() => {})
    return seen
  }

  /** Asks, and answers what the outbox holds before any worker has seen it. */
  async function jobAsAsked(identifier: string): Promise<JobDocument> {
    return eventually('a job is caught', async () => {
      await forgot(at, identifier)
      process.kill(at.server.pid, 'SIGSTOP')
      try {
        return (await outbox.findOne({ identifier })) ?? false
      } finally {
        process.kill(at.server.pid, 'SIGCONT')
      }
    })
  }

  async function liveTokens({ id }: Account): Promise<number> {
    const live = { user_id: id, used_at: null, invalidated_at: null }
    return at.database.db.collection('password_reset_tokens').countDocuments(live)
  }

  it('makes dead letters of jobs for accounts that no mail can reach', async () => {
    const changes: [what: string, change: Document][] = [
      ...Object.entries(BAD_ADDRESSES).map(([what, email]): [string, Document] => [
        `an address ${what}`,
        { $set: { email } },
      ]),
      ['no address', { $unset: { email: true } }],
      ['no right to sign in', { $set: { disabled: true } }],
    ]
    const unreachable: { what: string; account: Account }[] = []
    for (const [what, change] of changes) {
      const account = await addPerson(at)
      await usersOf(at).updateOne({ _id: account.id }, change)
      await forgot(at, account.username)
      unreachable.push({ what, account })
    }
    const jobs = await foundSoon(async () => {
      const found = await outbox.find({ state: 'dead' }).toArray()
      return unreachable.map(({ what, account }) => ({
        what,
        account,
        dead: found.find((job) => job['account_id'] === account.id),
      }))
    })
    await honestRequestsAreServed()

    const wrong: string[] = []
    for (const { what, account, dead } of jobs) {
      if (!dead) wrong.push(`${what}: no dead letter`)
      else await expectDeadLetter(dead, what)
      const complaints = dead ? complaintsAbout(String(dead._id)).length : 1
      if (complaints !== 1) wrong.push(`${what}: ${complaints} lines`)
      expect(await liveTokens(account), what).to.equal(0)
    }
    expect(wrong).to.deep.equal([])
  })

  it('makes a dead letter of a job for an account that was deleted after it was looked up', async () => {
    const account = await addPerson(at)
    deferred.add(account.email)
    await forgot(at, account.username)
    const waiting = await eventually('a first attempt fails', async () =>
      outbox
        .findOne({ account_id: account.id, reason: { $exists: true } })
        .then((job) => job ?? false),
    )
    const before = at.server.output().length
    await usersOf(at).deleteOne({ _id: account.id })
    deferred.delete(account.email)

    await eventually('its job is a dead letter', async () => {
      return (await outbox.countDocuments({ _id: waiting._id, state: 'dead' })) === 1
    })
    await expectDeadLetter(waiting, 'deleted')
    await honestRequestsAreServed()
    expect(complaintsAbout(String(waiting._id), before)).to.have.length(1)
    expect(await liveTokens(account)).to.equal(0)
  })

  it('keeps nothing of a job for an unknown name', async () => {
    await outboxIsQuiet(at.database.db)
    const before = await outbox.countDocuments()
    const nobody = await jobAsAsked('nobody@example.com')
    await honestRequestsAreServed()
    await outboxIsQuiet(at.database.db)
    expect(await outbox.countDocuments()).to.equal(before)
    expect(complaintsAbout(String(nobody._id))).to.deep.equal([])
    expect(complaintsAbout('nobody@example.com')).to.deep.equal([])
  })

  it('makes dead letters of jobs that it cannot read', async () => {
    const asked = await jobAsAsked('nobody@example.com')
    await outboxIsQuiet(at.database.db)
    const { _id, kind, identifier: _typed, ...unnamed } = asked
    const whole = { ...unnamed, kind, identifier: 'nobody@example.com' }
    // Each field in each wrong way: test/stores/mongodb-store-damage.test.ts.
    const damaged: Record<string, Document> = {
      'no kind': { ...unnamed, identifier: 'nobody@example.com' },
      'a kind that is a list': { ...whole, kind: [kind] },
      'a carried state that is a list': { ...whole, carried: { state: ['a', 'b'] } },
      'an account that is a number': { ...unnamed, kind, account_id: 7 },
      'an account that never was': { ...unnamed, kind, account_id: 'nobody at all' },
      'an ObjectId': { ...whole, _id: new ObjectId() },
    }
    const jobs = Object.entries(damaged).map(([what, job], number) => ({
      what,
      job: { _id: `by-hand-${number}`, ...job },
    }))
    await outbox.insertMany(jobs.map(({ job }) => job))

    const outcomes = await foundSoon(async () => {
      const stored = await outbox.find({ _id: { $in: jobs.map(({ job }) => job._id) } }).toArray()
      return jobs.map(({ what, job: { _id } }) => {
        const job = stored.find((each) => String(each._id) === String(_id))
        return { what, job, dead: job?.['state'] === 'dead' }
      })
    })
    await honestRequestsAreServed()
    for (const { what, job, dead } of outcomes) {
      expect(dead, what).to.equal(true)
      if (job) await expectDeadLetter(job, what)
      expect(complaintsAbout(String(job?._id)), what).to.have.length(1)
    }
  })

  const version = { $add: ['$version', 1] }
  const otherTypes = {
    smtp_port: ['25'],
    smtp_host: 7,
    smtp_from: { $literal: { address: 'accounts@example.org' } },
    password_reset_expiration: null,
    require_email_verification: 'yes',
  }
  const settingsRecords: [what: string, change: Document[], keys: string[]][] = [
    [
      'values that are not acceptable',
      [{ $set: { 'values.smtp_port': 'abc', version } }],
      ['smtp_port'],
    ],
    [
      'values of other types',
      [{ $set: { values: otherTypes, version } }],
      ['smtp_port', 'smtp_from', 'password_reset_expiration', 'require_email_verification'],
    ],
    ['a list for values', [{ $set: { values: [['smtp_port', '25']], version } }], ['values']],
    ['no version', [{ $set: { 'values.smtp_port': 'abc' } }, { $unset: 'version' }], ['smtp_port']],
    [
      'a version that is a text',
      [{ $set: { 'values.smtp_port': 'abc', version: 'seven' } }],
      ['smtp_port'],
    ],
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
        await settings.updateOne({ _id: 'settings' }, { $set: { values: {} } })
      }
      await putSettings(at.server, good)
      await honestRequestsAreServed()
      const lines = keys.map((key) => [key, complaintsAbout(`"${key}"`, before).length])
      expect(lines).to.deep.equal(keys.map((key) => [key, 1]))
    })
  }
})
