import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect } from 'chai'
import { systemClock, type Clock } from '../../src/clock.ts'
import { createPool, type Peer } from '../../src/mail/smtp/pool.ts'
import { noSignal } from './smtp-suite.ts'

describe('The pool of connections', () => {
  setFlagsFromString('--expose-gc')
  const collectGarbage: () => void = runInNewContext('gc')

  const begun = Date.now()
  /** 500 times as fast as the clock of the machine. */
  const fast: Clock = {
    now: () => new Date(begun + (Date.now() - begun) * 500),
    sleep: (ms, how) => systemClock.sleep(ms / 500, how),
  }
  const neverOpens: Peer['open'] = (signal) =>
    new Promise((_, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason))
    })

  it('ends every attempt at its deadline, whatever the garbage collector does, and gives back who waited as long', async () => {
    const pool = createPool(fast, () => ({ open: neverOpens, close() {} }))
    const attempt = () =>
      pool.withSlot(noSignal(), ({ open }) => open()).catch((reason: unknown) => reason)
    const garbage = setInterval(collectGarbage, 5)
    try {
      const attempts = Array.from({ length: 5 }, attempt)
      const waiting = attempt()
      for (const reason of await Promise.all(attempts))
        expect(reason).to.include({ name: 'TimeoutError' })
      expect(await waiting).to.equal(undefined)
      expect(pool.isEmpty()).to.equal(true)
    } finally {
      clearInterval(garbage)
    }
  })
})
