import { setImmediate as turn } from 'node:timers/promises'
import { expect } from 'chai'
import type { User } from '../../src/index.ts'
import { onBothStores } from '../support/both-stores.ts'
import { eventsOf } from '../support/observe.ts'
import { isMendedBy, OTHER_HASH, userWithLink } from '../support/reset-links.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { createUserAgent } from '../support/user-agent.ts'

const NEW = 'a new password'

describe('A reset link is void once the account changed after it was issued (D6)', () => {
  const h = suiteHarness()

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
      const { user, link } = await userWithLink(h)
      await h.changeUser(user, change)
      const before = await h.users.findById(user.id)
      const answer = await h.reset(link, NEW)
      expect([answer.status, answer.mode]).to.deep.equal([400, 'invalid'])
      expect(await h.users.findById(user.id)).to.deep.equal(before)
      expect(eventsOf(h, 'password_reset_completed', user)).to.deep.equal([])
      await h.changeUser(user, back)
      await isMendedBy(h, { ...user, ...change, ...back })
    })
  }

  it('its password: POST ends no session of the account (3.3)', async () => {
    const { user, link } = await userWithLink(h)
    const agent = createUserAgent()
    await h.signIn(agent, user.username)
    await h.changeUser(user, { passwordHash: OTHER_HASH })
    expect((await h.reset(link, NEW)).mode).to.equal('invalid')
    const { url } = await h.party.begin({ prompt: 'none' })
    expect((await h.follow(agent, await agent.get(url))).location).to.include('code=')
  })
})

onBothStores('A reset link of an account that changes', (technology) => {
  const h = suiteHarness({ technology })

  it('while the reset runs: the newer password wins (D5, TOK-18)', async () => {
    const runs = Array.from({ length: 6 }, async (_, run) => {
      const { user, link } = await userWithLink(h)
      const change = async () => {
        for (let turns = 0; turns < run * 20; turns += 1) await turn()
        await h.changeUser(user, { passwordHash: OTHER_HASH })
      }
      const [answer] = await Promise.all([h.reset(link, NEW), change()])
      expect((await h.users.findById(user.id))?.passwordHash).to.equal(OTHER_HASH)
      expect((await h.reset(link, NEW)).status).to.equal(400)
      const completed = eventsOf(h, 'password_reset_completed', user)
      expect(completed).to.have.length(answer.status === 200 ? 1 : 0)
    })
    await Promise.all(runs)
  })
})
