import { expect } from 'chai'
import { accountOf, addVerified } from '../support/blocked-login.ts'
import { onBothStores } from '../support/both-stores.ts'
import { PASSWORD, type Harness } from '../support/harness.ts'
import * as ask from '../support/oauth-requests.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { byAnotherClock } from '../support/time.ts'
import { createUserAgent } from '../support/user-agent.ts'

const NEW = 'a new password, longer'

onBothStores('A reset, where another process has another clock (FLT-14)', (technology) => {
  let beforeFinish: () => Promise<unknown> = async () => {}
  const h: Harness = suiteHarness({
    technology,
    async finishLogin(req, res, login) {
      await beforeFinish()
      return h.flows.finishLogin(req, res, login)
    },
  })
  afterEach(() => (beforeFinish = async () => {}))

  for (const seconds of [0.9, 2, 60, -0.9, -2, -60]) {
    const elsewhere = <T>(work: () => Promise<T>) => byAnotherClock(seconds * 1_000, work)

    it(`ends what was signed in there, ${seconds} s ahead, and lets the owner in there at once`, async () => {
      const user = await addVerified(h)
      const [thief, owner] = [createUserAgent(), createUserAgent()]
      const stolen = await elsewhere(async () => {
        await h.signIn(thief, user.username)
        return ask.offlineTokens(h, thief, user)
      })
      expect(await accountOf(h, thief)).to.equal(user.id)
      const held = createUserAgent()
      const heldAnswer = await elsewhere(async () =>
        h.login(held, (await h.party.begin()).url, user.username),
      )
      expect((await h.reset(await h.resetLink(user), NEW)).mode).to.equal('done')

      const back = await elsewhere(() => h.signIn(owner, user.username, NEW))
      expect(ask.outcomeOf(back)).to.equal('code')
      const tokens = await elsewhere(() => ask.offlineTokens(h, owner, user))
      for (const look of [elsewhere, <T>(work: () => Promise<T>) => work()]) {
        expect(await look(() => accountOf(h, thief))).to.equal(undefined)
        expect(await look(() => ask.isActive(h, stolen.access_token))).to.equal(false)
        expect(await look(() => ask.refresh(h, stolen.refresh_token))).to.equal('invalid_grant')
        expect(await look(() => accountOf(h, owner))).to.equal(user.id)
        expect(await look(() => ask.isActive(h, tokens.access_token))).to.equal(true)
      }
      expect(await elsewhere(() => ask.refresh(h, tokens.refresh_token))).to.equal('tokens')
      expect(ask.outcomeOf(await h.follow(held, heldAnswer))).to.equal('400')
      expect(await accountOf(h, held)).to.equal(undefined)
    })

    it(`ends a login there, ${seconds} s ahead, whose old password was compared just before`, async () => {
      const user = await addVerified(h)
      const link = await h.resetLink(user)
      const agent = createUserAgent()
      const { url } = await h.party.begin()
      const shown = await elsewhere(async () => h.follow(agent, await agent.get(url)))
      beforeFinish = () => byAnotherClock(-seconds * 1_000, () => h.reset(link, NEW))
      const back = await elsewhere(async () =>
        h.follow(
          agent,
          await agent.post(shown.url, { username: user.username, password: PASSWORD }),
        ),
      )
      expect(ask.outcomeOf(back)).to.equal('400')
      expect(await accountOf(h, agent)).to.equal(undefined)
    })
  }
})
