import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import { Decimal128, Long, ObjectId } from 'mongodb'
import {
  after as later,
  claimOne,
  eventIn,
  hour,
  minute,
  mustExist,
  sampleClaim,
  sampleClientLogout,
  sampleMailJob,
  samplePendingLogin,
  sampleResetToken,
  sampleVerificationToken,
} from './contract/samples.ts'
import type { AccountFlowsStore, NewMailJob } from '../../src/store/index.ts'
import { describeWithMongo, suiteDatabase } from '../support/mongod.ts'
import { keptOn } from '../support/kept.ts'

interface AnyDocument {
  _id: string
  [field: string]: unknown
}

/** One database for a suite, emptied for each test, and its documents as they are stored. */
function emptiedStore() {
  const fresh = suiteDatabase()
  const stored = (name: string) => fresh.db.collection<AnyDocument>(name)

  return {
    fresh,
    stored,

    /** The one document there. */
    storedOne: async (name: string) => mustExist((await stored(name).findOne()) ?? undefined),

    /** Emptied, not dropped: MongoDB under Wine takes its time over new collections. */
    async emptyStore() {
      for (const collection of await fresh.db.collections()) await collection.deleteMany({})
      return keptOn(fresh.db)
    },
  }
}

async function expectRefused(act: () => Promise<unknown>, what = String(act)) {
  const refusal: unknown = await act().catch((error: unknown) => error)
  expect(refusal, what).to.be.instanceOf(TypeError)
}

