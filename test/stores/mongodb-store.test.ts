import { expect } from 'chai'
import { mongoStore } from '../../src/stores/mongodb/store.ts'
import { emptiedStore } from '../support/emptied-store.ts'
import { describeWithMongo } from '../support/mongod.ts'
import { itIsAnAccountFlowsStore } from '../../src/contract/index.ts'
import {
  after as later,
  claimOne,
  eventIn,
  hour,
  minute,
  mustExist,
  sampleClaim,
  sampleMailJob,
  sampleResetToken,
} from '../../src/contract/samples.ts'

async function expectRefused(act: () => Promise<unknown>, what = String(act)) {
  const refusal: unknown = await act().catch((error: unknown) => error)
  expect(refusal, what).to.be.instanceOf(TypeError)
}

describeWithMongo('mongoStore()', () => {
  const { fresh, stored, storedOne, emptyStore } = emptiedStore()

  itIsAnAccountFlowsStore('mongoStore()', async () => ({
    store: await emptyStore(),
    close: async () => {},
  }))

  describe('what is stored', () => {
    it('is nothing of a reset token but its hash, in its fields', async () => {
      const { resetTokens } = await emptyStore()
      const { carried: _, ...token } = sampleResetToken()
      await resetTokens.issue({ ...token, carried: { state: '' } })
      expect(await stored('password_reset_tokens').findOne()).to.deep.equal({
        _id: token.id,
        token_hash: token.tokenHash,
        user_id: 'ann',
        email: 'Ann@example.com',
        locale: 'de-AT',
        password_digest: 'digest',
        state: '',
        mail_job_id: 'job',
        attempt: 1,
        requested_at: token.requestedAt,
        created_at: token.createdAt,
        expires_at: token.expiresAt,
        used_at: null,
        claimed_at: null,
        invalidated_at: null,
        completed_at: null,
        purge_at: new Date(token.expiresAt.getTime() + 8 * 24 * hour),
        live: true,
      })
    })

    it('holds no new password hash once the reset is used or rejected', async () => {
      const { resetTokens } = await emptyStore()
      for (const step of ['used', 'rejected'] as const) {
        const { id, tokenHash } = sampleResetToken()
        await resetTokens.issue({ ...sampleResetToken(), id, tokenHash })
        await resetTokens.claim(tokenHash, sampleClaim({ at: later(1) }))
        const record = () => stored('password_reset_tokens').findOne({ _id: id })
        expect(await record()).to.include({ new_hash: 'next' })
        await resetTokens.advance(id, step, later(2))
        expect(await record()).not.to.have.property('new_hash')
      }
    })

    it('holds no typed identifier once the job is resolved or given up', async () => {
      const { outbox } = await emptyStore()
      await outbox.add(sampleMailJob())
      const job = mustExist(await claimOne(outbox, 'resolve', 1))
      expect(await stored('mail_outbox').findOne()).to.include({ identifier: 'ann' })
      await outbox.resolve(job, 'id of ann', later(1), later(minute))
      expect(await stored('mail_outbox').findOne()).not.to.have.property('identifier')

      await stored('mail_outbox').updateOne({}, { $set: { identifier: 'ann' } })
      await outbox.giveUp(job, later(2), 'no such mailbox')
      const dead = await storedOne('mail_outbox')
      expect(dead).to.deep.include({
        state: 'dead',
        reason: 'no such mailbox',
        account_id: 'id of ann',
        purge_at: new Date(later(2).getTime() + 7 * 24 * hour),
      })
      expect(dead).not.to.have.any.keys('identifier', 'lease_id', 'available_at')
    })
  })

  it('lets nothing but a string or a valid time into a filter (INJ-05)', async () => {
    const { resetTokens, verificationTokens, outbox, audit } = await emptyStore()
    await resetTokens.issue(sampleResetToken())
    await outbox.add(sampleMailJob())
    const notText: unknown[] = [undefined, null, { $ne: '' }, /./, ['x'], 1, '\ud800']
    for (const each of notText) {
      // @ts-expect-error: a caller without types
      const value: string = each
      for (const act of [
        () => resetTokens.claim(value, sampleClaim({ at: later(1) })),
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
    const { tokenHash } = sampleResetToken()
    await expectRefused(() =>
      resetTokens.claim(tokenHash, sampleClaim({ at: new Date('invalid') })),
    )
  })

  it('tells events of a version that did not write when they were recorded last', async () => {
    const { audit } = await emptyStore()
    const type = 'email_login_blocked'
    await audit.record({ id: 'new', type, at: later(-3 * hour), accountId: 'ann' }, hour)
    for (const [_id, at] of [
      ['old', later(-2 * hour)],
      ['newer', later(0)],
    ] as const)
      await stored('audit_events').insertOne({ _id, type, at, account_id: 'ann' })
    const at = later(-2 * hour)
    const old = { id: 'old', type, at, recordedAt: at, accountId: 'ann' }
    expect(await eventIn(audit, 'old')).to.deep.equal(old)
    for (const query of [{}, { accountId: 'ann' }]) {
      const idsOf = async (recordedFrom?: Date) =>
        (await audit.list({ ...query, ...(recordedFrom && { recordedFrom }), limit: 10 })).map(
          ({ id }) => id,
        )
      const [first, ...rest] = await idsOf()
      expect(first).to.equal('new')
      expect(rest).to.have.members(['old', 'newer'])
      expect(await idsOf(later(-hour))).to.deep.equal(['new', 'newer'])
      expect(await idsOf(later(-2 * hour))).to.have.members(['new', 'old', 'newer'])
      expect(await idsOf(later(hour))).to.deep.equal([])
    }
  })

  it('lets nothing but a positive integer be the limit of a list', async () => {
    const { resetTokens, verificationTokens, outbox, audit } = await emptyStore()
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
    await resetTokens.issue(sampleResetToken())
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
    const { settings, outbox, audit } = mongoStore(odd)
    expect(await settings.write({ smtp_host: 'a' }, 0)).to.equal(true)
    expect(await settings.read()).to.deep.equal({ version: 1, values: { smtp_host: 'a' } })
    await outbox.add(sampleMailJob())
    const claimed = await claimOne(outbox, 'resolve', 1, minute - 1)
    expect(claimed).to.include({ attempts: 0 })
    expect(await mongoStore(odd).now()).to.be.instanceOf(Date)
    const [status] = await outbox.list({ limit: 1 }, later(1))
    expect(status).to.deep.include({ attempts: 0, nextAttemptAt: later(minute), isHeld: true })
    const about = { type: 'sessions_ended', at: later(0), accountId: 'ann' } as const
    const event = { id: 'event', ...about }
    await audit.record({ ...event, details: { oauth: 1, idp: undefined } }, hour)
    expect(await eventIn(audit, 'event')).to.deep.include({ ...event, details: { oauth: 1 } })
    expect(await outbox.discard({ id: mustExist(status).id }, later(minute))).to.equal(1)
  })
})
