import { expect } from 'chai'
import { memoryUsers } from '../../src/stores/memory/users.ts'
import { itIsAUserStore } from '../../src/contract/index.ts'
import { sampleUser } from '../../src/contract/user-store.ts'

itIsAUserStore('memoryUsers()', async (initial) => ({
  users: memoryUsers(initial),
  close: async () => {},
}))

describe('memoryUsers()', () => {
  it('takes users later, and keeps its own copy of each', async () => {
    const users = memoryUsers()
    const ann = sampleUser()
    users.add(ann)
    ann.username = 'changed'
    const found = await users.findById('ann')
    expect(found).to.deep.equal(sampleUser())
    if (found) found.disabled = true
    expect(await users.findById('ann')).to.include({ disabled: false })
  })
})
