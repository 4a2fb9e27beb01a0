import { expect } from 'chai'
import { it } from 'mocha'
import type { SessionEnd } from '../../../src/ports/index.ts'
import type { PendingLoginStore, SessionCutoffStore } from '../../../src/records/index.ts'
import { after, atOnce, hour, minute, mustExist, samplePendingLogin } from './samples.ts'

const MANY = 100

const awkward: unknown = JSON.parse(
  '{ "__proto__": { "a.b": [null, true, 1.5e-7, { "$where": "" }] }, "$set": { ".": "\\u0000\\ud800" }, "": 0 }',
)

export function itKeepsPendingLogins(port: () => PendingLoginStore): void {
  async function saved(...sample: Parameters<typeof samplePendingLogin>) {
    const login = samplePendingLogin(...sample)
    await port().save(login, MANY)
    return login
  }

  it('keeps the whole authorization request, whatever its JSON', async () => {
    const login = await saved({}, { client_id: 'app', claims: awkward })
    const found = await port().find({ id: login.id })
    expect(found).to.deep.equal(login)
    expect(JSON.stringify(found?.captured)).to.equal(JSON.stringify(login.captured))
    expect(await port().find({ id: 'unknown' })).to.equal(undefined)
  })

  it('finds the newest one of the account', async () => {
    const carried = { clientId: 'app', redirectUri: 'https://app.example/cb' }
    await saved({ createdAt: after(1) })
    const newest = await saved({ createdAt: after(3) })
    await saved({ createdAt: after(2) })
    await saved({ createdAt: after(4), accountId: 'bob' })
    expect(await port().find({ accountId: 'ann', carried })).to.deep.equal(newest)
    expect(await port().find({ accountId: 'eve', carried })).to.equal(undefined)
  })

  it('puts a login in the place of the one with its id, turn and all', async () => {
    const login = await saved()
    await port().setTurn(login.id, 'a', after(2))
    const again = await saved({ id: login.id, createdAt: after(3), purgeAt: after(hour) })
    expect(await port().find({ id: login.id })).to.deep.equal(again)
    expect(await port().setTurn(login.id, 'b', after(4))).to.equal(true)
  })

  it('puts none in the place of one that became void while it waited, but of one that went on', async () => {
    const login = await saved()
    await port().change({ id: login.id }, { isVoid: true })
    await atOnce(() => port().save({ ...login, createdAt: after(3) }, MANY))
    expect(await port().find({ id: login.id })).to.deep.equal({ ...login, passwordDigest: '' })
    await port().setTurn(login.id, 'a', after(4))
    const again = await saved({ id: login.id, createdAt: after(5) })
    expect(await port().find({ id: login.id })).to.deep.equal(again)
  })

  it('keeps the newest of an account and no others, also where 20 are saved at once', async () => {
    const ofBob = await saved({ accountId: 'bob', createdAt: after(0) })
    const logins = Array.from({ length: 20 }, (_, at) =>
      samplePendingLogin({ createdAt: after(at) }),
    )
    for (const login of logins.slice(0, 10)) await port().save(login, 3)
    const kept = async () => {
      const found = await Promise.all(logins.map(({ id }) => port().find({ id })))
      return found.flatMap((login, at) => (login ? [at] : []))
    }
    expect(await kept()).to.deep.equal([7, 8, 9])
    await atOnce((caller) => port().save(mustExist(logins[caller]), 3))
    expect((await kept()).length).to.be.within(1, 3)
    await port().save(mustExist(logins[19]), 3)
    expect(await kept()).to.include(19)
    const [early] = logins
    await port().save(mustExist(early), 3)
    expect(
      await port().find({ id: mustExist(early).id }),
      'the one that is saved stays',
    ).to.deep.equal(early)
    expect(await port().find({ id: ofBob.id })).to.deep.equal(ofBob)
  })

  it('tells an absent parameter from an empty one, and leaves the scope aside', async () => {
    const without = await saved({}, { client_id: 'app' })
    const empty = await saved({}, { client_id: 'app', state: '', scope: 'openid' })
    for (const [carried, expected] of [
      [{ clientId: 'app' }, without],
      [{ clientId: 'app', state: '' }, empty],
      [{ clientId: 'app', state: 'x' }, undefined],
      [{ state: '' }, undefined],
      [{ clientId: 'app', redirectUri: '', state: '' }, undefined],
    ] as const)
      expect(await port().find({ accountId: 'ann', carried })).to.deep.equal(expected)
  })

  it('gives its one turn to one of 20 that take it at once', async () => {
    const login = await saved()
    const turns = await atOnce((caller) =>
      port().setTurn(login.id, `turn ${caller}`, after(caller)),
    )
    expect(turns.filter(Boolean)).to.have.length(1)
    const taken = turns.indexOf(true)
    expect((await port().find({ id: login.id }))?.continuedAt).to.deep.equal(after(taken))
    expect(await port().setTurn(login.id, 'turn', after(30))).to.equal(false)
    expect(await port().setTurn('unknown', 'turn', after(30))).to.equal(false)
    expect(await port().setTurn((await saved()).id, 'turn', after(30))).to.equal(true)
  })

  it('takes a turn back from whoever took it, and lets nobody give back the turn of another', async () => {
    const { id } = await saved()
    await port().setTurn(id, 'first', undefined)
    expect(await port().setTurn(id, 'first', after(1))).to.equal(true)
    await port().setTurn(id, 'second', undefined)
    await port().setTurn('unknown', 'first', undefined)
    expect((await port().find({ id }))?.continuedAt).to.deep.equal(after(1))
    await atOnce(() => port().setTurn(id, 'first', undefined))
    expect((await port().find({ id }))?.continuedAt).to.equal(undefined)
    expect(await port().setTurn(id, 'second', after(2))).to.equal(true)
    await port().setTurn(id, 'first', undefined)
    expect((await port().find({ id }))?.continuedAt).to.deep.equal(after(2))
  })

  it('finds the newest of an account that waits in a browser', async () => {
    const here = { accountId: 'ann', browserHash: 'here' }
    const waits = await saved({ ...here, createdAt: after(1) })
    const isVoid = await saved({ ...here, createdAt: after(3) })
    const continued = await saved({ ...here, createdAt: after(4) })
    await saved({ createdAt: after(5) })
    await saved({ ...here, accountId: 'bob', createdAt: after(6) })
    expect(await port().find(here)).to.deep.equal(continued)
    await port().setTurn(continued.id, 'a', after(7))
    await port().change({ id: isVoid.id }, { isVoid: true })
    expect(await port().find(here)).to.deep.equal(waits)
    expect(await port().find({ ...here, browserHash: 'there' })).to.equal(undefined)
  })

  it('is kept until the latest of the times that 20 ask for at once', async () => {
    const { id } = await saved()
    await atOnce((caller) => port().change({ id }, { purgeAt: after(hour + caller * minute) }))
    await port().change({ id }, { purgeAt: after(1) })
    expect((await port().find({ id }))?.purgeAt).to.deep.equal(after(hour + 19 * minute))
    await port().change({ id: 'unknown' }, { purgeAt: after(1) })
    expect(await port().find({ id: 'unknown' })).to.equal(undefined)
  })
}

