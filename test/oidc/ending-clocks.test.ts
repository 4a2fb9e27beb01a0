import bcrypt from 'bcrypt'
import { expect } from 'chai'
import { memoryStore } from '../../src/index.ts'
import { expectExpired } from '../support/blocked-login.ts'
import { onBothStores } from '../support/both-stores.ts'
import { eventually } from '../support/eventually.ts'
import { secondAfter } from '../../src/ports/login-end.ts'
import { CONFIDENTIAL, PASSWORD, startHarness, type Harness } from '../support/harness.ts'
import * as ask from '../support/oauth-requests.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { byAnotherClock, movableClock, moveTime } from '../support/time.ts'
import { createUserAgent } from '../support/user-agent.ts'
import {
  accountOf,
  addUnverified,
  addVerified,
  sessionId,
  setsSession,
  type Person,
} from '../support/person.ts'

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
      expect((await h.reset(await user.forgets(), NEW)).mode).to.equal('done')

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
      const link = await user.forgets()
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

describe('A login on its way, whose password is another one by the time it is finished (FLT-14)', () => {
  let beforeFinish: (user: Person) => Promise<unknown> = async () => {}
  const h: Harness = suiteHarness({
    async finishLogin(req, res, login) {
      if (typeof login.account !== 'string') await beforeFinish(login.account)
      return h.flows.finishLogin(req, res, login)
    },
  })
  const reset = async (user: Person, password: string) => {
    expect((await h.reset(await user.forgets(), password)).mode).to.equal('done')
  }
  const change = async (user: Person, password: string) =>
    user.becomes({ passwordHash: await bcrypt.hash(password, 4) })

  const meanwhile: [what: string, happens: (user: Person) => Promise<unknown>][] = [
    ['a reset', (user) => reset(user, NEW)],
    [
      'half an hour, and a change by the host that ends all sessions',
      async (user) => {
        await moveTime(1_800_000)
        await change(user, NEW)
        await h.flows.endSessions(user.id)
      },
    ],
    [
      'another hash of the same password, and a reset of that',
      async (user) => {
        await change(user, PASSWORD)
        await reset(user, NEW)
      },
    ],
    [
      'two resets',
      async (user) => {
        await reset(user, NEW)
        await reset(user, `${NEW} still`)
      },
    ],
  ]
  for (const [what, happens] of meanwhile) {
    for (const seconds of [0, 2]) {
      it(`is ended by ${what}, where it is ${seconds} s ahead`, async () => {
        const [user, agent] = [await addVerified(h), createUserAgent()]
        beforeFinish = (account) => byAnotherClock(-seconds * 1_000, () => happens(account))
        const back = await byAnotherClock(seconds * 1_000, () => h.signIn(agent, user.username))
        beforeFinish = async () => {}
        expect(ask.outcomeOf(back)).to.equal('400')
        expect(await accountOf(h, agent)).to.equal(undefined)
      })
    }
  }

  it('is good where nothing ended, whatever was hashed anew meanwhile', async () => {
    const [user, agent] = [await addVerified(h), createUserAgent()]
    beforeFinish = (account) => change(account, PASSWORD)
    expect(ask.outcomeOf(await h.signIn(agent, user.username))).to.equal('code')
    beforeFinish = async () => {}
  })
})

describe('A reset whose last effect fails, and is repeated', () => {
  it('ends nothing that was signed in since (3.3)', async () => {
    const store = memoryStore(movableClock)
    const { advance } = store.resetTokens
    let failures = 0
    store.resetTokens.advance = async (id, step, at) => {
      if (step === 'completed') failures += 1
      if (step === 'completed' && failures < 4) throw new Error('the database hiccups')
      return advance(id, step, at)
    }
    const h = await startHarness({ flows: { store }, mayLogErrors: true })
    try {
      const [user, owner] = [await addVerified(h), createUserAgent()]
      await h.reset(await user.forgets(), NEW)
      await moveTime(2_000)
      expect(ask.outcomeOf(await h.signIn(owner, user.username, NEW))).to.equal('code')
      await eventually('the reset is finished', async () => {
        await moveTime(11_000)
        return failures >= 4
      })
      expect(await accountOf(h, owner)).to.equal(user.id)
    } finally {
      await h.close()
    }
  })
})

onBothStores(
  'A link without a login, where another process has another clock (FLT-14)',
  (technology) => {
    const h: Harness = suiteHarness({ technology })
    const carried = {
      client_id: CONFIDENTIAL.client_id,
      redirect_uri: CONFIDENTIAL.redirect_uris[0],
      scope: 'openid',
    }

    for (const seconds of [0.9, 2, 60, -0.9, -2, -60]) {
      const elsewhere = <T>(work: () => Promise<T>) => byAnotherClock(seconds * 1_000, work)

      it(`signs in where it was made after everything was ended there, ${seconds} s ahead`, async () => {
        const user = await addUnverified(h)
        await elsewhere(() => h.flows.endSessions(user.id))
        const agent = createUserAgent()
        const link = await user.asksAgain(carried)
        expect(ask.outcomeOf(await agent.get(link))).to.equal('code')
        expect(await accountOf(h, agent)).to.equal(user.id)
        await h.flows.endSessions(user.id)
        expect(await accountOf(h, agent)).to.equal(undefined)
      })

      it(`does nothing where it was made there, ${seconds} s ahead, before everything was ended`, async () => {
        const user = await addUnverified(h)
        const link = await elsewhere(() => user.asksAgain(carried))
        await h.flows.endSessions(user.id)
        for (const look of [elsewhere, <T>(work: () => Promise<T>) => work()]) {
          const agent = createUserAgent()
          const answer = await look(() => agent.get(link))
          expectExpired(answer)
          expect([answer.location, setsSession(answer)]).to.deep.equal([undefined, false])
          expect(sessionId(h, agent)).to.equal(undefined)
        }
        expect(await user.isVerified()).to.equal(false)
        expect(ask.outcomeOf(await createUserAgent().get(await user.asksAgain(carried)))).to.equal(
          'code',
        )
      })
    }
  },
)

onBothStores('A reset, and the logins of its own second (3.3)', (technology) => {
  const h: Harness = suiteHarness({ technology })

  it('ends those before it, keeps those after it, and lets nobody wait for the next second', async () => {
    const [user, thief, owner] = [await addVerified(h), createUserAgent(), createUserAgent()]
    const link = await user.forgets()
    await secondAfter(movableClock, new Date())
    await h.signIn(thief, user.username)
    expect(await accountOf(h, thief)).to.equal(user.id)
    const began = Date.now() - performance.now()
    expect((await h.reset(link, NEW)).mode).to.equal('done')
    expect(ask.outcomeOf(await h.signIn(owner, user.username, NEW))).to.equal('code')
    expect(await accountOf(h, owner)).to.equal(user.id)
    expect(await accountOf(h, thief)).to.equal(undefined)
    expect(Date.now() - performance.now() - began, 'time that was slept').to.be.below(10)
    await moveTime(60_000)
    expect(await accountOf(h, owner)).to.equal(user.id)
  })
})
