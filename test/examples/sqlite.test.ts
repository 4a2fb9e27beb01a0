import { expect } from 'chai'
import { type Database, sqliteStore } from '../../examples/stores/sqlite.ts'
import { itIsARecordStore } from '../../src/contract/suites/index.ts'
import { systemClock } from '../../src/clock.ts'
import { flowsStore } from '../../src/store/index.ts'
import { startHarness } from '../support/harness.ts'
import { sampleResetToken } from '../store/contract/samples.ts'

// From Node 22.5 on.
const name = 'node:sqlite'
const sqlite: { DatabaseSync: new (path: string) => Database & { close(): void } } | undefined =
  await import(name).catch(() => undefined)

if (sqlite) {
  const opened = () => new sqlite.DatabaseSync(':memory:')

  let db = opened()
  itIsARecordStore(
    'examples/stores/sqlite.ts',
    async () => {
      db = opened()
      return { store: sqliteStore(db), close: async () => db.close() }
    },
    async ({ name }, id) => db.prepare(`UPDATE ${name} SET parameters = '{' WHERE id = ?`).all(id),
  )

  describe('Flows on examples/stores/sqlite.ts', () => {
    it('reset a password, verify an address in a login, and keep the provider’s records', async () => {
      const db = opened()
      const h = await startHarness({ flows: { store: sqliteStore(db) } })
      const user = await h.addVerified()
      await user.signsIn()
      expect(await user.account()).to.equal(user.id)
      await user.in().getsBackIn('a new password')
      expect(await user.account()).to.equal(undefined)
      await (await h.blockedLogin()).stillGetsIn()
      await h.close()
      db.close()
    })

    it('have what is over removed, and keep the rest', async () => {
      const db = opened()
      const store = flowsStore(sqliteStore(db), systemClock)
      await store.start()
      const longAgo = new Date(Date.now() - 30 * 86_400_000)
      for (let number = 0; number < 1_100; number += 1)
        await store.resetTokens.issue(sampleResetToken({ userId: `${number}`, expiresAt: longAgo }))
      const expiresAt = new Date(Date.now() + 60_000)
      await store.resetTokens.issue(sampleResetToken({ userId: 'ann', expiresAt }))
      const count = () => db.prepare('SELECT count(*) AS count FROM password_reset_tokens').all()
      expect(count()).to.deep.equal([{ count: 1_101 }])
      await store.purge()
      expect(count()).to.deep.equal([{ count: 1 }])
      expect(await store.resetTokens.ofUser('ann', 2)).to.have.length(1)
      db.close()
    })
  })
}
