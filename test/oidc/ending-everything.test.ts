import type { Person } from '../support/person.ts'
import { expect } from 'chai'
import { createRemoteJWKSet, jwtVerify } from 'jose'
import {
  CONFIDENTIAL,
  PASSWORD,
  startHarness,
  type Harness,
  type HarnessOptions,
} from '../support/harness.ts'
import * as ask from '../support/oauth-requests.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { createUserAgent } from '../support/user-agent.ts'
import { accountOf, addVerified } from '../support/person.ts'

const NEW_PASSWORD = 'a new password, longer'

/** Everything that an account can have under way when its password is reset. */
async function prepare(h: Harness, user: Person) {
  const [session, held, parked] = [createUserAgent(), createUserAgent(), createUserAgent()]
  const [parkedInSession, open] = [createUserAgent(), createUserAgent()]
  const tokens = await ask.offlineTokens(h, session, user)
  const bound = await h.party.begin()
  const boundAnswer = await session.get(bound.url)
  const code = await h.party.begin()
  const codeAnswer = await session.get(code.url)
  const device = await ask.beginDevice(h)
  await ask.confirmDevice(h, session, device)
  const pendingDevice = await ask.beginDevice(h)

  const heldAnswer = await h.login(held, (await h.party.begin()).url, user.username)
  expect(heldAnswer.status).to.equal(303)
  expect(heldAnswer.location).to.include('/auth/')
  await ask.parkAtConsent(h, parked, user)
  await h.signIn(parkedInSession, user.username)
  await ask.parkAtConsent(h, parkedInSession, user)
  await h.follow(open, await open.get((await h.party.begin()).url))

  return {
    user,
    session,
    held,
    heldAnswer,
    parked,
    parkedInSession,
    open,
    tokens,
    code,
    codeAnswer,
    device,
    pendingDevice,
    boundToken: (await h.party.exchange(bound, boundAnswer.location ?? '')).access_token,
  }
}

type Prepared = Awaited<ReturnType<typeof prepare>>

describe('What a password reset ends (3.3, effects 3 and 4)', () => itEndsEverything({}))

describe('What a password reset ends, where the adapter cannot find what an account has', () =>
  itEndsEverything({ adapter: ask.withoutAccounts }))

