import { expect } from 'chai'
import { type Document, ObjectId } from 'mongodb'
import { eventually } from '../support/eventually.ts'
import { suiteHarness } from '../support/harness.ts'
import type { MailAnswer } from '../support/mail-server.ts'
import { describeWithMongo } from '../support/mongod.ts'
import { records } from '../support/records.ts'
import { moveTime } from '../support/time.ts'
import { sampleMailJob } from '../store/contract/samples.ts'

describeWithMongo('Jobs that a worker can do nothing about [full]', () => {
  let answer: MailAnswer = 'take'
  const logged: string[] = []
  const h = suiteHarness({
    technology: 'mongodb',
    mail: { answer: () => answer },
    // A notice would come at any moment.
    settings: { password_changed_email: 'false' },
    flows: { log: (...line) => void logged.push(JSON.stringify(line)) },
  })
  const outbox = () => records(h, 'mail_outbox')
  const complaintsAbout = (what: string) =>
    logged.filter((line) => /^\["(?:warn|error)"/.test(line) && line.includes(what))

  /** It is told once, and an honest request is served. */
  async function expectDead(_id: string, what: string) {
    const job = await eventually(`a dead letter: ${what}`, async () => {
      await moveTime(1_000)
      return outbox().findOne({ _id, state: 'dead' })
    })
    expect(job['reason'], what).to.be.a('string').and.not.equal('')
    expect(job['purge_at'], what).to.be.instanceOf(Date)
    expect(job['identifier'], what).to.equal(null)
    await eventually(`it is told: ${what}`, () => complaintsAbout(_id).length > 0)
    expect(complaintsAbout(_id), what).to.have.length(1)
    const before = h.mail.mails.length
    const honest = await h.addVerified()
    await honest.getsBackIn()
    const recipients = h.mail.mails.slice(before).map(({ to }) => to.join())
    expect(recipients, what).to.deep.equal([honest.email])
  }

  it('are dead letters where the account was deleted after it was looked up', async () => {
    const user = await h.addVerified()
    answer = 'defer'
    await h.forgot(user.username)
    const waiting = await eventually('a first attempt fails', () =>
      outbox().findOne({ account_id: user.id, reason: { $ne: null } }),
    )
    logged.splice(0)
    await records(h, 'users').deleteOne({ _id: user.id })
    answer = 'take'
    await expectDead(waiting._id, 'deleted')
    const live = { user_id: user.id, used_at: null, invalidated_at: null }
    expect(await records(h, 'password_reset_tokens').countDocuments(live)).to.equal(0)
  })

  it('leave nothing behind where nobody has the name, and are dead letters where they cannot be read', async () => {
    const identifier = 'nobody@example.com'
    const before = await outbox().countDocuments()
    await h.forgot(identifier)
    await h.isIdle()
    expect(await outbox().countDocuments()).to.equal(before)
    expect(complaintsAbout(identifier)).to.deep.equal([])

    const sample = { id: 'sample', identifier, notBefore: new Date(Date.now() + 3_600_000) }
    await h.store.outbox.add(sampleMailJob(sample))
    const {
      _id,
      kind,
      identifier: _typed,
      ...job
    } = (await outbox().findOneAndDelete({
      _id: 'sample',
    })) as Document
    const due = { ...job, not_before: new Date(), available_at: new Date() }
    const whole = { ...due, kind, identifier }
    // Each field in each wrong way: test/store/store.test.ts.
    const damaged: Record<string, Document> = {
      'no kind': { ...due, identifier },
      'a kind that is a list': { ...whole, kind: [kind] },
      'a carried state that is a list': { ...whole, parameters: { state: ['a', 'b'] } },
      'an account that is a number': { ...due, kind, account_id: 7 },
      'an account that never was': { ...due, kind, account_id: 'nobody at all' },
    }
    // No id of ours: nobody works on it, and it stands in nobody's way.
    const strange = { ...whole, _id: new ObjectId() as unknown as string }
    await outbox().insertOne(strange)
    for (const [what, wrong] of Object.entries(damaged)) {
      await outbox().insertOne({ ...wrong, _id: what })
      await expectDead(what, what)
    }
    const left = await outbox().findOne({ _id: strange._id })
    expect(left).to.include({ state: 'requested', attempts: 0 })
  })
})