describeWithMongo('mongoStore()', () => {
  const { fresh, stored, storedOne, emptyStore } = emptiedStore()

  describe('what is stored', () => {
    it('is nothing of a reset token but its hash, in its fields', async () => {
      const { resetTokens } = await emptyStore()
      const { parameters: _, ...token } = sampleResetToken()
      await resetTokens.issue({ ...token, parameters: { state: '' } })
      const { _rev, _was, ...document } = await storedOne('password_reset_tokens')
      expect([typeof _rev, _was]).to.deep.equal(['string', null])
      expect(document).to.deep.equal({
        _id: token.id,
        token_hash: token.tokenHash,
        user_id: 'ann',
        email: 'Ann@example.com',
        locale: 'de-AT',
        password_digest: 'digest',
        client_id: null,
        redirect_uri: null,
        scope: null,
        state: '',
        address_id: null,
        pending_login_id: null,
        mail_job_id: 'job',
        attempt: 1,
        requested_at: token.requestedAt,
        created_at: token.createdAt,
        expires_at: token.expiresAt,
        used_at: null,
        claimed_at: null,
        invalidated_at: null,
        completed_at: null,
        claimed_by: null,
        new_hash: null,
        lease_until: null,
        purge_at: new Date(token.expiresAt.getTime() + 8 * 24 * hour),
        live_of: 'ann',
      })
    })

    it('holds no new password hash once the reset is used or rejected', async () => {
      const { resetTokens } = await emptyStore()
      for (const step of ['used', 'rejected'] as const) {
        const { id, tokenHash } = sampleResetToken()
        await resetTokens.issue({ ...sampleResetToken(), id, tokenHash })
        await resetTokens.claim({ id }, sampleClaim({ at: later(1) }))
        const record = () => stored('password_reset_tokens').findOne({ _id: id })
        expect(await record()).to.include({ new_hash: 'next' })
        await resetTokens.advance(id, step, later(2))
        expect(await record()).to.include({ new_hash: null })
      }
    })

    it('holds no typed identifier once the job is resolved or given up', async () => {
      const { outbox } = await emptyStore()
      await outbox.add(sampleMailJob())
      const job = mustExist(await claimOne(outbox, 'resolve', 1))
      expect(await stored('mail_outbox').findOne()).to.include({ identifier: 'ann' })
      await outbox.resolve(job, 'id of ann', later(minute))
      expect(await stored('mail_outbox').findOne()).to.include({ identifier: null })

      await stored('mail_outbox').updateOne({}, { $set: { identifier: 'ann' } })
      await outbox.giveUp(job, later(2), 'no such mailbox')
      const dead = await storedOne('mail_outbox')
      expect(dead).to.deep.include({
        state: 'dead',
        reason: 'no such mailbox',
        account_id: 'id of ann',
        purge_at: new Date(later(2).getTime() + 7 * 24 * hour),
      })
      expect(dead).to.include({ identifier: null, lease_id: null, available_at: null })
    })
  })

  it('lets nothing but a text into a filter, and nothing but a positive integer be a limit (INJ-05)', async () => {
    const { resetTokens, verificationTokens, outbox, audit } = await emptyStore()
    await resetTokens.issue(sampleResetToken())
    await outbox.add(sampleMailJob())
    const notText: unknown[] = [undefined, null, { $ne: '' }, /./, [{ $ne: '' }], 1]
    for (const each of notText) {
      // @ts-expect-error: a caller without types
      const value: string = each
      for (const act of [
        () => resetTokens.claim({ id: value }, sampleClaim({ at: later(1) })),
        () => resetTokens.revoke({ userId: value, upTo: sampleResetToken() }, later(1)),
        () => verificationTokens.revoke({ userId: value }, later(1)),
        () => resetTokens.advance(value, 'used', later(1)),
        () => outbox.requestsOf(value, 'password_reset'),
        () => outbox.supersede([value], later(1)),
        () => resetTokens.find(value),
        () => verificationTokens.ofUser(value, 1),
        () => outbox.revive(value, later(1), later(hour)),
        () => outbox.discard({ id: value }, later(1)),
        // @ts-expect-error: a caller without types
        () => audit.list({ types: [value], limit: 1 }),
        ...(value === undefined
          ? []
          : [
              () => outbox.list({ id: value, limit: 1 }, later(1)),
              () => outbox.list({ accountId: value, limit: 1 }, later(1)),
              () => audit.list({ id: value, limit: 1 }),
              () => audit.list({ accountId: value, limit: 1 }),
              () => audit.list({ identifierHash: value, limit: 1 }),
            ]),
      ]) {
        await expectRefused(act)
      }
    }
    const bobs = sampleResetToken({ userId: 'bob' })
    await resetTokens.issue(bobs)
    const claim = (at: Date) => resetTokens.claim(bobs, sampleClaim({ at }))
    expect(await claim(new Date('invalid'))).to.equal(undefined)
    expect(await claim(later(1))).to.include({ id: bobs.id })
    for (const limit of [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53]) {
      for (const act of [
        () => resetTokens.ofUser('ann', limit),
        () => verificationTokens.ofUser('ann', limit),
        () => outbox.list({ limit }, later(1)),
        () => audit.list({ limit }),
      ]) {
        await expectRefused(act, `${limit} ${String(act)}`)
      }
    }
    expect(await resetTokens.ofUser('ann', 1)).to.have.length(1)
  })

  it('works the same whatever the host chose for its Db', async () => {
    await emptyStore()
    const odd = fresh.client.db(fresh.db.databaseName, {
      ignoreUndefined: true,
      promoteValues: false,
      useBigInt64: false,
      raw: true,
      readPreference: 'secondaryPreferred',
      writeConcern: { w: 0 },
    })
    const { settings, outbox, audit } = keptOn(odd)
    expect(await settings.write({ smtp_host: 'a' }, 0)).to.equal(true)
    expect(await settings.read()).to.deep.equal({ version: 1, values: { smtp_host: 'a' } })
    await outbox.add(sampleMailJob())
    const claimed = await claimOne(outbox, 'resolve', 1, minute - 1)
    expect(claimed).to.include({ attempts: 0 })
    expect(await keptOn(odd).now()).to.be.instanceOf(Date)
    const [status] = await outbox.list({ limit: 1 }, later(1))
    expect(status).to.deep.include({ attempts: 0, nextAttemptAt: later(minute), isHeld: true })
    const about = { type: 'sessions_ended', at: later(0), accountId: 'ann' } as const
    const event = { id: 'event', ...about }
    await audit.record({ ...event, details: { oauth: 1, idp: undefined } }, hour)
    expect(await eventIn(audit, 'event')).to.deep.include({ ...event, details: { oauth: 1 } })
    expect(await outbox.discard({ id: mustExist(status).id }, later(minute))).to.equal(1)
  })
})

