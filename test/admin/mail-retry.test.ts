import { expect } from 'chai'
import { createMailRetry } from '../../src/admin/mail-retry.ts'
import { memoryStore, type MailJobStatus } from '../../src/index.ts'

const START = Date.UTC(2026, 0, 1)

/** Dead letters of these accounts, the first the newest, as an outbox tells of them. */
function retryOf(accounts: string[]) {
  const revived: string[] = []
  const letters = accounts.map((accountId, index): MailJobStatus => ({
    id: `mail-${index}`,
    kind: 'email_verification',
    state: 'dead',
    accountId,
    requestedAt: new Date(START - index),
    nextAttemptAt: undefined,
    expiresAt: undefined,
    attempts: 1,
    reason: 'ERR_MAIL_REFUSED',
    isHeld: false,
  }))
  const store = memoryStore()
  const retry = createMailRetry({
    store: {
      ...store,
      outbox: {
        ...store.outbox,
        list: async ({ limit, requestedBefore = new Date(START + 1) }) =>
          letters
            .filter(({ id }) => !revived.includes(id))
            .filter(({ requestedAt = new Date(0) }) => requestedAt < requestedBefore)
            .slice(0, limit),
        async revive(id) {
          revived.push(id)
          return 'revived'
        },
      },
    },
    wake: () => {},
    now: () => new Date(START),
  })
  return { retry, revived }
}

describe('createMailRetry()', () => {
  it('asks again for the newest letter of each account, and for no other of it', async () => {
    const { retry, revived } = retryOf(['ann', 'bob', 'ann', 'ann', 'bob'])
    expect(await retry.allDead()).to.deep.equal({ changed: 2 })
    expect(revived).to.deep.equal(['mail-0', 'mail-1'])
  })

  it('looks at so many at once, be they of one account, and says where to go on', async () => {
    const { retry, revived } = retryOf([...Array<string>(1_000).fill('ann'), 'bob'])
    let before: Date | undefined
    let calls = 0
    do {
      before = (await retry.allDead(before)).moreBefore
      calls += 1
    } while (before)
    expect(calls).to.equal(4)
    expect(revived).to.include.members(['mail-0', 'mail-1000']).and.to.have.length(5)
  })
})
