import { expect } from 'chai'
import { memoryStore } from '../../src/stores/memory-store.ts'
import { itIsAnAccountFlowsStore } from '../../src/contract/store-contract.ts'

itIsAnAccountFlowsStore('memoryStore()', async () => ({
  store: memoryStore(),
  close: async () => {},
}))

describe('memoryStore()', () => {
  it('shows the events that were recorded', async () => {
    const { audit } = memoryStore()
    const event = { id: '1', type: 'sessions_ended', at: new Date(), accountId: 'ann' } as const
    await audit.record(event)
    expect(audit.events()).to.deep.equal([event])
  })
})