describeWithMongo('mongoStore() with a damaged record [full]', () => {
  const { stored, storedOne, emptyStore } = emptiedStore()

  /** A time that JavaScript does not know. */
  const beyond = { $toDate: Long.fromString('9000000000000000000') }
  const values = [null, '', 1, true, {}, new Date().toISOString(), [later(hour)], [null], [true]]
  /** Fields that are `null` where there is nothing to tell. */
  const optional =
    /^(locale|pending_login_id|client_id|redirect_uri|scope|state|sid|address|user_agent|account_id|reason|details|identifier_hash|idp_at|oauth_at|ends|purge_at)$/

  function typeOf(value: unknown) {
    if (value === null) return 'null'
    if (value instanceof Date) return 'date'
    return Array.isArray(value) ? 'array' : typeof value
  }

  /** Each field once missing, and once with each value of another type. */
  function* damaged({ _id, _was, ...document }: AnyDocument): Generator<AnyDocument> {
    for (const [field, right] of Object.entries(document)) {
      const { [field]: _, ...rest } = document
      yield { _id, _was, ...rest }
      // A text or a time may be what belongs there.
      const others = right === null ? [1] : [...values, [right]]
      for (const value of others)
        if (typeOf(value) !== typeOf(right) && (value !== null || !optional.test(field)))
          yield { _id, _was, ...rest, [field]: value }
    }
  }

  /** In the place of the document that has this id. */
  const store = (name: string, document: AnyDocument) =>
    stored(name).replaceOne({ _id: document._id }, document, { upsert: true })

  /** A time of the one document there becomes one that JavaScript does not know. */
  const setBeyond = (name: string, _id: string, ...fields: string[]) =>
    stored(name).updateOne({ _id }, [
      { $set: Object.fromEntries(fields.map((field) => [field, beyond])) },
    ])

  it('knows no usable token, lets nobody claim one, tells of none and hides no other (TOK-04, TOK-07)', async () => {
    const { resetTokens, verificationTokens } = await emptyStore()
    const token = sampleVerificationToken({ id: 'damaged' })
    await resetTokens.issue(token)
    await verificationTokens.issue(token)
    async function claim() {
      const found = await resetTokens.find(token.tokenHash)
      return found && resetTokens.claim(found, sampleClaim({ at: later(1) }))
    }
    for (const [name, part, claimed] of [
      ['password_reset_tokens', resetTokens, claim],
      ['email_verification_tokens', verificationTokens, async () => undefined],
    ] as const) {
      const document = await storedOne(name)
      const told = () => Promise.all([part.find(token.tokenHash), part.ofUser('ann', 10)])
      let count = 0
      for (const each of damaged(document)) {
        count += 1
        await store(name, each)
        expect(await told(), JSON.stringify(each)).to.deep.equal([undefined, []])
        expect(await claimed(), JSON.stringify(each)).to.equal(undefined)
      }
      expect(count).to.be.greaterThan(90)
      for (const field of ['created_at', 'expires_at', 'used_at']) {
        await store(name, document)
        expect((await told())[1]).to.have.length(1)
        await setBeyond(name, 'damaged', field)
        expect(await told(), field).to.deep.equal([undefined, []])
      }
      const sound = sampleVerificationToken({ createdAt: later(-1) })
      await part.issue(sound)
      const [history] = await part.ofUser('ann', 1)
      expect(history).to.include({ id: sound.id })
    }
  })

  it('knows no pending login and no job, and does not hold up the others', async () => {
    const { pendingLogins, outbox, resetTokens } = await emptyStore()
    const { id } = samplePendingLogin()
    await pendingLogins.save({ ...samplePendingLogin(), id }, 9)
    const other = { params: {}, login: { accountId: 1, ts: 1 } }
    for (const captured of ['{', [], other, 1, null]) {
      await stored('pending_logins').updateOne({ _id: id }, { $set: { captured } })
      expect(await pendingLogins.find({ id })).to.equal(undefined)
    }

    await outbox.add(sampleMailJob({ id: 'damaged' }))
    await stored('mail_outbox').updateOne({}, { $set: { 'parameters.state': 1 } })
    await delay(3)
    await outbox.add(sampleMailJob({ id: 'sound' }))
    const claim = () => outbox.claim('resolve', 10, later(1), later(minute))
    expect((await claim()).map(({ id }) => id)).to.deep.equal(['sound'])
    expect(await claim()).to.deep.equal([])

    for (const each of ['damaged', 'sound']) {
      const token = sampleResetToken({ id: each, userId: each })
      await resetTokens.issue(token)
      await resetTokens.claim(token, sampleClaim({ at: later(1) }))
    }
    await stored('password_reset_tokens').updateOne({ _id: 'damaged' }, { $set: { new_hash: 1 } })
    const taken = await resetTokens.takeUnfinished(later(minute), later(hour))
    expect(taken).to.include({ id: 'sound' })
    expect(await resetTokens.takeUnfinished(later(minute), later(hour))).to.equal(undefined)
  })

  it('tells no client of it, and does not hold up the others', async () => {
    const { clientLogouts } = await emptyStore()
    const [bad, sound] = [sampleClientLogout(), sampleClientLogout()]
    await clientLogouts.add([bad])
    // Nobody reads when it goes.
    const { purge_at: _, ...read } = await storedOne('client_logouts')
    for (const each of damaged(read)) {
      await stored('client_logouts').deleteMany()
      await stored('client_logouts').insertOne(each)
      await clientLogouts.add([sound])
      const told: string[] = []
      for (let look = 0; look < 3; look += 1)
        for (const { id } of await clientLogouts.claim(9, later(1), later(minute), []))
          told.push(id)
      expect(told, JSON.stringify(each)).to.deep.equal([sound.id])
      const found = await clientLogouts.find({ accountId: 'ann' })
      expect(found.map(({ id }) => id)).to.include(sound.id)
    }
  })

  describe('of a mail', () => {
    const JOBS = 'mail_outbox'
    const claimed = (outbox: AccountFlowsStore['outbox']) =>
      outbox.claim('resolve', 1, later(1), later(minute))

    async function oneJob(more: Partial<NewMailJob> = {}) {
      const { outbox } = await emptyStore()
      await outbox.add(sampleMailJob({ id: 'job', ...more }))
      return { outbox, document: await storedOne(JOBS) }
    }

    it('makes a dead letter of it with its reason, whatever is wrong', async () => {
      const { outbox, document } = await oneJob()
      const nobodys = { ...document, identifier: null }
      for (const each of [...damaged(document), { ...document, attempts: -1 }, nobodys]) {
        await store(JOBS, each)
        const outcome = [await claimed(outbox), await outbox.giveUpUnreadable(later(1))]
        expect(outcome, JSON.stringify(each)).to.deep.equal([[], ['job']])
        const dead = await storedOne(JOBS)
        expect(dead).to.include({ state: 'dead', reason: 'unreadable', identifier: null })
        expect(dead['purge_at']).to.be.instanceOf(Date)
        expect(await outbox.giveUpUnreadable(later(1))).to.deep.equal([])
      }
      for (const field of ['not_before', 'expires_at', 'requested_at']) {
        await store(JOBS, document)
        await setBeyond(JOBS, 'job', field)
        const outcome = [await claimed(outbox), await outbox.giveUpUnreadable(later(1))]
        expect(outcome, field).to.deep.equal([[], ['job']])
      }
    })

    it('leaves a kind or a state that a newer version knows to that one (FLT-23)', async () => {
      const { outbox, document } = await oneJob()
      for (const changes of [{ kind: 'newsletter' }, { state: 'waiting' }]) {
        const newer = { ...document, ...changes }
        await store(JOBS, newer)
        expect(await claimed(outbox)).to.deep.equal([])
        expect(await outbox.giveUpUnreadable(later(1))).to.deep.equal([])
        expect(await storedOne(JOBS)).to.deep.equal(newer)
      }
      await store(JOBS, document)
      expect(await claimOne(outbox, 'resolve', 1)).to.include({ id: 'job' })
    })

    it('is told once it is a dead letter, is never revived, and can be discarded', async () => {
      const { outbox, document } = await oneJob({ identifier: 'typed', notBefore: later(minute) })
      const revive = () => outbox.revive('job', later(1), later(hour))
      for (const each of damaged(document)) {
        const what = JSON.stringify(each)
        await store(JOBS, each)
        expect(await revive(), what).to.equal('not_found')
        expect(await storedOne(JOBS), what).to.deep.equal(each)
        await outbox.giveUpUnreadable(later(1))
        const letters = await outbox.list({ limit: 2 }, later(1))
        expect(letters, what).to.have.length(1)
        expect(letters[0], what).to.include({ id: 'job', state: 'dead', reason: 'unreadable' })
        expect(JSON.stringify(letters)).not.to.include('typed')
        expect(await revive(), what).to.equal('no_account')
        expect(await outbox.discard({ id: 'job' }, later(1)), what).to.equal(1)
      }
      await store(JOBS, document)
      expect(await revive()).to.equal('revived')
    })

    it('is not revived as a dead letter', async () => {
      const { outbox } = await oneJob()
      const job = mustExist(await claimOne(outbox, 'resolve', 1))
      await outbox.resolve(job, 'ann', later(minute))
      await outbox.giveUp(job, later(2), 'refused')
      const letter = await storedOne(JOBS)
      const revive = () => outbox.revive('job', later(3), later(hour))
      const ofOthers = { ...letter, kind: 'newsletter' }
      for (const each of [...damaged(letter), ofOthers, { ...letter, attempts: -1 }]) {
        const what = JSON.stringify(each)
        await store(JOBS, each)
        expect(await revive(), what).to.equal('not_found')
        expect(await storedOne(JOBS), what).to.deep.equal(each)
      }
      const nobodys = { ...letter, account_id: null }
      await store(JOBS, nobodys)
      expect(await revive()).to.equal('no_account')
      expect(await storedOne(JOBS)).to.deep.equal(nobodys)
      await store(JOBS, letter)
      expect(await revive()).to.equal('revived')
    })

    it('is left alone where its id is no text', async () => {
      const { outbox, document } = await oneJob()
      const id = new ObjectId()
      // @ts-expect-error: written by somebody else
      await stored(JOBS).insertOne({ ...document, _id: id, state: 'dead' })
      expect(await outbox.giveUpUnreadable(later(1))).to.deep.equal([])
      const listed = await outbox.list({ limit: 10 }, later(1))
      expect(listed.map((job) => job.id)).to.deep.equal(['job'])
      expect(await outbox.discard('dead', later(1))).to.equal(0)
      expect(await stored(JOBS).countDocuments()).to.equal(2)
      expect(await claimed(outbox)).to.have.length(1)
    })
  })

  describe('of an event', () => {
    const EVENTS = 'audit_events'
    const event = async () =>
      mustExist((await stored(EVENTS).findOne({ _id: 'event' })) ?? undefined)

    it('is not told, and hides no other', async () => {
      const { audit } = await emptyStore()
      const requester = { address: '192.0.2.1', userAgent: 'test', clientId: 'app' }
      const about = { accountId: 'ann', details: { identifier_hash: 'hash' }, ...requester }
      const type = 'password_reset_requested'
      const recorded = { id: 'event', type, at: later(0), reason: 'expired', ...about } as const
      await audit.record({ ...recorded, id: 'sound' }, hour)
      await delay(3)
      await audit.record(recorded, hour)
      const document = await event()
      const ids = async () => (await audit.list({ limit: 10 })).map(({ id }) => id)
      for (const each of damaged(document)) {
        const what = JSON.stringify(each)
        await store(EVENTS, each)
        expect(await eventIn(audit, 'event'), what).to.equal(undefined)
        expect(await ids(), what).to.deep.equal(['sound'])
      }
      for (const field of ['at', 'recorded_at']) {
        await store(EVENTS, document)
        expect(await ids()).to.deep.equal(['event', 'sound'])
        await setBeyond(EVENTS, 'event', field)
        expect(await ids(), field).to.deep.equal(['sound'])
      }
    })

    it('takes the id of a forgotten account out of an action of an admin all the same (LOG-12)', async () => {
      const { audit, forget } = await emptyStore()
      const about = { accountId: 'ann', details: { action: 'send_reset', actor: 'admin' } }
      await audit.record({ id: 'event', type: 'admin_action', at: later(0), ...about }, hour)
      const document = await event()
      for (const details of [undefined, null, 'text', [], ['text'], 1]) {
        await store(EVENTS, { ...document, details })
        await forget('ann', later(1), 'hash')
        const left = await stored(EVENTS).countDocuments({ account_id: 'ann' })
        expect(left, JSON.stringify(details)).to.equal(0)
      }
    })
  })

  it('begins anew with a key whose window of a limit is damaged, and knows no cut-off that lets sessions live', async () => {
    const { limits, cutoffs } = await emptyStore()
    await limits.hit('key', minute)
    const wholeLimit = await storedOne('rate_limits')
    const noCounts = [-1, 1.5, Number.NaN].map((count) => ({ ...wholeLimit, count }))
    for (const each of [...damaged(wholeLimit), ...noCounts]) {
      await store('rate_limits', each)
      expect((await limits.hit('key', minute)).count, JSON.stringify(each)).to.equal(1)
      expect((await limits.hit('key', minute)).count).to.equal(2)
    }
    expect((await limits.hit('another key', minute)).count).to.equal(1)
    await cutoffs.end('ann', { id: 'first', at: later(0) })
    const whole = await storedOne('session_cutoffs')
    for (const each of [
      ...damaged(whole),
      { ...whole, oauth_at: null },
      { ...whole, idp_at: null },
    ]) {
      await store('session_cutoffs', each)
      for (const work of [
        () => cutoffs.read('ann'),
        () => cutoffs.end('ann', { id: 'end', at: later(1), isExact: true }),
      ]) {
        const refusal: unknown = await work().catch((error: unknown) => error)
        expect(refusal, JSON.stringify(each)).to.include({ code: 'ERR_STORE_DAMAGED' })
      }
    }
    await store('session_cutoffs', whole)
    await cutoffs.end('ann', { id: 'end', at: later(0), idpAt: later(hour) })
    expect(await cutoffs.read('ann')).to.deep.include({ idpAt: later(hour), oauthAt: later(1) })
  })

  it('reads settings as text, never loses a value in silence, can write them again, and leaves a damaged version out of the history alone', async () => {
    const { settings } = await emptyStore()
    await settings.write({ smtp_host: 'mail.example' }, 0)
    const document = await storedOne('settings')
    const mixed = { smtp_host: 'mail.example', smtp_port: 587, smtp_from: null }
    const texts = { smtp_host: 'mail.example', smtp_port: '587', smtp_from: 'null' }
    const deep = { nested: { $gt: '' }, list: ['x'] }
    for (const [written, values] of [
      [mixed, texts],
      [deep, { nested: '{"$gt":""}', list: '["x"]' }],
      [{ on: true }, { on: 'true' }],
    ] as const) {
      await store('settings', { ...document, values: written })
      expect(await settings.read()).to.deep.equal({ version: 1, values })
      expect(await settings.write({}, 1)).to.equal(true)
      expect(await settings.read()).to.deep.equal({ version: 2, values: {} })
    }
    const versions = [Infinity, -1, [5], '7', Decimal128.fromString('5'), {}]
    const wrong = [
      ...versions.map((version) => ({ version })),
      ...['text', ['a'], null, 1, new Date(0), new ObjectId()].map((values) => ({ values })),
    ]
    for (const each of wrong) {
      const what = JSON.stringify(each)
      await store('settings', { ...document, ...each })
      expect(await settings.read(), what).to.deep.equal({
        version: 0,
        values: {},
        isUnreadable: true,
      })
      expect(await settings.write({}, 1), what).to.equal(false)
      expect(await settings.write({}, 0), what).to.equal(true)
      expect(await settings.read(), what).to.deep.equal({ version: 1, values: {} })
    }
    const good = { version: 2, at: later(1), actor: 'ann', secrets: ['a'], values: { on: 'x' } }
    const least = { version: 1, secrets: [], values: {} }
    const odd = { ...least, at: 'yesterday', actor: 5, secrets: 'a' }
    const damages = [null, 'text', [], {}, { version: '1', values: {} }, { version: 1, values: [] }]
    const kept = { ...good, at: good.at.toISOString() }
    await store('settings', { ...document, history: [...damages, odd, kept] })
    expect((await settings.read()).history).to.deep.equal([least, good])
    for (const history of ['text', null, {}, 5]) {
      await store('settings', { ...document, history })
      expect((await settings.read()).history).to.equal(undefined)
    }
    expect(await settings.write({}, 1, [good])).to.equal(true)
    expect((await settings.read()).history).to.deep.equal([good])
  })
})
