import { expect } from 'chai'
import { itIsAnAccountFlowsStore } from '../../src/contract/index.ts'
import { memoryStore } from '../../src/stores/memory/store.ts'
import { movableClock, moveTime } from '../support/time.ts'

itIsAnAccountFlowsStore('memoryStore()', async () => ({
  store: memoryStore(),
  close: async () => {},
}))

describe('memoryStore()', () => {
  it('shows the events that were recorded, until they were kept as long as they are to be', async () => {
    const { audit } = memoryStore(movableClock)
    const event = { type: 'email_login_blocked', at: new Date(), accountId: 'ann' } as const
    const short = { ...event, id: 'short' }
    const long = { ...event, id: 'long' }
    const late = { ...event, id: 'late' }
    await audit.record(short, 1_000)
    await audit.record(long, 3_000)
    expect(audit.events()).to.deep.equal([short, long])
    await moveTime(1_000)
    await audit.record(late, 1_000)
    expect(audit.events()).to.deep.equal([long, late])
    expect(await audit.record(short, 1_000)).to.equal(true)
  })
})
