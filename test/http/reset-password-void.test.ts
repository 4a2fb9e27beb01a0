import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import type { User } from '../../src/index.ts'
import { createUserAgent } from '../support/user-agent.ts'
import { onBothStores } from '../support/both-stores.ts'
import { startHarness, type Harness } from '../support/harness.ts'
import { databaseOf, eventsOf, hasPassword } from '../support/observe.ts'

const NEW = 'a new password'
const OTHER_HASH = '$2b$04$CCCCCCCCCCCCCCCCCCCCC.E7iYKmz3HnBJeEDbgBwEjVHZJRxEVVu'

onBothStores(
  'A reset link is void once the account changed after it was issued (D6)',
  (technology) => {
    let h: Harness

    before(async () => {
      h = await startHarness({ technology })
    })

    after(() => h.close())

    let added = 0
    async function userWithLink(changes: Partial<User> = {}) {
      added += 1
      const user = await h.addUser({ username: `user${added}`, ...changes })
      return { user, link: await h.resetLink(user) }
    }

    /** A new link of that user works. */
    async function isMendedBy(user: User) {
      const link = await h.resetLink(user)
      expect((await h.reset(link, 'an honest password')).mode).to.equal('done')
      expect(await hasPassword(h, user, 'an honest password')).to.equal(true)
    }

    const changes: Record<string, [change: Partial<User>, back: Partial<User>]> = {
      'its address': [{ email: 'new@users.example' }, {}],
      'the case of its address': [{ email: 'NEW@users.example' }, {}],
      'its password': [{ passwordHash: OTHER_HASH }, {}],
      'its enabled state': [{ disabled: true }, { disabled: false }],
      'its having a password': [{ passwordHash: undefined }, { passwordHash: 'set again' }],
      'its having an address': [{ email: undefined }, { email: 'back@users.example' }],
    }
    for (const [what, [change, back]] of Object.entries(changes)) {
      it(`${what}: POST changes nothing, and a new link works (TOK-16)`, async () => {
        const { user, link } = await userWithLink()
        await h.changeUser(user, change)
        const before = await h.users.findById(user.id)
        const answer = await h.reset(link, NEW)
        expect([answer.status, answer.mode]).to.deep.equal([400, 'invalid'])
        expect(await h.users.findById(user.id)).to.deep.equal(before)
        expect(eventsOf(h, 'password_reset_completed', user)).to.deep.equal([])
        await h.changeUser(user, back)
        await isMendedBy({ ...user, ...change, ...back })
      })
    }

    it('its password: POST ends no session of the account (3.3)', async () => {
      const { user, link } = await userWithLink()
      const agent = createUserAgent()
      await h.signIn(agent, user.username)
      await h.changeUser(user, { passwordHash: OTHER_HASH })
      expect((await h.reset(link, NEW)).mode).to.equal('invalid')
      const { url } = await h.party.begin({ prompt: 'none' })
      expect((await h.follow(agent, await agent.get(url))).location).to.include('code=')
    })

    if (technology === 'mongodb') {
      it('its existence: a link of a deleted user changes nothing, and is no 5xx (TOK-17)', async () => {
        const { user, link } = await userWithLink()
        const users = databaseOf(h).collection<{ _id: string }>('users')
        await users.deleteOne({ _id: user.id })
        expect((await h.reset(link, NEW)).status).to.equal(400)
        expect(await users.findOne({ _id: user.id })).to.equal(null)
        expect(eventsOf(h, 'password_reset_completed', user)).to.deep.equal([])
        const { user: another } = await userWithLink()
        await isMendedBy(another)
      })
    }

    it('while the reset runs: the newer password wins (D5, TOK-18)', async () => {
      const runs = Array.from({ length: 6 }, async (_, afterMs) => {
        const { user, link } = await userWithLink()
        const [answer] = await Promise.all([
          h.reset(link, NEW),
          sleep(afterMs).then(() => h.changeUser(user, { passwordHash: OTHER_HASH })),
        ])
        expect((await h.users.findById(user.id))?.passwordHash).to.equal(OTHER_HASH)
        expect((await h.reset(link, NEW)).status).to.equal(400)
        const completed = eventsOf(h, 'password_reset_completed', user)
        expect(completed).to.have.length(answer.status === 200 ? 1 : 0)
      })
      await Promise.all(runs)
    })
  },
)
