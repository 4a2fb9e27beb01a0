import { expect } from 'chai'
import { systemClock, type Clock } from '../../src/clock.ts'
import { createLane } from '../../src/outbox/lane.ts'
import { eventually } from '../support/eventually.ts'

describe('A lane of jobs whose store fails', () => {
  it('waits two seconds, however often it is rung meanwhile, then takes what there is', async () => {
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
    const lane = createLane<{ id: string }>({
      name: 'mail',
      atOnce: 2,
      wave: 1,
      async claim() {
        claims += 1
        if (claims === 1) throw new Error('the database is away')
        return claims === 2 ? [{ id: 'a' }] : []
      },
      work: async ({ id }) => void worked.push(id),
      clock,
      log: (_level, message) => logged.push(message),
    })
    lane.start()
    await eventually('it waits', () => waits.length === 1)
    for (let ring = 0; ring < 20; ring += 1) lane.ring()
    expect([claims, waits, logged]).to.deep.equal([1, [2_000], ['mail outbox failed']])
    over[0]?.()
    await eventually('the job is done', () => worked.length === 1)
    const stopped = lane.stop(1_000)
    for (const end of over) end()
    await stopped
    expect(logged).to.have.length(1)
  })
})
