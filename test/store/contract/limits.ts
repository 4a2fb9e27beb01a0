import { expect } from 'chai'
import { it } from 'mocha'
import { setTimeout as delay } from 'node:timers/promises'
import type { AccountFlowsStore, RateLimits } from '../../../src/store/index.ts'
import { claimedAgain, jobsIn } from './mail-jobs.ts'
import { after, atOnce, hour, minute } from './samples.ts'

export function itCountsHits(port: () => RateLimits): void {
  it('tells how a key stands, and counts nothing by that', async () => {
    const none = { count: 0, msToEnd: 0 }
    expect(await port().peek('a key')).to.deep.equal(none)
    await port().hit('a key', minute)
    await port().hit('another key', hour)
    for (const time of [1, 2]) {
      const { count, msToEnd } = await port().peek('a key')
      expect(count, `${time}`).to.equal(1)
      expect(msToEnd).to.be.within(1, minute)
    }
    expect(await port().hit('a key', minute)).to.include({ count: 2 })
  })

  it('gives 20 callers at once 20 different counts (RATE-10)', async () => {
    const hits = await atOnce(() => port().hit('a key', minute))
    const expected = Array.from({ length: 20 }, (_, caller) => caller + 1)
    expect(hits.map(({ count }) => count)).to.have.members(expected)
    expect(await port().hit('a key', minute)).to.include({ count: 21 })
  })

  it('takes hits back, all at most, and tells how many', async () => {
    for (const _ of [1, 2, 3]) await port().hit('a key', minute)
    expect(await port().giveBack('a key')).to.equal(1)
    expect(await port().hit('a key', minute)).to.include({ count: 3 })
    const taken = await Promise.all([1, 2, 3].map(() => port().giveBack('a key', Infinity)))
    expect(taken).to.have.members([0, 0, 3])
    expect(await port().giveBack('a key')).to.equal(0)
    expect(await port().giveBack('unknown')).to.equal(0)
    await port().hit('short', 1)
    await delay(5)
    expect(await port().giveBack('short')).to.equal(0)
    expect(await port().peek('a key')).to.deep.equal({ count: 0, msToEnd: 0 })
    expect(await port().hit('a key', minute)).to.include({ count: 1 })
  })

  it('counts nothing above the limit that it is told, until that is raised', async () => {
    const counts = async (most: number, times: number) => {
      const all: number[] = []
      for (let n = 0; n < times; n += 1) all.push((await port().hit('a key', minute, most)).count)
      return all
    }
    expect(await counts(2, 5)).to.deep.equal([1, 2, 3, 4, 4])
    expect((await port().peek('a key')).count).to.equal(3)
    expect(await counts(4, 4)).to.deep.equal([4, 5, 6, 6])
    expect(await port().giveBack('a key', 3)).to.equal(3)
    expect(await counts(2, 2)).to.deep.equal([3, 4])
  })

  it('begins anew once the window is over', async () => {
    await port().hit('short', 100)
    await port().hit('long', minute)
    for (;;) {
      await delay(20)
      const { count, msToEnd } = await port().hit('short', 100)
      expect(msToEnd).to.be.within(0, 100)
      if (count === 1) break
    }
    expect((await port().hit('long', minute)).count).to.equal(2)
  })

  it('ends the window no later than asked for, and goes on counting (RATE-12)', async () => {
    await port().hit('a key', hour)
    await port().hit('a key', hour)
    const shorter = await port().hit('a key', minute)
    expect(shorter.count).to.equal(3)
    expect(shorter.msToEnd).to.be.within(1, minute)
    expect((await port().hit('a key', hour)).msToEnd).to.be.within(1, minute)
  })
}

/** What the limits of mails need to know of an account: whether it has something to use. */
export function itKnowsWhatIsLeftToUse(port: () => AccountFlowsStore['outbox']): void {
  const jobs = jobsIn(port)
  const { claim, taken, resolve, claimed, isUnderWay, supersedeEarlier } = jobs
  const known = { accountId: 'ann' }

  it('counts a mail as under way from when it was looked up until it left', async () => {
    const asking = await claimed(known)
    const other = await claimed(known)
    expect(await isUnderWay(asking)).to.equal(false)
    await resolve(other)
    expect(await isUnderWay(asking)).to.equal(true)
    expect(await isUnderWay(other)).to.equal(false)
    expect(await isUnderWay({ ...asking, accountId: 'bob' })).to.equal(false)
    expect(await isUnderWay({ ...asking, kind: 'email_verification' })).to.equal(false)
    expect(await isUnderWay(asking, hour)).to.equal(false)
    await port().release(other, after(1))
    expect(await isUnderWay(asking)).to.equal(true)
    const sending = await taken('send')
    expect(await isUnderWay(asking)).to.equal(true)
    await port().remove(sending)
    expect(await isUnderWay(asking)).to.equal(false)
  })

  it('counts to a request of a login only others of that login', async () => {
    const kind = 'email_verification'
    const take = (pendingLoginId: string | undefined) => claimed({ ...known, kind, pendingLoginId })
    const byName = await take(undefined)
    const ofLogin = await take('a login')
    await resolve(byName)
    expect(await isUnderWay(ofLogin)).to.equal(false)
    const another = await take('another login')
    await resolve(another)
    expect(await isUnderWay(ofLogin)).to.equal(false)
    const again = await take('a login')
    await resolve(again)
    expect(await isUnderWay(ofLogin)).to.equal(true)
  })

  for (const end of ['superseded', 'dead'] as const) {
    it(`does not count a mail that is ${end}`, async () => {
      const other = await claimed(known)
      await resolve(other)
      const asking = await claimed(known)
      if (end === 'dead') await port().giveUp(other, after(1), 'refused')
      else await supersedeEarlier(asking)
      expect(await isUnderWay(asking)).to.equal(false)
    })
  }

  it('postpones a mail without counting an attempt', async () => {
    const sending = await jobs.sending(known)
    await port().release(sending, after(10))
    await port().release(sending, after(20))
    expect(await claim('send', 9)).to.equal(undefined)
    const next = await taken('send', 10)
    expect(next).to.deep.equal(claimedAgain(sending, next))
    expect(next).to.include({ attempts: 1 })
  })
}
