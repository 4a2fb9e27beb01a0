import { expect } from 'chai'
import { it } from 'mocha'
import { setTimeout as delay } from 'node:timers/promises'
import type { RateLimitStore } from '../ports.ts'
import { atOnce, hour, minute } from './store-contract-samples.ts'

export function itCountsForLimits(port: () => RateLimitStore): void {
  it('counts from one, each key by itself', async () => {
    expect(await port().count('one', hour)).to.include({ count: 1 })
    expect(await port().count('one', hour)).to.include({ count: 2 })
    expect(await port().count('another', hour)).to.include({ count: 1 })
    expect(await port().count('One', hour)).to.include({ count: 1 })
  })

  it('tells when the window of the first count ends, also to those that come later', async () => {
    const { endsInMs } = await port().count('key', minute)
    expect(endsInMs).to.be.within(1, minute)
    await delay(20)
    const later = await port().count('key', hour)
    expect(later.count).to.equal(2)
    expect(later.endsInMs).to.be.within(1, endsInMs - 1)
  })

  it('counts from one again once the window is over', async () => {
    await port().count('key', 50)
    await port().count('key', 50)
    await delay(120)
    expect(await port().count('key', minute)).to.include({ count: 1 })
    expect(await port().count('key', minute)).to.include({ count: 2 })
  })

  it('gives each of 20 callers at once a number of its own, also where a window has just ended', async () => {
    for (const windowMs of [50, minute]) {
      const counts = await atOnce(async () => (await port().count('key', windowMs)).count)
      expect(counts.toSorted((one, other) => one - other)).to.deep.equal(
        Array.from({ length: counts.length }, (_, index) => index + 1),
      )
      await delay(120)
    }
  })

  it('refuses a window of no length, and counts nothing', async () => {
    for (const windowMs of [0, -1, Number.NaN]) {
      const outcome = await port()
        .count('key', windowMs)
        .then(
          () => 'counted',
          () => 'refused',
        )
      expect(outcome).to.equal('refused')
    }
    expect(await port().count('key', minute)).to.include({ count: 1 })
  })
}
