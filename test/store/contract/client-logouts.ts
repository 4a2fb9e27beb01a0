import { expect } from 'chai'
import { it } from 'mocha'
import type { AccountFlowsStore, ClientLogout, NewClientLogout } from '../../../src/store/index.ts'
import { after, atOnce, minute, mustExist, sampleClientLogout } from './samples.ts'

export function itKeepsClientLogouts(port: () => AccountFlowsStore['clientLogouts']): void {
  async function added(changes: Partial<NewClientLogout> = {}) {
    const logout = sampleClientLogout(changes)
    await port().add([logout])
    return logout
  }

  const claim = (at = 1, { most = 10, except = [] as string[], until = at + minute } = {}) =>
    port().claim(most, after(at), after(until), except)

  const claimOne = async (at = 1) => mustExist((await claim(at)).at(0))

  const find = async (accountId = 'ann') => (await port().find({ accountId })).map(withoutLease)

  const idsOf = (logouts: { id: string }[]) => logouts.map(({ id }) => id)

  const waiting = { state: 'waiting', attempts: 0, reason: undefined, isForgotten: false } as const

  it('keeps a client that is to be told, with its session or without one', async () => {
    const one = await added({ requestedAt: after(1) })
    const other = await added({ sid: undefined, clientId: 'other' })
    expect(await find()).to.deep.equal([
      { ...one, ...waiting },
      { ...other, ...waiting },
    ])
  })

  it('adds nothing the second time, whatever became of the first', async () => {
    const logout = await added()
    const other = sampleClientLogout()
    await port().add([other, logout, other])
    expect(idsOf(await find())).to.have.members([logout.id, other.id])
    const [job] = await claim(1, { most: 1 })
    await port().settle(mustExist(job), { state: 'sent', at: after(1) })
    await port().add([logout, other])
    expect((await find()).map(({ state }) => state)).to.have.members(['sent', 'waiting'])
    await port().add([])
  })

  it('finds those of an account, or of one of its ends, newest first, a hundred of them', async () => {
    const first = await added({ endId: 'first' })
    const second = await added({ endId: 'second', requestedAt: after(1) })
    await added({ accountId: 'bob', endId: 'first' })
    expect(idsOf(await find())).to.deep.equal([second.id, first.id])
    expect(idsOf(await port().find({ accountId: 'ann', endId: 'first' }))).to.deep.equal([first.id])
    expect(await find('ANN')).to.deep.equal([])
    expect(await port().find({ accountId: 'ann', endId: 'FIRST' })).to.deep.equal([])
    await port().add(
      Array.from({ length: 100 }, (_, n) => sampleClientLogout({ requestedAt: after(2 + n) })),
    )
    const found = await find()
    expect(found).to.have.length(100)
    expect(idsOf(found))
      .to.include.members([mustExist(found[0]).id])
      .and.not.include(second.id)
    expect(mustExist(found[0]).requestedAt).to.deep.equal(after(101))
  })

  it('gives the one that is due the longest first, and counts how often it was taken', async () => {
    const late = await added({ clientId: 'late', requestedAt: after(2) })
    const early = await added({ clientId: 'early', requestedAt: after(1) })
    expect(await claim(0)).to.deep.equal([])
    const [first] = await claim(2, { most: 1 })
    expect(first).to.include({ id: early.id, attempts: 1 })
    const [second] = await claim(2, { most: 1 })
    expect(second).to.include({ id: late.id, attempts: 1 })
    expect(await claim(2)).to.deep.equal([])
    expect(mustExist(first).leaseId).not.to.equal(mustExist(second).leaseId)
  })

  it('gives one of each client at a time, and none of those that are left out', async () => {
    for (let n = 0; n < 3; n += 1) await added({ clientId: 'dead', requestedAt: after(n) })
    await added({ clientId: 'app', requestedAt: after(3) })
    const other = await added({ clientId: 'other', requestedAt: after(4) })
    expect((await claim(5)).map(({ clientId }) => clientId)).to.have.members([
      'dead',
      'app',
      'other',
    ])
    const next = await claim(5)
    expect(next.map(({ clientId }) => clientId)).to.deep.equal(['dead'])
    expect(await claim(5, { except: ['dead'] })).to.deep.equal([])
    const again = await claim(5 + minute, { except: ['dead', 'app'] })
    expect(idsOf(again)).to.deep.equal([other.id])
  })

  it('reaches every client, however many one has that is due the longest', async () => {
    await port().add(Array.from({ length: 450 }, () => sampleClientLogout({ clientId: 'dead' })))
    await added({ clientId: 'app', requestedAt: after(1) })
    const seen = new Map<string, number>()
    for (let look = 0; look < 4 && !seen.has('app'); look += 1) {
      const except = [...seen].filter(([, count]) => count >= 2).map(([client]) => client)
      for (const { clientId } of await claim(1, { except }))
        seen.set(clientId, (seen.get(clientId) ?? 0) + 1)
    }
    expect(seen.get('app'), 'within four looks').to.equal(1)
    expect(seen.get('dead')).to.be.within(1, 2)
  })

  it('gives each to one of 20 that ask at once', async () => {
    const ids: string[] = []
    for (let n = 0; n < 10; n += 1) ids.push((await added({ clientId: `client ${n}` })).id)
    const claims = (await atOnce(() => claim())).flat()
    expect(idsOf(claims)).to.have.members(ids)
  })

  it('gives one again once its lease has run out, and the earlier claim changes nothing then', async () => {
    const { id } = await added()
    const lost = await claimOne()
    expect(await claim(minute)).to.deep.equal([])
    const held = await claimOne(minute + 1)
    expect(held).to.include({ id, attempts: 2 })
    for (const outcome of [
      { state: 'sent', at: after(minute) } as const,
      { retryAt: after(0), reason: 'lost' },
    ]) {
      await port().settle(lost, outcome)
      expect(await find()).to.deep.equal([withoutLease(held)])
    }
    await port().settle(held, { state: 'sent', at: after(minute + 2) })
    expect(await find()).to.deep.equal([{ ...withoutLease(held), state: 'sent' }])
  })

  it('gives one back with the reason, until it is due again', async () => {
    await added()
    const job = await claimOne()
    await port().settle(job, { retryAt: after(100), reason: 'http_500' })
    expect(await find()).to.deep.equal([{ ...withoutLease(job), reason: 'http_500' }])
    expect(await claim(99)).to.deep.equal([])
    const again = await claimOne(100)
    expect(again).to.include({ id: job.id, attempts: 2, reason: 'http_500' })
    await port().settle(again, { retryAt: after(100) })
    expect(await claimOne(100)).to.include({ attempts: 3, reason: 'http_500' })
  })

  for (const state of ['sent', 'dead'] as const) {
    it(`gives nobody one that is ${state}, and settles it once`, async () => {
      await added()
      const job = await claimOne()
      await port().settle(job, { state, at: after(2), reason: 'why' })
      await port().settle(job, { retryAt: after(2), reason: 'other' })
      expect(await claim(2 * minute)).to.deep.equal([])
      expect(await find()).to.deep.equal([{ ...withoutLease(job), state, reason: 'why' }])
    })
  }

  /** What is told of one, but for when it is due or gone. */
  function withoutLease(logout: ClientLogout) {
    const { leaseId: _leaseId, availableAt: _availableAt, purgeAt: _purgeAt, ...told } = logout
    return told
  }
}