function end(at: number, id = `at ${at}`): SessionEnd {
  return { id, at: after(at) }
}

const exactEnd = (at: number) => ({ ...end(at), isExact: true })

export function itKeepsCutoffs(port: () => SessionCutoffStore): void {
  it('knows of no cut-off before the first', async () => {
    expect(await port().read('ann')).to.equal(undefined)
  })

  it('ends OAuth sessions and IdP sessions in one step, each at its own time (3.3, effects 3 and 4)', async () => {
    const both = { oauthAt: after(1), idpAt: after(1) }
    expect(await port().end('ann', end(1))).to.deep.equal(both)
    expect(await port().read('ann')).to.deep.equal(both)
    await port().end('ann', { ...end(2), idpAt: after(5) })
    expect(await port().read('ann')).to.deep.equal({ oauthAt: after(2), idpAt: after(5) })
    expect(await port().read('bob')).to.equal(undefined)
  })

  it('moves forward with each end, by whichever clock, when 20 end at once', async () => {
    const ends = await atOnce((caller) =>
      port().end('ann', { ...end(20 - caller), idpAt: after(caller) }),
    )
    for (const kind of ['idpAt', 'oauthAt'] as const) {
      const times = ends.map((end) => end[kind]?.getTime() ?? 0)
      expect(new Set(times).size).to.equal(20)
      expect(Math.min(...times)).to.be.at.least(after(0).getTime())
      const latest = (await port().read('ann'))?.[kind]?.getTime() ?? 0
      expect(latest).to.equal(Math.max(...times))
      expect(latest).to.be.at.least(after(kind === 'idpAt' ? 19 : 20).getTime())
    }
  })

  it('moves on from where it is, where it is asked for an earlier time or the same', async () => {
    await port().end('ann', end(5))
    const moved = { idpAt: after(6), oauthAt: after(6) }
    expect(await port().end('ann', end(1))).to.deep.equal(moved)
    expect(await port().end('ann', { ...end(3), idpAt: after(9) })).to.deep.equal({
      idpAt: after(9),
      oauthAt: after(7),
    })
    expect(await port().end('ann', end(7))).to.deep.include({ oauthAt: after(8) })
  })

  it('keeps an exact end beside the others, the latest of them', async () => {
    await port().end('ann', exactEnd(2))
    expect(await port().read('ann')).to.deep.equal({
      idpAt: undefined,
      oauthAt: undefined,
      exactAt: after(2),
    })
    await port().end('ann', end(5))
    for (const at of [9, 1]) {
      const ends = await port().end('ann', exactEnd(at))
      expect(ends).to.deep.equal({ idpAt: after(5), oauthAt: after(5), exactAt: after(9) })
    }
  })

  it('changes nothing when an end is repeated, whatever ended in between', async () => {
    await port().end('ann', end(5))
    await port().end('ann', end(1))
    await port().end('ann', exactEnd(3))
    for (const repeated of [1, 5, 1]) {
      const ends = await port().end('ann', end(repeated))
      expect(ends).to.deep.include({ idpAt: after(6), oauthAt: after(6) })
    }
  })
}
