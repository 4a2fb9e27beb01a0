import { expect } from 'chai'
import type { Adapter } from 'oidc-provider'
import { AccountFlowsError } from '../../src/index.ts'
import { outcomeOf, refresh, userinfo } from '../support/oauth-requests.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { createUserAgent, type UserAgent } from '../support/user-agent.ts'
import { addVerified } from '../support/person.ts'

describe('The endpoints of the provider, while its records cannot be reached', () => {
  let isGone = false
  let areUsersGone = false
  let looks = 0
  const h = suiteHarness({
    mayLogErrors: true,
    provider: {
      async findAccount(_ctx, sub) {
        if (areUsersGone) throw new AccountFlowsError('ERR_STORE_UNAVAILABLE', 'no answer in time')
        return { accountId: sub, claims: () => ({ sub }) }
      },
    },
    adapter: (adapter) => (model) => {
      const inner = adapter(model)
      const unlessGone = <K extends keyof Adapter>(name: K): Adapter[K] =>
        (async (...args: unknown[]) => {
          if (isGone) looks += 1
          if (isGone) throw new AccountFlowsError('ERR_STORE_UNAVAILABLE', 'no answer in time')
          return Reflect.apply(inner[name], inner, args)
        }) as Adapter[K]
      const names = ['upsert', 'find', 'findByUid', 'consume', 'destroy'] as const
      return { ...inner, ...Object.fromEntries(names.map((name) => [name, unlessGone(name)])) }
    },
  })
  const agent = createUserAgent()
  const accepting = (type: string) => ({ accept: type })

  before(async () => {
    const user = await addVerified(h)
    await h.signIn(agent, user.username)
  })
  beforeEach(() => {
    isGone = true
    looks = 0
  })
  afterEach(() => (isGone = false))

  const authorization = async (browser: UserAgent) =>
    browser.get((await h.party.begin()).url, accepting('text/html'))

  it('answer a browser 503 with a page after one look, whoever is signed in, and go on as ever', async () => {
    for (const browser of [agent, createUserAgent()]) {
      looks = 0
      const answer = await authorization(browser)
      expect([answer.status, answer.page, answer.mode]).to.deep.equal([503, 'error', 'unavailable'])
      expect(answer.headers.get('retry-after')).to.equal('60')
      expect(answer.headers.getSetCookie()).to.deep.equal([])
      expect(looks).to.equal(1)
    }
    isGone = false
    expect(outcomeOf(await authorization(agent))).to.equal('code')
  })

  it('answer so too where the users of the host cannot be reached', async () => {
    isGone = false
    areUsersGone = true
    const answer = await authorization(agent)
    expect([answer.status, answer.page, answer.mode]).to.deep.equal([503, 'error', 'unavailable'])
    expect(answer.headers.getSetCookie()).to.deep.equal([])
    areUsersGone = false
    expect(outcomeOf(await authorization(agent))).to.equal('code')
  })

  it('answer a client 503 as JSON', async () => {
    expect(await refresh(h, 'aRefreshToken')).to.equal('temporarily_unavailable')
    expect(await userinfo(h, 'anAccessToken')).to.equal(503)
    isGone = false
    expect(await refresh(h, 'aRefreshToken')).to.equal('invalid_grant')
    expect(await userinfo(h, 'anAccessToken')).to.equal(401)
  })
})
