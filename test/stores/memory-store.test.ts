import { expect } from 'chai'
import { memoryStore } from '../../src/stores/memory/store.ts'
import { movableClock, moveTime } from '../support/time.ts'
import { itIsAnAccountFlowsStore } from '../../src/contract/index.ts'

itIsAnAccountFlowsStore('memoryStore()', async () => ({
  store: memoryStore(),
  close: async () => {},
}))

describe('memoryStore()', () => {
  it('shows the events that were recorded', async () => {
    const { audit } = memoryStore()
    const event = {
      id: '1',
      type: 'email_login_blocked',
      at: new Date(),
      accountId: 'ann',
    } as const
    await audit.record(event, 1_000)
    expect(audit.events()).to.deep.equal([event])
  })

  it('removes events that were kept as long as they are to be', async () => {
    const { audit } = memoryStore(movableClock)
    const event = { type: 'email_login_blocked', at: new Date() } as const
    await audit.record({ ...event, id: 'short' }, 1_000)
    await audit.record({ ...event, id: 'long' }, 3_000)
    await moveTime(1_000)
    await audit.record({ ...event, id: 'late' }, 1_000)
    expect(audit.events().map(({ id }) => id)).to.deep.equal(['long', 'late'])
    expect(await audit.record({ ...event, id: 'short' }, 1_000)).to.equal(true)
  })
})
