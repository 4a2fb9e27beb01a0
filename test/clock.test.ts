import { expect } from 'chai'
import { later, systemClock, timeout, within } from '../src/clock.ts'
import { movableClock, moveTime, resetTime } from './support/time.ts'

const HOUR = 3_600_000
const never = new Promise<never>(() => {})

for (const [name, clock] of Object.entries({ systemClock, movableClock })) {
  describe(name, () => {
    it('wakes whoever sleeps when the signal aborts, or was aborted before, and never rejects', async () => {
      const stop = new AbortController()
      const sleeping = clock.sleep(HOUR, { signal: stop.signal })
      stop.abort()
      await sleeping
      await clock.sleep(HOUR, { signal: stop.signal })
    })

    it('gives an answer that comes in time, and passes a failure on', async () => {
      expect(await within(clock, HOUR, Promise.resolve('here'))).to.equal('here')
      const failed: unknown = await within(clock, HOUR, Promise.reject(new Error('no'))).catch(
        (error: unknown) => error,
      )
      expect(failed).to.be.instanceOf(Error).with.property('message', 'no')
    })

    it('says late of an answer that does not come, and aborts with a TimeoutError', async () => {
      expect(await within(clock, 1, never)).to.equal('late')
      const { signal } = timeout(clock, 1)
      if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve))
      expect(signal.reason).to.have.property('name', 'TimeoutError')
    })

    it('does nothing later that was cancelled before', async () => {
      const done: string[] = []
      const cancel = later(clock, 1, () => done.push('cancelled'))
      later(clock, 1, () => done.push('first'))
      cancel()
      await clock.sleep(5)
      await new Promise<void>((resolve) => void later(clock, 1, resolve))
      expect(done).to.deep.equal(['first'])
    })
  })
}

describe('The time of the tests', () => {
  after(resetTime)

  it('moves for our clock, for Date, and for whoever sleeps', async () => {
    const [clock, date] = [movableClock.now(), new Date()]
    const waiting = movableClock.sleep(HOUR, { signal: new AbortController().signal })
    await moveTime(HOUR)
    await waiting
    expect(movableClock.now().getTime() - clock.getTime()).to.be.at.least(HOUR)
    expect(Date.now() - date.getTime()).to.be.at.least(HOUR)
    expect(new Date(0).toISOString()).to.equal('1970-01-01T00:00:00.000Z')
    expect(new Date()).to.be.instanceOf(Date)
  })

  it('passes at once where nothing can cut a short wait', async () => {
    const before = Date.now()
    await movableClock.sleep(1_000)
    expect(Date.now() - before).to.be.at.least(1_000)
  })
})
