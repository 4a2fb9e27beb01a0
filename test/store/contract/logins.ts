import { expect } from 'chai'
import { it } from 'mocha'
import type { SessionCutoffs, SessionEnd } from '../../../src/store/cutoffs.ts'
import type { AccountFlowsStore, PendingLoginStore } from '../../../src/store/index.ts'
import { defined } from '../../../src/store/kind.ts'
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
    const parameters = { clientId: 'app', redirectUri: 'https://app.example/cb' }
    await saved({ createdAt: after(1) })
    const newest = await saved({ createdAt: after(3) })
    await saved({ createdAt: after(2) })
    await saved({ createdAt: after(4), accountId: 'bob' })
    expect(await port().find({ accountId: 'ann', parameters })).to.deep.equal(newest)
    expect(await port().find({ accountId: 'eve', parameters })).to.equal(undefined)
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
    const early = mustExist(logins[0])
    await port().save(early, 3)
    expect(await port().find({ id: early.id }), 'the one that is saved').to.deep.equal(early)
    expect(await port().find({ id: ofBob.id })).to.deep.equal(ofBob)
  })

  it('tells an absent parameter from an empty one, and leaves the scope aside', async () => {
    const without = await saved({}, { client_id: 'app' })
    const empty = await saved({}, { client_id: 'app', state: '', scope: 'openid' })
    for (const [parameters, expected] of [
      [{ clientId: 'app' }, without],
      [{ clientId: 'app', state: '' }, empty],
      [{ clientId: 'app', state: 'x' }, undefined],
      [{ state: '' }, undefined],
      [{ clientId: 'app', redirectUri: '', state: '' }, undefined],
    ] as const)
      expect(await port().find({ accountId: 'ann', parameters })).to.deep.equal(expected)
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

  it('voids all logins of an account, or all but one, and of no other account (TOK-25)', async () => {
    const [one, other] = [await saved(), await saved({ email: undefined })]
    const ofBob = await saved({ accountId: 'bob' })
    const ends = { isVoid: true } as const
    await port().change({ accountId: 'nobody' }, ends)
    await port().change({ accountId: 'ann', except: one.id }, ends)
    expect(await port().find({ id: one.id })).to.deep.equal(one)
    expect(await port().find({ id: other.id })).to.deep.equal({ ...other, passwordDigest: '' })
    await port().change({ accountId: 'ann', except: undefined }, ends)
    expect(await port().find({ id: one.id })).to.deep.equal({ ...one, passwordDigest: '' })
    expect(await port().find({ id: ofBob.id })).to.deep.equal(ofBob)
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

const end = (at: number, idpAt = at, id = `at ${at}`): SessionEnd => {
  return { id, at: after(at), ...(idpAt !== at && { idpAt: after(idpAt) }) }
}

const exact = (at: number) => ({ ...end(at), isExact: true })

type Row = [what: string, ends: SessionEnd[], moved: (number | undefined)[]]
const ENDS: Row[] = [
  ['move in one step (3.3, effects 3 and 4)', [end(1)], [1, 1]],
  ['move each to its own time', [end(1), end(2, 5)], [2, 5]],
  ['move on by a millisecond, where an end is earlier', [end(5), end(1)], [6, 6]],
  ['move on each by itself', [end(5), end(1), end(3, 9)], [7, 9]],
  ['move on where two clocks make the same time', [end(5), end(5, 5, 'another')], [6, 6]],
  ['stay where an exact end comes first', [exact(2)], [undefined, undefined, 2]],
  ['stay beside the latest exact end', [exact(2), end(5), exact(9), exact(1)], [5, 5, 9]],
  ['stay where ends are repeated', [end(5), end(1), exact(3), end(1), end(5)], [6, 6, 3]],
]

export function itKeepsCutoffs(port: () => AccountFlowsStore['cutoffs']): void {
  it('knows of no cut-off before the first', async () => {
    expect(await port().read('ann')).to.equal(undefined)
  })

  const timesOf = (told: SessionCutoffs | undefined) => {
    const { oauthAt, idpAt, exactAt } = mustExist(told)
    return defined({ oauthAt, idpAt, exactAt })
  }
  const timeOf = (ms: number | undefined) => (ms === undefined ? undefined : after(ms))
  for (const [what, ends, [oauth, idp, exactly]] of ENDS) {
    it(what, async () => {
      let answer: SessionCutoffs | undefined
      for (const each of ends) answer = await port().end('ann', each)
      const times = { oauthAt: timeOf(oauth), idpAt: timeOf(idp), exactAt: timeOf(exactly) }
      const moved = defined(times)
      expect(timesOf(answer)).to.deep.equal(moved)
      expect(timesOf(await port().read('ann'))).to.deep.equal(moved)
      expect(await port().read('bob')).to.equal(undefined)
    })
  }

  it('moves forward with each end, by whichever clock, when 20 end at once', async () => {
    const ends = await atOnce((caller) => port().end('ann', end(20 - caller, caller)))
    for (const kind of ['idpAt', 'oauthAt'] as const) {
      const times = ends.map((end) => end[kind]?.getTime() ?? 0)
      expect(new Set(times).size).to.equal(20)
      expect(Math.min(...times)).to.be.at.least(after(0).getTime())
      const latest = (await port().read('ann'))?.[kind]?.getTime() ?? 0
      expect(latest).to.equal(Math.max(...times))
      expect(latest).to.be.at.least(after(kind === 'idpAt' ? 19 : 20).getTime())
    }
  })
}
