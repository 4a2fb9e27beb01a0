import { randomBytes } from 'node:crypto'
import { expect } from 'chai'
import {
  blockedLogin,
  expectExpired,
  expectNothingChanged,
  type BlockedLogin,
} from '../support/blocked-login.ts'
import { onBothStores } from '../support/both-stores.ts'
import { startHarness, type Harness } from '../support/harness.ts'
import { createUserAgent } from '../support/user-agent.ts'

onBothStores('A verification link after the keys were rotated (SIG-13)', (technology) => {
  const [oldKey, newKey] = [randomBytes(32), randomBytes(32)]
  let harness: Harness
  let login: BlockedLogin

  before(async () => {
    harness = await startHarness({ technology, flows: { secrets: [oldKey] } })
    login = await blockedLogin(harness)
  })
  after(() => harness.close())

  /** Another process on the same store, with this key ring. */
  async function openedBy(secrets: Buffer[]) {
    const { store, users } = harness
    const rotated = await startHarness({
      flows: { secrets, store, users },
      provider: {
        async findAccount(_ctx, sub) {
          return (await users.findById(sub)) && { accountId: sub, claims: () => ({ sub }) }
        },
      },
    })
    const link = login.link.replace(harness.oauthUrl, rotated.oauthUrl)
    const answer = await createUserAgent().get(link)
    return { answer, close: () => rotated.close() }
  }

  it('shows the page in mode expired once its key is gone', async () => {
    const { answer, close } = await openedBy([newKey])
    expectExpired(answer)
    await expectNothingChanged(harness, login, answer)
    await close()
  })

  it('still works while its key may verify', async () => {
    const { answer, close } = await openedBy([newKey, oldKey])
    expect(answer.status).to.equal(302)
    expect(answer.location).to.match(/^https:\/\/app\.example\/cb\?code=/)
    await close()
  })
})
