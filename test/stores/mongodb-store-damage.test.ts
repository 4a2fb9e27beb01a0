import { Long } from 'mongodb'
import { expect } from 'chai'
import { setTimeout as delay } from 'node:timers/promises'
import { emptiedStore, type AnyDocument } from '../support/emptied-store.ts'
import { describeWithMongo } from '../support/mongod.ts'
import {
  after as later,
  hour,
  minute,
  mustExist,
  sampleClaim,
  sampleMailJob,
  samplePendingLogin,
  sampleResetToken,
  sampleVerificationToken,
} from '../../src/contract/store-contract-samples.ts'

describeWithMongo('mongoStore() with damaged records', () => {
  const { stored, emptyStore } = emptiedStore()

  describe('a damaged record', () => {
    const values = [null, '', 1, true, {}, new Date().toISOString(), [later(hour)], [null], [true]]
    const optional = new Set([
      'pending_login_id',
      'client_id',
      'redirect_uri',
      'scope',
      'state',
      'address',
    ])

    function typeOf(value: unknown) {
      if (value === null) return 'null'
      if (value instanceof Date) return 'date'
      return Array.isArray(value) ? 'array' : typeof value
    }

    /** Each field once missing, and once with each value of another type. */
    function* damaged({ _id, ...document }: AnyDocument): Generator<AnyDocument> {
      for (const [field, right] of Object.entries(document)) {
        const { [field]: _, ...rest } = document
        if (!optional.has(field)) yield { _id, ...rest }
        for (const value of [...values, [right]])
          if (typeOf(value) !== typeOf(right)) yield { _id, ...rest, [field]: value }
      }
    }

    it('is no usable reset token, and nobody can claim it (TOK-04, TOK-07)', async () => {
      const { resetTokens } = await emptyStore()
      const token = sampleResetToken()
      await resetTokens.issue(token)
      const tokens = stored('password_reset_tokens')
      const document = mustExist((await tokens.findOne()) ?? undefined)
      let count = 0
      for (const each of damaged(document)) {
        count += 1
        await tokens.deleteMany({})
        await tokens.insertOne(each)
        const found = await resetTokens.findUsable(token.tokenHash, later(1))
        const claim = await resetTokens.claim(token.tokenHash, sampleClaim({ at: later(1) }))
        expect([found, claim], JSON.stringify(each)).to.deep.equal([undefined, undefined])
      }
      expect(count).to.be.greaterThan(100)
    })

    it('is no usable verification token', async () => {
      const { verificationTokens } = await emptyStore()
      const token = sampleVerificationToken()
      await verificationTokens.issue(token)
      const tokens = stored('email_verification_tokens')
      const document = mustExist((await tokens.findOne()) ?? undefined)
      for (const each of damaged(document)) {
        await tokens.deleteMany({})
        await tokens.insertOne(each)
        const found = await verificationTokens.findUsable(token.tokenHash, later(1))
        expect(found, JSON.stringify(each)).to.equal(undefined)
      }
    })

    it('is no pending login, no job, and does not hold up the others', async () => {
      const { pendingLogins, outbox, resetTokens } = await emptyStore()
      const { id } = samplePendingLogin()
      await pendingLogins.save({ ...samplePendingLogin(), id })
      for (const captured of ['{', '[]', '{"params":{},"login":{"accountId":1,"ts":1}}', 1, null]) {
        await stored('pending_logins').updateOne({ _id: id }, { $set: { captured } })
        expect(await pendingLogins.find(id)).to.equal(undefined)
      }

      await outbox.add(sampleMailJob({ id: 'damaged' }))
      await stored('mail_outbox').updateOne({}, { $set: { 'carried.state': 1 } })
      await delay(3)
      await outbox.add(sampleMailJob({ id: 'sound' }))
      const claim = () => outbox.claim('resolve', 'lease', later(1), later(minute))
      expect(await claim()).to.include({ id: 'sound' })
      expect(await claim()).to.equal(undefined)

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
      const document = mustExist((await jobs.findOne()) ?? undefined)
      const { identifier: _, ...nobodys } = document
      const unknown = [
        { ...document, attempts: -1 },
        { ...document, kind: 'newsletter' },
        { ...document, state: 'waiting' },
        nobodys,
      ]
      for (const each of [...damaged(document), ...unknown]) {
        await jobs.deleteMany({})
        await jobs.insertOne(each)
        const claimed = await outbox.claim('resolve', 'lease', later(1), later(minute))
        const givenUp = await outbox.giveUpUnreadable(later(1))
        expect([claimed, givenUp], JSON.stringify(each)).to.deep.equal([undefined, 'job'])
        const dead = mustExist((await jobs.findOne()) ?? undefined)
        expect(dead).to.include({ state: 'dead', reason: 'unreadable' })
        expect(dead).to.include.keys('purge_at')
        expect(dead).not.to.include.keys('identifier')
        expect(await outbox.giveUpUnreadable(later(1))).to.equal(undefined)
      }
      for (const field of ['not_before', 'expires_at', 'requested_at']) {
        await jobs.deleteMany({})
        await jobs.insertOne(document)
        const beyond = { $toDate: Long.fromString('9000000000000000000') }
        await jobs.updateOne({}, [{ $set: { [field]: beyond } }])
        const claimed = await outbox.claim('resolve', 'lease', later(1), later(minute))
        const givenUp = await outbox.giveUpUnreadable(later(1))
        expect([claimed, givenUp], field).to.deep.equal([undefined, 'job'])
      }
    })

    it('is no window of a limit: the key begins anew (D21)', async () => {
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
      await cutoffs.endIdpSessions('ann', later(1))
      expect(await cutoffs.read('ann')).to.deep.equal({ idpAt: later(1), oauthAt: undefined })
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
      ] as const) {
        await stored('settings').replaceOne({ _id: 'settings' }, document, { upsert: true })
        expect(await settings.read()).to.deep.equal({ version: 0, values })
        expect(await settings.version()).to.equal(0)
        expect(await settings.write({}, 0)).to.equal(true)
        expect(await settings.read()).to.deep.equal({ version: 1, values: {} })
      }
      for (const values of ['text', ['a'], null, 1]) {
        await stored('settings').replaceOne({ _id: 'settings' }, { version: 3, values })
        expect(await settings.read()).to.deep.equal({ version: 3, values: {}, isUnreadable: true })
      }
    })
  })
})
