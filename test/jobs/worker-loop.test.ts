import { expect } from 'chai'
import { systemClock, type Clock } from '../../src/clock.ts'
import { createWakeUps, createWorker } from '../../src/jobs/worker.ts'
import { eventually } from '../support/eventually.ts'
import { movableClock } from '../support/time.ts'

describe('A worker whose store fails', () => {
  it('waits two seconds, however often it is woken meanwhile, then takes what there is', async () => {
    const waits: number[] = []
    const over: (() => void)[] = []
    const clock: Clock = {
      ...systemClock,
      // Each wait lasts until the test ends it, or its signal does.
      sleep: (ms, { signal } = {}) =>
        new Promise((resolve) => {
          waits.push(ms)
          over.push(resolve)
          if (signal?.aborted) resolve()
          signal?.addEventListener('abort', () => resolve())
        }),
    }
    const logged: string[] = []
    const worked: string[] = []
    let claims = 0
    const worker = createWorker<{ id: string }>({
      name: 'mail',
      atOnce: 2,
      minBatch: 1,
      async claim() {
        claims += 1
        if (claims === 1) throw new Error('the database is away')
        return claims === 2 ? [{ id: 'a' }] : []
      },
      work: async ({ id }) => void worked.push(id),
      clock,
      log: (_level, message) => logged.push(message),
    })
    worker.start()
    await eventually('it waits', () => waits.length === 1)
    for (let count = 0; count < 20; count += 1) worker.wake()
    expect([claims, waits, logged]).to.deep.equal([1, [2_000], ['mail claim failed']])
    over[0]?.()
    await eventually('the job is done', () => worked.length === 1)
    const stopped = worker.stop(1_000)
    for (const end of over) end()
    await stopped
    expect(logged).to.have.length(1)
  })
})

describe('A look at jobs that are due', () => {
  it('is one for all that are due at once, and another one for a job that is known only after it', async () => {
    let looks = 0
    const wake = createWakeUps(movableClock, () => (looks += 1))
    const at = new Date(movableClock.now().getTime() + 50)
    for (let job = 0; job < 20; job += 1) wake(at)
    await eventually('they are looked for', () => looks > 0)
    expect(looks).to.equal(1)
    wake(at)
    await eventually('it is looked for', () => looks === 2)
  })
})
