import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect } from 'chai'
import { systemClock, type Clock } from '../../src/clock.ts'
import { createLine, newConnections } from '../../src/smtp/line.ts'
import { noSignal } from './smtp-suite.ts'

describe('The line for connections', () => {
  function collectGarbage() {
    setFlagsFromString('--expose-gc')
    const collect: unknown = runInNewContext('gc')
    if (typeof collect === 'function') collect()
  }

  it('ends every attempt at its deadline, whatever the garbage collector does', async () => {
    const fast: Clock = { ...systemClock, sleep: (ms, how) => systemClock.sleep(ms / 500, how) }
    const line = createLine(fast, {
      connections: newConnections(),
      open: (signal) =>
        new Promise((_, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason))
        }),
      close() {},
    })
    const garbage = setInterval(collectGarbage, 5)
    try {
      const attempts = Array.from({ length: 5 }, () =>
        line.inTurn(noSignal(), ({ open }) => open()).catch((reason: unknown) => reason),
      )
      for (const reason of await Promise.all(attempts))
        expect(reason).to.include({ name: 'TimeoutError' })
    } finally {
      clearInterval(garbage)
    }
  })
})
