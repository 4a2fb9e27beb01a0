import { Decimal128, Long, ObjectId } from 'mongodb'
import { expect } from 'chai'
import { setTimeout as delay } from 'node:timers/promises'
import { emptiedStore, type AnyDocument } from '../support/emptied-store.ts'
import { describeWithMongo } from '../support/mongod.ts'
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
  statusIn,
} from '../../src/contract/samples.ts'

describeWithMongo('mongoStore() with damaged records [full]', () => {
  const { stored, storedOne, emptyStore } = emptiedStore()

  describe('a damaged record', () => {
    /** A time that JavaScript does not know. */
    const beyond = { $toDate: Long.fromString('9000000000000000000') }
    const values = [null, '', 1, true, {}, new Date().toISOString(), [later(hour)], [null], [true]]
    const optional =
      /^(locale|pending_login_id|client_id|redirect_uri|scope|state|address|ui_locales|accept_language|sid)$/

    function typeOf(value: unknown) {
      if (value === null) return 'null'
      if (value instanceof Date) return 'date'
      return Array.isArray(value) ? 'array' : typeof value
    }

    /** Each field once missing, and once with each value of another type. */
    function* damaged({ _id, ...document }: AnyDocument): Generator<AnyDocument> {
      for (const [field, right] of Object.entries(document)) {
        const { [field]: _, ...rest } = document
        if (!optional.test(field)) yield { _id, ...rest }
        for (const value of [...values, [right]])
          if (typeOf(value) !== typeOf(right)) yield { _id, ...rest, [field]: value }
      }
    }

    it('is no usable reset token, and nobody can claim it (TOK-04, TOK-07)', async () => {
      const { resetTokens } = await emptyStore()
      const token = sampleResetToken()
      await resetTokens.issue(token)
      const tokens = stored('password_reset_tokens')
      const document = await storedOne('password_reset_tokens')
      let count = 0
      for (const each of damaged(document)) {
        count += 1
        await tokens.replaceOne({ _id: token.id }, each, { upsert: true })
        const found = await resetTokens.find(token.tokenHash)
        const claim = await resetTokens.claim(token.tokenHash, sampleClaim({ at: later(1) }))
        expect([found, claim], JSON.stringify(each)).to.deep.equal([undefined, undefined])
      }
      expect(count).to.be.greaterThan(100)
    })

    it('is no pending login, no job, and does not hold up the others', async () => {
      const { pendingLogins, outbox, resetTokens } = await emptyStore()
      const { id } = samplePendingLogin()
      await pendingLogins.save({ ...samplePendingLogin(), id }, 9)
      for (const captured of ['{', '[]', '{"params":{},"login":{"accountId":1,"ts":1}}', 1, null]) {
        await stored('pending_logins').updateOne({ _id: id }, { $set: { captured } })
        expect(await pendingLogins.find({ id })).to.equal(undefined)
      }

      await outbox.add(sampleMailJob({ id: 'damaged' }))
      await stored('mail_outbox').updateOne({}, { $set: { 'carried.state': 1 } })
      await delay(3)
      await outbox.add(sampleMailJob({ id: 'sound' }))
      const claim = () => outbox.claim('resolve', 10, later(1), later(minute))
      expect((await claim()).map(({ id }) => id)).to.deep.equal(['sound'])
      expect(await claim()).to.deep.equal([])

      for (const each of ['damaged', 'sound']) {
        const token = sampleResetToken({ id: each, userId: each })
        await resetTokens.issue(token)
        await resetTokens.claim(token.tokenHash, sampleClaim({ at: later(1) }))
      }
      await stored('password_reset_tokens').updateOne({ _id: 'damaged' }, { $set: { new_hash: 1 } })
      const taken = await resetTokens.takeUnfinished(later(minute), later(hour))
      expect(taken).to.include({ id: 'sound' })
      expect(await resetTokens.takeUnfinished(later(minute), later(hour))).to.equal(undefined)
    })

    it('is a dead letter with its reason, whatever is wrong with a job', async () => {
      const { outbox } = await emptyStore()
      const jobs = stored('mail_outbox')
      await outbox.add(sampleMailJob({ id: 'job' }))
      const document = await storedOne('mail_outbox')
      const { identifier: _, ...nobodys } = document
      const unknown = [{ ...document, attempts: -1 }, nobodys]
      for (const each of [...damaged(document), ...unknown]) {
        await jobs.replaceOne({ _id: 'job' }, each, { upsert: true })
        const claimed = await outbox.claim('resolve', 1, later(1), later(minute))
        const givenUp = await outbox.giveUpUnreadable(later(1))
        expect([claimed, givenUp], JSON.stringify(each)).to.deep.equal([[], ['job']])
        const dead = await storedOne('mail_outbox')
        expect(dead).to.include({ state: 'dead', reason: 'unreadable' })
        expect(dead).to.include.keys('purge_at')
        expect(dead).not.to.include.keys('identifier')
        expect(await outbox.giveUpUnreadable(later(1))).to.deep.equal([])
      }
      for (const field of ['not_before', 'expires_at', 'requested_at']) {
        await jobs.replaceOne({ _id: 'job' }, document, { upsert: true })
        await jobs.updateOne({}, [{ $set: { [field]: beyond } }])
        const claimed = await outbox.claim('resolve', 1, later(1), later(minute))
        const givenUp = await outbox.giveUpUnreadable(later(1))
        expect([claimed, givenUp], field).to.deep.equal([[], ['job']])
      }
    })

    it('is no job of a kind or in a state that a newer version knows: that is left to it (FLT-23)', async () => {
      const { outbox } = await emptyStore()
      const jobs = stored('mail_outbox')
      await outbox.add(sampleMailJob({ id: 'job' }))
      const document = await storedOne('mail_outbox')
      for (const changes of [{ kind: 'newsletter' }, { state: 'waiting' }]) {
        const newer = { ...document, ...changes }
        await jobs.replaceOne({ _id: 'job' }, newer)
        expect(await outbox.claim('resolve', 1, later(1), later(minute))).to.deep.equal([])
        expect(await outbox.giveUpUnreadable(later(1))).to.deep.equal([])
        expect(await storedOne('mail_outbox')).to.deep.equal(newer)
      }
      await jobs.replaceOne({ _id: 'job' }, document)
      expect(await claimOne(outbox, 'resolve', 1)).to.include({ id: 'job' })
    })

    it('is no client that somebody tells, and does not hold up the others', async () => {
      const { clientLogouts } = await emptyStore()
      const [bad, sound] = [sampleClientLogout(), sampleClientLogout()]
      const logouts = stored('client_logouts')
      await clientLogouts.add([bad])
      const document = await storedOne('client_logouts')
      // Nobody reads when it goes.
      const { purge_at: _, ...read } = document
      for (const each of damaged(read)) {
        await logouts.deleteMany()
        await logouts.insertOne(each)
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

    it('is no token that could be told of, and does not hide the others', async () => {
      const { resetTokens, verificationTokens } = await emptyStore()
      const token = sampleVerificationToken({ id: 'damaged' })
      await resetTokens.issue(token)
      await verificationTokens.issue(token)
      for (const [name, store] of [
        ['password_reset_tokens', resetTokens],
        ['email_verification_tokens', verificationTokens],
      ] as const) {
        const tokens = stored(name)
        const document = await storedOne(name)
        const told = () => Promise.all([store.find(token.tokenHash), store.ofUser('ann', 10)])
        for (const each of damaged(document)) {
          await tokens.replaceOne({ _id: 'damaged' }, each)
          expect(await told(), JSON.stringify(each)).to.deep.equal([undefined, []])
        }
        for (const field of ['created_at', 'expires_at', 'used_at']) {
          await tokens.replaceOne({ _id: 'damaged' }, document)
          expect((await told())[1]).to.have.length(1)
          await tokens.updateOne({ _id: 'damaged' }, [{ $set: { [field]: beyond } }])
          expect(await told(), field).to.deep.equal([undefined, []])
        }
        const sound = sampleVerificationToken({ createdAt: later(-1) })
        await store.issue(sound)
        const [history] = await store.ofUser('ann', 1)
        expect(history).to.include({ id: sound.id })
      }
    })

    it('is told of as a mail with what can be read of it, never revived, and can be discarded', async () => {
      const { outbox } = await emptyStore()
      const jobs = stored('mail_outbox')
      const sample = sampleMailJob({ id: 'job', identifier: 'typed', notBefore: later(minute) })
      await outbox.add(sample)
      const document = await storedOne('mail_outbox')
      const sound = mustExist(await statusIn(outbox, 'job'))
      for (const each of damaged(document)) {
        const what = JSON.stringify(each)
        await jobs.replaceOne({ _id: 'job' }, each, { upsert: true })
        const status = mustExist(await statusIn(outbox, 'job'))
        expect(status, what).to.include({ id: 'job', state: 'waiting', isHeld: false })
        expect(status, what).to.have.all.keys(sound)
        expect(JSON.stringify(status)).not.to.include('typed')
        expect(await outbox.list({ limit: 2 }, later(1)), what).to.deep.equal([status])
        const before = await jobs.findOne()
        expect(await outbox.revive('job', later(1), later(hour)), what).to.equal('not_found')
        expect(await jobs.findOne(), what).to.deep.equal(before)
        expect(await outbox.discard({ id: 'job' }, later(1)), what).to.equal(1)
      }
      await jobs.insertOne(document)
      expect(await outbox.revive('job', later(1), later(hour))).to.equal('revived')
    })

    it('is no dead letter that is revived, but for what the revival writes anew', async () => {
      const { outbox } = await emptyStore()
      const jobs = stored('mail_outbox')
      await outbox.add(sampleMailJob({ id: 'job' }))
      const job = mustExist(await claimOne(outbox, 'resolve', 1))
      await outbox.resolve(job, 'ann', later(1), later(minute))
      await outbox.giveUp(job, later(2), 'refused')
      const letter = await storedOne('mail_outbox')
      const { account_id: _, ...nobodys } = letter
      const revive = () => outbox.revive('job', later(3), later(hour))
      const rewritten = new Set(['expires_at', 'requested_at', 'purge_at', 'reason', 'resolved_at'])
      const counts = { revived: 0, not_found: 0 }
      for (const each of [
        ...[...damaged(letter)].filter(({ state }) => state === 'dead'),
        { ...letter, kind: 'newsletter' },
        { ...letter, attempts: -1 },
        { ...letter, reason: 'unreadable' },
      ]) {
        if (!('account_id' in each)) continue
        const what = JSON.stringify(each)
        await jobs.replaceOne({ _id: 'job' }, each, { upsert: true })
        const isHealed = Object.entries(letter).every(
          ([field, right]) =>
            rewritten.has(field) || JSON.stringify(each[field]) === JSON.stringify(right),
        )
        const expected = isHealed ? 'revived' : 'not_found'
        expect(await revive(), what).to.equal(expected)
        counts[expected] += 1
        const claimed = await claimOne(outbox, 'resolve', 3)
        if (isHealed) expect(claimed, what).to.include({ id: 'job', accountId: 'ann' })
        else expect(await jobs.findOne(), what).to.deep.equal(each)
      }
      expect(counts.revived).to.be.greaterThan(30)
      expect(counts.not_found).to.be.greaterThan(30)
      await jobs.replaceOne({ _id: 'job' }, nobodys, { upsert: true })
      expect(await revive()).to.equal('no_account')
      expect(await jobs.findOne()).to.deep.equal(nobodys)
    })

    it('with an id that is no text, or with times beyond reason, is told of as a mail all the same', async () => {
      const { outbox } = await emptyStore()
      const jobs = stored('mail_outbox')
      await outbox.add(sampleMailJob({ id: 'job' }))
      const fields = ['requested_at', 'expires_at', 'available_at']
      await jobs.updateOne({}, [{ $set: Object.fromEntries(fields.map((f) => [f, beyond])) }])
      expect(await statusIn(outbox, 'job')).to.include({
        requestedAt: undefined,
        nextAttemptAt: undefined,
        expiresAt: undefined,
      })
      const id = new ObjectId()
      // @ts-expect-error: written by somebody else
      await jobs.insertOne({ _id: id, state: 'dead' })
      const letters = await outbox.list({ state: 'dead', limit: 10 }, later(1))
      expect(letters.map(({ id }) => id)).to.deep.equal([JSON.stringify(id)])
      expect(await outbox.list({ limit: 10 }, later(1))).to.have.length(2)
      expect(await outbox.discard('dead', later(1))).to.equal(1)
    })

    it('is an event with what can be read of it, or none, and does not hide the others', async () => {
      const { audit } = await emptyStore()
      const events = stored('audit_events')
      const requester = { address: '192.0.2.1', userAgent: 'test', clientId: 'app' }
      const about = { accountId: 'ann', details: { identifier_hash: 'hash' }, ...requester }
      const type = 'password_reset_requested'
      const event = { id: 'event', type, at: later(0), reason: 'expired', ...about } as const
      await audit.record({ ...event, id: 'sound' }, hour)
      await delay(3)
      await audit.record(event, hour)
      const document = mustExist((await events.findOne({ _id: 'event' })) ?? undefined)
      for (const each of damaged(document)) {
        const what = JSON.stringify(each)
        await events.replaceOne({ _id: 'event' }, each)
        const found = await eventIn(audit, 'event')
        const ids = (await audit.list({ limit: 10 })).map(({ id }) => id)
        const isEvent = typeof each['type'] === 'string' && each['at'] instanceof Date
        expect(found !== undefined, what).to.equal(isEvent)
        expect(ids, what).to.have.members(isEvent ? ['event', 'sound'] : ['sound'])
        if (!found) continue
        const { recordedAt, ...rest } = found
        expect(recordedAt, what).to.be.instanceOf(Date)
        expect({ ...event, ...rest }, what).to.deep.include({ id: 'event', at: later(0) })
        for (const value of Object.values(rest)) expect(value, what).not.to.equal(null)
      }
      await events.replaceOne({ _id: 'event' }, document)
      const details = { a: 1, b: null, c: [1], d: { e: 1 } }
      await events.updateOne({ _id: 'event' }, { $set: { details } })
      expect(await eventIn(audit, 'event')).to.deep.include({ details: { a: 1 } })
      await events.updateOne({ _id: 'event' }, [{ $set: { recorded_at: beyond } }])
      expect(await eventIn(audit, 'event')).to.deep.include({ recordedAt: later(0) })
      await events.updateOne({ _id: 'event' }, [{ $set: { at: beyond } }])
      expect(await eventIn(audit, 'event')).to.equal(undefined)
      expect(await audit.list({ limit: 1 })).to.have.length(1)
    })

    it('is an action of an admin that loses the id of a forgotten account all the same (LOG-12)', async () => {
      const store = await emptyStore()
      const events = stored('audit_events')
      const about = { accountId: 'ann', details: { action: 'send_reset', actor: 'admin' } }
      await store.audit.record({ id: 'event', type: 'admin_action', at: later(0), ...about }, hour)
      const document = mustExist((await events.findOne({ _id: 'event' })) ?? undefined)
      for (const details of [undefined, null, 'text', [], ['text'], 1]) {
        await events.replaceOne({ _id: 'event' }, { ...document, details })
        await store.forget('ann', later(1), 'hash')
        const left = mustExist((await events.findOne({ _id: 'event' })) ?? undefined)
        expect(left, JSON.stringify(details)).not.to.have.property('account_id')
      }
    })

    it('is no window of a limit: the key begins anew', async () => {
      const { limits } = await emptyStore()
      const windows = stored('rate_limits')
      const whole = { key: 'key', points: 7, expire: later(hour) }
      for (const change of [
        ...[null, '2020-01-01', 1, {}].map((expire) => ({ expire })),
        ...[null, '7', {}].map((points) => ({ points })),
      ]) {
        await windows.deleteMany({})
        await windows.insertOne({ _id: 'record', ...whole, ...change })
        await limits.hit('key', minute).catch(() => {})
        const { count } = await limits.hit('key', minute)
        expect(count, JSON.stringify(change)).to.be.within(1, 2)
      }
      for (const field of ['expire', 'points'] as const) {
        const { [field]: _, ...rest } = whole
        await windows.deleteMany({})
        await windows.insertOne({ _id: 'record', ...rest })
        await limits.hit('key', minute).catch(() => {})
        expect((await limits.hit('key', minute)).count, field).to.be.within(1, 2)
      }
      expect((await limits.hit('another key', minute)).count).to.equal(1)
    })

    it('is no cut-off that lets sessions live', async () => {
      const { cutoffs } = await emptyStore()
      await stored('session_cutoffs').insertOne({ _id: 'ann', idp_at: 'yesterday' })
      const refusal: unknown = await cutoffs.read('ann').catch((error) => error)
      expect(refusal).to.be.instanceOf(TypeError)
      await cutoffs.end('ann', 'idp', { id: 'end', at: later(1) })
      expect(await cutoffs.read('ann')).to.deep.include({ idpAt: later(1), oauthAt: undefined })
    })

    it('of settings is read as text, never loses a value in silence, and can be written again', async () => {
      const { settings } = await emptyStore()
      for (const [document, values] of [
        [
          { version: '7', values: { smtp_host: 'mail.example', smtp_port: 587, smtp_from: null } },
          { smtp_host: 'mail.example', smtp_port: '587', smtp_from: 'null' },
        ],
        [{ values: { nested: { $gt: '' }, list: ['x'] } }, { nested: '{"$gt":""}', list: '["x"]' }],
        [{ version: null, values: { on: true } }, { on: 'true' }],
        ...[Infinity, -1, [5], Decimal128.fromString('5'), Long.MAX_VALUE, {}].map(
          (version) => [{ version, values: { on: 'x' } }, { on: 'x' }] as const,
        ),
      ] as const) {
        await stored('settings').replaceOne({ _id: 'settings' }, document, { upsert: true })
        expect(await settings.read()).to.deep.equal({ version: 0, values })
        expect(await settings.write({}, 0)).to.equal(true)
        expect(await settings.read()).to.deep.equal({ version: 1, values: {} })
      }
      for (const values of ['text', ['a'], null, 1, new Date(0), new ObjectId()]) {
        await stored('settings').replaceOne({ _id: 'settings' }, { version: 3, values })
        expect(await settings.read()).to.deep.equal({ version: 3, values: {}, isUnreadable: true })
      }
    })

    it('of a version of the settings is left out of the history, and hides no other', async () => {
      const { settings } = await emptyStore()
      const good = { version: 2, at: later(1), actor: 'ann', secrets: ['a'], values: { on: 'x' } }
      const least = { version: 1, secrets: [], values: {} }
      const odd = { ...least, at: 'yesterday', actor: 5, secrets: 'a' }
      const wrong = [null, 'text', [], {}, { version: '1', values: {} }, { version: 1, values: [] }]
      const document = { version: 3, values: {}, history: [...wrong, odd, good] }
      await stored('settings').replaceOne({ _id: 'settings' }, document, { upsert: true })
      expect((await settings.read()).history).to.deep.equal([least, good])
      for (const history of ['text', null, {}, 5]) {
        await stored('settings').replaceOne({ _id: 'settings' }, { ...document, history })
        expect(await settings.read()).to.deep.equal({ version: 3, values: {} })
      }
      expect(await settings.write({}, 3, [good])).to.equal(true)
      expect((await settings.read()).history).to.deep.equal([good])
    })
  })
})
