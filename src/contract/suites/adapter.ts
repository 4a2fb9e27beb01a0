import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import type { Adapter, AdapterPayload } from 'oidc-provider'

const HOUR = 3600

/** Keys with a special meaning to a database, and a client whose name contains dots. */
const AWKWARD: AdapterPayload = JSON.parse(`{
  "authorizations": { "https://client.example/a.b": { "sid": "1", "grantId": "g" } },
  "claims": { "id_token": { "$where": null, "a.b": { "$set": [1, null, { "": true }] } } },
  "resources": { "urn:a.b.$c": "read write" },
  "params": { "state": "$x.y", "__proto__": { "polluted": true }, "ui_locales": "d\u00e9 \ud83d\ude00" }
}`)

/**
 * Tests what oidc-provider and `flows.adapter` rely on. It also tests what oidc-provider does not require: of concurrent uses of one code,
 * exactly one succeeds. `create` opens an empty adapter for each test.
 */
export function itIsAnAdapter(
  name: string,
  create: () => Promise<{ adapterOf: (model: string) => Adapter; close(): Promise<void> }>,
): void {
  describe(`${name} is an adapter of oidc-provider`, function () {
    this.timeout(Math.max(this.timeout(), 20_000))
    let of: (model: string) => Adapter
    let close = async () => {}

    beforeEach(async () => {
      ;({ adapterOf: of, close } = await create())
    })

    afterEach(() => close())

    it('finds nothing under an id that it was never given, and makes nothing of it', async () => {
      const codes = of('DeviceCode')
      await isRefused(codes.consume('unknown'))
      await codes.destroy('unknown')
      expect(await codes.find('unknown')).to.equal(undefined)
      expect(await codes.findByUserCode('unknown')).to.equal(undefined)
      expect(await of('Session').findByUid('unknown')).to.equal(undefined)
    })

    it('finds a payload as it was saved, without what is undefined, in the model that it was saved for', async () => {
      const payload = { jti: '1', accountId: 'ann', loginTs: 5 }
      await of('Session').upsert('1', { ...payload, acr: undefined }, HOUR)
      expect(JSON.stringify(await of('Session').find('1'))).to.equal(JSON.stringify(payload))
      expect(await of('Interaction').find('1')).to.equal(undefined)
    })

    it('keeps clients with dots in their ids, and keys with dollar signs', async () => {
      await of('Session').upsert('1', AWKWARD, HOUR)
      const found = await of('Session').find('1')
      expect(JSON.stringify(found)).to.equal(JSON.stringify(AWKWARD))
      expect(Reflect.get({}, 'polluted')).to.equal(undefined)
    })

    it('replaces the whole payload, and nothing of the former one stays', async () => {
      await of('Session').upsert('1', { accountId: 'ann', amr: ['pwd'], uid: 'u1' }, HOUR)
      await of('Session').upsert('1', { accountId: 'ann', uid: 'u2' }, HOUR)
      expect(await of('Session').find('1')).to.deep.equal({ accountId: 'ann', uid: 'u2' })
      expect(await of('Session').findByUid('u1')).to.equal(undefined)
    })

    it('gives away copies only', async () => {
      const payload = { accountId: 'ann', amr: ['pwd'] }
      await of('Session').upsert('1', payload, HOUR)
      payload.amr.push('changed')
      const found = await of('Session').find('1')
      if (found) found.accountId = 'changed'
      expect(await of('Session').find('1')).to.deep.equal({ accountId: 'ann', amr: ['pwd'] })
    })

    it('finds sessions by uid, and device codes by user code', async () => {
      await of('Session').upsert('1', { uid: 'u1' }, HOUR)
      await of('Session').upsert('2', { uid: 'u2' }, HOUR)
      await of('DeviceCode').upsert('3', { userCode: 'ABCD' }, HOUR)
      expect(await of('Session').findByUid('u2')).to.deep.equal({ uid: 'u2' })
      expect(await of('DeviceCode').findByUserCode('ABCD')).to.deep.equal({ userCode: 'ABCD' })
      expect(await of('DeviceCode').findByUserCode('abcd')).to.equal(undefined)
    })

    it('marks what is consumed with the second, and keeps the rest', async () => {
      const [second, codes] = [Math.floor(Date.now() / 1000), of('AuthorizationCode')]
      await codes.upsert('1', { grantId: 'g', exp: 9 }, HOUR)
      await codes.consume('1')
      const { consumed, ...rest } = (await codes.find('1')) ?? {}
      expect(rest).to.deep.equal({ grantId: 'g', exp: 9 })
      expect(consumed).to.be.a('number').that.is.at.least(second)
    })

    it('destroys one record', async () => {
      for (const id of ['1', '2']) await of('Session').upsert(id, { uid: id }, HOUR)
      await of('Session').destroy('1')
      expect(await of('Session').find('1')).to.equal(undefined)
      expect(await of('Session').findByUid('1')).to.equal(undefined)
      expect(await of('Session').find('2')).to.deep.equal({ uid: '2' })
    })

    it('revokes what belongs to a grant, model by model', async () => {
      for (const model of ['AccessToken', 'RefreshToken']) {
        for (const id of ['1', '2']) await of(model).upsert(id, { grantId: 'g' }, HOUR)
        await of(model).upsert('3', { grantId: 'other' }, HOUR)
      }
      await of('AccessToken').revokeByGrantId('g')
      for (const id of ['1', '2']) expect(await of('AccessToken').find(id)).to.equal(undefined)
      expect(await of('AccessToken').find('3')).to.deep.equal({ grantId: 'other' })
      expect(await of('RefreshToken').find('1')).to.deep.equal({ grantId: 'g' })
    })

    it('keeps 20 records that are saved at once', async () => {
      const ids = Array.from({ length: 20 }, (_, i) => String(i))
      await Promise.all(ids.map((id) => of('Session').upsert(id, { uid: id }, HOUR)))
      const found = await Promise.all(ids.map((id) => of('Session').find(id)))
      expect(found.map((payload) => payload && payload.uid)).to.deep.equal(ids)
    })

    for (const model of ['AuthorizationCode', 'RefreshToken', 'DeviceCode']) {
      it(`lets one of 12 consume one ${model} at once, and ends all of its grant (RACE-12)`, async () => {
        const [grants, tokens] = [of('Grant'), of('AccessToken')]
        for (const grantId of ['g', 'other']) {
          await grants.upsert(grantId, { accountId: 'ann' }, HOUR)
          await tokens.upsert(`of ${grantId}`, { grantId }, HOUR)
        }
        await of(model).upsert('1', { grantId: 'g', userCode: 'ABCD' }, HOUR)
        expect(await countOfWinners(() => of(model).consume('1'))).to.equal(1)
        for (const gone of [grants.find('g'), tokens.find('of g'), of(model).find('1')])
          expect(await gone).to.equal(undefined)
        expect(await grants.find('other')).to.deep.equal({ accountId: 'ann' })
        expect(await tokens.find('of other')).to.deep.equal({ grantId: 'other' })
      })
    }

    it('lets one of 12 consume one pushed authorization request at once (RACE-12)', async () => {
      const pushed = of('PushedAuthorizationRequest')
      await pushed.upsert('1', { request: 'r' }, HOUR)
      expect(await countOfWinners(() => pushed.consume('1'))).to.equal(1)
      expect(await pushed.find('1')).to.include({ request: 'r' })
    })

    it('lets one of 12 save the id of one JWT at once, and another one once that has expired (RACE-12)', async () => {
      const seen = of('ReplayDetection')
      const save = (id: string, expiresIn: number) => () =>
        seen.upsert(id, { jti: id, iss: 'app' }, expiresIn)
      expect(await countOfWinners(save('1', HOUR))).to.equal(1)
      expect(await seen.find('1')).to.deep.equal({ jti: '1', iss: 'app' })
      await save('2', -1)()
      await save('2', HOUR)()
      expect(await seen.find('2')).to.deep.equal({ jti: '2', iss: 'app' })
    })

    it('never makes a code fresh again that was consumed, and ends nothing then', async () => {
      const codes = of('DeviceCode')
      await of('Grant').upsert('g', { accountId: 'ann' }, HOUR)
      await codes.upsert('1', { userCode: 'ABCD', grantId: 'g' }, HOUR)
      await codes.upsert('1', { userCode: 'ABCD', grantId: 'g', accountId: 'ann' }, HOUR)
      await codes.consume('1')
      await isRefused(codes.upsert('1', { userCode: 'ABCD', grantId: 'g', accountId: 'bob' }, HOUR))
      const { consumed, ...rest } = (await codes.find('1')) ?? {}
      expect(rest).to.deep.equal({ userCode: 'ABCD', grantId: 'g', accountId: 'ann' })
      expect(await of('Grant').find('g')).to.deep.equal({ accountId: 'ann' })
      expect(consumed).to.be.a('number')
    })
  })
}

async function isRefused(work: Promise<unknown>): Promise<void> {
  expect(await work.catch((error: unknown) => error)).to.be.instanceOf(Error)
}

async function countOfWinners(work: () => Promise<unknown>): Promise<number> {
  const outcomes = await Promise.allSettled(Array.from({ length: 12 }, work))
  return outcomes.filter(({ status }) => status === 'fulfilled').length
}