function itEndsEverything(options: HarnessOptions): void {
  const h = suiteHarness({ ...options, clients: ask.CLIENTS })
  let ann: Prepared
  /** Does the same as Ann and keeps her password: what works for Bob is what ended for Ann. */
  let bob: Prepared
  let machine: string

  before(async () => {
    ann = await prepare(h, await addVerified(h))
    bob = await prepare(h, await addVerified(h))
    machine = await ask.machineToken(h)
    const done = await h.reset(await ann.user.forgets(), NEW_PASSWORD)
    expect([done.status, done.mode]).to.deep.equal([200, 'done'])
  })

  async function outcomes(outcome: (of: Prepared) => Promise<unknown>) {
    return { ann: await outcome(ann), bob: await outcome(bob) }
  }

  function itEnds(
    title: string,
    outcome: (of: Prepared) => Promise<unknown>,
    expected: { ann: unknown; bob: unknown },
  ) {
    it(title, async () => {
      expect(await outcomes(outcome)).to.deep.equal(expected)
    })
  }
  itEnds(
    'the session: with prompt=none the client learns login_required (SES-11)',
    async ({ session }) =>
      ask.outcomeOf(await session.get((await h.party.begin({ prompt: 'none' })).url)),
    { ann: 'login_required', bob: 'code' },
  )
  itEnds(
    'the session: otherwise the login page is shown',
    async ({ session }) =>
      ask.outcomeOf(await h.follow(session, await session.get((await h.party.begin()).url))),
    { ann: 'login login', bob: 'code' },
  )
  itEnds(
    'access tokens, bound to the session or not: userinfo answers 401',
    async ({ tokens, boundToken }) => [
      await ask.userinfo(h, tokens.access_token),
      await ask.userinfo(h, boundToken),
    ],
    { ann: [401, 401], bob: [200, 200] },
  )
  itEnds(
    'access tokens and refresh tokens: introspection answers that they are not active (SES-01)',
    async ({ tokens }) => [
      await ask.isActive(h, tokens.access_token),
      await ask.isActive(h, tokens.refresh_token),
    ],
    { ann: [false, false], bob: [true, true] },
  )
  const notGranted = { ann: 'invalid_grant', bob: 'tokens' }
  itEnds(
    'refresh tokens: invalid_grant',
    ({ tokens }) => ask.refresh(h, tokens.refresh_token),
    notGranted,
  )
  itEnds(
    'authorization codes: invalid_grant (SES-02)',
    ({ code, codeAnswer }) => ask.redeem(h, code, codeAnswer.location),
    notGranted,
  )
  itEnds(
    'approved device codes: invalid_grant (SES-02)',
    ({ device }) => ask.pollDevice(h, device),
    notGranted,
  )

  it('a login result that was held back: no code and no session, however often it is tried (SES-03)', async () => {
    const followed = async ({ held, heldAnswer }: Prepared) =>
      ask.outcomeOf(await h.follow(held, heldAnswer))
    expect(await outcomes(followed)).to.deep.equal({ ann: '400', bob: 'code' })
    expect(await followed(ann)).to.equal('400')
    expect(await accountOf(h, ann.held)).to.equal(undefined)
  })

  it('a login that waits at the consent page: no code and no session', async () => {
    const consented = async ({ parked }: Prepared) => ask.outcomeOf(await ask.consent(h, parked))
    expect(await outcomes(consented)).to.deep.equal({ ann: '400', bob: 'code' })
    expect(await accountOf(h, ann.parked)).to.equal(undefined)
  })

  it('a session that waits at the consent page: no code', async () => {
    const consented = async ({ parkedInSession }: Prepared) =>
      ask.outcomeOf(await ask.consent(h, parkedInSession))
    expect(await outcomes(consented)).to.deep.equal({ ann: '400', bob: 'code' })
    expect(await accountOf(h, ann.parkedInSession)).to.equal(undefined)
  })

  it('but not a login page that was open: the new password leads to a code', async () => {
    const old = await ask.postLogin(h, ann.open, ann.user)
    expect([old.status, old.mode]).to.deep.equal([401, 'wrong'])
    const signedIn = async ({ open, user }: Prepared) => {
      const password = user === ann.user ? NEW_PASSWORD : PASSWORD
      return ask.outcomeOf(await h.follow(open, await ask.postLogin(h, open, user, password)))
    }
    expect(await outcomes(signedIn)).to.deep.equal({ ann: 'code', bob: 'code' })
    expect(await accountOf(h, ann.open)).to.equal(ann.user.id)
  })

  it('but not a device code that nobody approved yet: a fresh login approves it', async () => {
    expect(await ask.pollDevice(h, ann.pendingDevice)).to.equal('authorization_pending')
    const agent = createUserAgent()
    const login = await ask.confirmDevice(h, agent, ann.pendingDevice)
    expect([login.page, login.mode]).to.deep.equal(['login', 'login'])
    await h.follow(agent, await ask.postLogin(h, agent, ann.user, NEW_PASSWORD))
    expect(await ask.pollDevice(h, ann.pendingDevice)).to.equal('tokens')
  })

  it('but not the token of a client that acts for nobody', async () => {
    expect(await ask.isActive(h, machine, CONFIDENTIAL)).to.equal(true)
  })

  it('nothing of a login that follows the answer at once, time after time', async () => {
    const user = await addVerified(h)
    for (const password of ['first password', 'second password', 'third password', PASSWORD]) {
      expect((await h.reset(await user.forgets(), password)).mode).to.equal('done')
      const agent = createUserAgent()
      const request = await h.party.begin()
      const answer = await h.login(agent, request.url, user.username, password)
      const { location } = await h.follow(agent, answer)
      expect(await ask.redeem(h, request, location)).to.equal('tokens')
      expect(await accountOf(h, agent)).to.equal(user.id)
    }
  })
}

describe('What a password reset cannot end', () => {
  const api = 'https://api.example'

  it('is an access token in JWT form, which stays valid until it expires: nobody asks us about it (SES-12)', async () => {
    const h = await startHarness({
      provider: {
        features: {
          devInteractions: { enabled: false },
          resourceIndicators: {
            enabled: true,
            defaultResource: () => api,
            useGrantedResource: () => true,
            getResourceServerInfo: () => ({ scope: 'read', accessTokenFormat: 'jwt' }),
          },
        },
        async loadExistingGrant({ oidc: { provider, session } }) {
          if (!session?.accountId) return undefined
          const grant = new provider.Grant({ accountId: session.accountId, clientId: 'app' })
          grant.addOIDCScope('openid')
          grant.addResourceScope(api, 'read')
          await grant.save()
          return grant
        },
      },
    })
    try {
      const user = await addVerified(h)
      const agent = createUserAgent()
      const request = await h.party.begin({ scope: 'openid read' })
      const answer = await h.follow(agent, await h.login(agent, request.url, user.username))
      const { access_token } = await h.party.exchange(request, answer.location ?? '')
      expect((await h.reset(await user.forgets(), NEW_PASSWORD)).mode).to.equal('done')
      const keys = createRemoteJWKSet(new URL(`${h.oauthUrl}/jwks`))
      const { payload } = await jwtVerify(access_token, keys, { issuer: h.oauthUrl, audience: api })
      expect(payload.sub).to.equal(user.id)
      expect(await accountOf(h, agent)).to.equal(undefined)
    } finally {
      await h.close()
    }
  })
})
