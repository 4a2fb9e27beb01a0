import { EventEmitter, once } from 'node:events'
import { expect } from 'chai'
import type { AdapterFactory } from 'oidc-provider'
import { CLIENT, CONFIDENTIAL } from '../support/harness.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import * as ask from '../support/oauth-requests.ts'
import { createUserAgent } from '../support/user-agent.ts'
import {
  accountOf,
  addUnverified,
  addVerified,
  blockedLogin,
  setsSession,
  type Person,
} from '../support/person.ts'

const NEW_PASSWORD = 'a new password, longer'
const ANOTHER_CLIENT = { ...CLIENT, client_id: 'another app' }

type Gate = ReturnType<typeof createGate>

/** Holds up a request at a named place until it is let go on. */
function createGate() {
  const events = new EventEmitter()
  const closed = new Set<string>()

  return {
    async pass(place: string) {
      if (!closed.delete(place)) return
      events.emit('arrived')
      await once(events, 'opened')
    },
    /** Starts the request, waits until it is at the place, does the work, and lets the request go on. */
    async during<T>(place: string, request: () => Promise<T>, work: () => Promise<void>) {
      closed.add(place)
      const arrived = once(events, 'arrived')
      const answer = request()
      await arrived
      await work()
      events.emit('opened')
      return answer
    },
  }
}

/** Slow where a login result is saved or taken, and where a session is looked for. */
const slowBy =
  (gate: Gate) =>
  (adapter: AdapterFactory): AdapterFactory =>
  (model) => {
    const inner = adapter(model)
    return {
      ...inner,
      async find(id) {
        await gate.pass(`find ${model}`)
        return inner.find(id)
      },
      async upsert(id, payload, expiresIn) {
        const { login } = payload.result ?? {}
        if (login) await gate.pass(`save login of ${login.accountId}`)
        return inner.upsert(id, payload, expiresIn)
      },
      async destroy(id) {
        await gate.pass(`destroy ${model}`)
        return inner.destroy(id)
      },
    }
  }

describe('A request that is in flight while a password is reset (RACE-08, RACE-09)', () => {
  const gate = createGate()
  const h = suiteHarness({
    clients: [...ask.CLIENTS, ANOTHER_CLIENT],
    adapter: slowBy(gate),
    provider: {
      // So that nothing is dead merely because its session is.
      expiresWithSession: () => false,
      async findAccount(_ctx, sub) {
        await gate.pass(`find ${sub}`)
        return { accountId: sub, claims: () => ({ sub }) }
      },
    },
  })

  async function resetDuring<T>(
    place: string,
    user: Person,
    request: () => Promise<T>,
  ): Promise<T> {
    const link = await user.forgets()
    return gate.during(place, request, async () => {
      expect((await h.reset(link, NEW_PASSWORD)).mode).to.equal('done')
    })
  }

  async function signedIn() {
    const [user, agent] = [await addVerified(h), createUserAgent()]
    expect(ask.outcomeOf(await h.signIn(agent, user.username))).to.equal('code')
    return { user, agent }
  }

  it('saves its session again with a new grant, and both are dead, with the code (SES-04)', async () => {
    const another = ANOTHER_CLIENT.client_id
    const { user, agent } = await signedIn()
    const request = await h.party.begin({ client_id: another })
    const answer = await resetDuring(`find ${user.id}`, user, () => agent.get(request.url))
    expect(setsSession(answer)).to.equal(true)
    expect(ask.outcomeOf(answer)).to.equal('code')
    expect(await ask.redeem(h, request, answer.location, another)).to.equal('invalid_grant')
    expect(await accountOf(h, agent)).to.equal(undefined)

    const undisturbed = await signedIn()
    const { location } = await undisturbed.agent.get(request.url)
    expect(await ask.redeem(h, request, location, another)).to.equal('tokens')
  })

  it('finishes a login with the old password, and neither its session nor its code is good', async () => {
    const [user, agent] = [await addVerified(h), createUserAgent()]
    const request = await h.party.begin()
    const login = await h.login(agent, request.url, user.username)
    const answer = await resetDuring(`find ${user.id}`, user, () => h.follow(agent, login))
    expect(setsSession(answer)).to.equal(true)
    expect(await ask.redeem(h, request, answer.location)).to.equal('invalid_grant')
    expect(await accountOf(h, agent)).to.equal(undefined)
  })

  it('posts the old password, which was right when it was checked, and gets no code', async () => {
    const [user, agent] = [await addVerified(h), createUserAgent()]
    const request = await h.party.begin()
    const place = `save login of ${user.id}`
    const login = () => h.login(agent, request.url, user.username)
    const answer = await resetDuring(place, user, login)
    expect(answer.status).to.equal(303)
    expect(ask.outcomeOf(await h.follow(agent, answer))).to.equal('400')
    expect(await accountOf(h, agent)).to.equal(undefined)
  })

  it('gives the consent that a login waited for, and gets no code', async () => {
    const [user, agent] = [await addVerified(h), createUserAgent()]
    await ask.parkAtConsent(h, agent, user)
    const give = () => agent.post(`${h.oauthUrl}/login`, { consent: 'yes' })
    const answer = await resetDuring(`save login of ${user.id}`, user, give)
    expect(answer.status).to.equal(303)
    expect(ask.outcomeOf(await h.follow(agent, answer))).to.equal('400')
    expect(await accountOf(h, agent)).to.equal(undefined)
  })

  it('would rotate a refresh token, and gets nothing: it is gone before it is used', async () => {
    const { user, agent } = await signedIn()
    const { refresh_token } = await ask.offlineTokens(h, agent, user)
    const refresh = () => ask.refresh(h, refresh_token)
    expect(await resetDuring(`find ${user.id}`, user, refresh)).to.equal('invalid_grant')
    const next = await ask.offlineTokens(h, (await signedIn()).agent, user)
    expect(await ask.refresh(h, next.refresh_token)).to.equal('tokens')
  })

  it('redeems a code, and all that it answers is dead', async () => {
    const { user, agent } = await signedIn()
    const request = await ask.parkAtConsent(h, agent, user)
    const { location = '' } = await ask.consent(h, agent)
    const tokens = await resetDuring(`find ${user.id}`, user, () =>
      h.party.exchange(request, location),
    )
    expect(await ask.userinfo(h, tokens.access_token)).to.equal(401)
    expect(await ask.isActive(h, tokens.access_token)).to.equal(false)
    expect(await ask.refresh(h, tokens.refresh_token)).to.equal('invalid_grant')
  })

  it('approves a device code, and the device gets no token', async () => {
    const { user, agent } = await signedIn()
    const device = await ask.beginDevice(h)
    const approve = () => ask.confirmDevice(h, agent, device)
    const answer = await resetDuring(`find ${user.id}`, user, approve)
    expect(answer.status).to.equal(200)
    expect(await ask.pollDevice(h, device)).to.equal('invalid_grant')
  })

  it('opens the link of a blocked login, and is signed in nowhere', async () => {
    const { user, link, request } = await blockedLogin(h)
    const agent = await visitor()
    const answer = await resetDuring('find Session', user, () => agent.get(link))
    expect(await accountOf(h, agent)).to.equal(undefined)
    if (ask.outcomeOf(answer) === 'code') {
      expect(await ask.redeem(h, request, answer.location)).to.equal('invalid_grant')
    }
  })

  it('opens the link of a blocked login, whose request is gone by then: it is confirmed, and nobody is signed in', async () => {
    const { user, link } = await blockedLogin(h)
    const agent = createUserAgent()
    const answer = await resetDuring('find Interaction', user, () => agent.get(link))
    expect([answer.status, answer.page, answer.mode]).to.deep.equal([
      200,
      'verify-email',
      'verified',
    ])
    expect(await user.isVerified()).to.equal(true)
    expect(setsSession(answer)).to.equal(false)
    expect(await accountOf(h, agent)).to.equal(undefined)
  })

  it('opens a link that was sent again, and is signed in nowhere', async () => {
    const user = await addUnverified(h)
    const { client_id, redirect_uris } = CLIENT
    const link = await user.asksAgain({ client_id, redirect_uri: redirect_uris[0] })
    const agent = await visitor()
    await resetDuring('find Session', user, () => agent.get(link))
    expect(await accountOf(h, agent)).to.equal(undefined)
  })

  /** A browser with a session in which nobody is signed in. */
  async function visitor() {
    const agent = createUserAgent()
    await agent.get(`${h.oauthUrl}/device`)
    expect(agent.cookiesFor(`${h.oauthUrl}/auth`)).to.include('_session=')
    return agent
  }
})

describe('A host that finishes logins by itself, without finishLogin', () => {
  const gate = createGate()
  const h = suiteHarness({ usesHook: false, adapter: slowBy(gate) })

  async function heldLogin() {
    const [user, agent] = [await addVerified(h), createUserAgent()]
    const request = await h.party.begin()
    const held = await h.login(agent, request.url, user.username)
    expect(held.status).to.equal(303)
    const link = await user.forgets()
    const reset = async () => {
      expect((await h.reset(link, NEW_PASSWORD)).mode).to.equal('done')
    }
    return { agent, request, reset, follow: () => h.follow(agent, held) }
  }

  it('has its login results dated when they are saved: one held back over a reset is dead', async () => {
    const { agent, reset, follow } = await heldLogin()
    await reset()
    expect(ask.outcomeOf(await follow())).to.equal('400')
    expect(await accountOf(h, agent)).to.equal(undefined)
  })

  it('has its login results dated when they are saved: one taken during a reset is dead', async () => {
    const { agent, request, reset, follow } = await heldLogin()
    const answer = await gate.during('destroy Interaction', follow, reset)
    expect(setsSession(answer)).to.equal(true)
    expect(await ask.redeem(h, request, answer.location)).to.equal('invalid_grant')
    expect(await accountOf(h, agent)).to.equal(undefined)
  })
})

describe('A link that was asked for by name, opened while flows.endSessions runs', () => {
  const h = suiteHarness({ clients: [CLIENT, CONFIDENTIAL] })

  const times: Record<string, (end: () => Promise<unknown>) => unknown> = {
    'before it opens': (end) => end(),
    'between the looks at it and at the cut-offs'(end) {
      const { cutoffs } = h.store
      const { read } = cutoffs
      cutoffs.read = async (id) => {
        cutoffs.read = read
        await end()
        return read(id)
      }
    },
    'between its look-up and its session'(end) {
      const { markEmailVerified } = h.users
      h.users.markEmailVerified = async (id, email) => {
        h.users.markEmailVerified = markEmailVerified
        await end()
        return markEmailVerified(id, email)
      }
    },
  }
  for (const [when, endThen] of Object.entries(times)) {
    it(`signs nobody in where all ended ${when}`, async () => {
      const user = await addUnverified(h)
      const link = await user.asksAgain({
        client_id: CONFIDENTIAL.client_id,
        redirect_uri: CONFIDENTIAL.redirect_uris[0],
        scope: 'openid',
        state: 'x',
      })
      await endThen(() => h.flows.endSessions(user.id))
      const agent = createUserAgent()
      await agent.get(link)
      expect(await accountOf(h, agent)).to.equal(undefined)
    })
  }
})
