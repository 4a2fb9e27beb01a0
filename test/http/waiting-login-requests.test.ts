import { expect } from 'chai'
import Koa from 'koa'
import mount from 'koa-mount'
import type { ClientMetadata } from 'oidc-provider'
import { AccountFlowsError } from '../../src/index.ts'
import {
  bySigning,
  bySigningAndPushing,
  byPushing,
  DYNAMIC_URI,
  dynamicLogin,
  expectConsentThenCode,
  JAR_ONLY,
  MACHINE,
  PAR_ONLY,
  pushedLogin,
  SERVER,
  signedLogin,
  THEIR_FEATURES,
  type DynamicClient,
  type Sending,
} from '../support/clients.ts'
import { eventually } from '../support/eventually.ts'
import { isWriteOf, suiteHarnessBehindProxy, type Moment } from '../support/mongo-proxy.ts'
import { CLIENT, CONFIDENTIAL, type Host, suiteHarness } from '../support/harness.ts'
import { describeWithMongo } from '../support/mongod.ts'
import { OFFLINE, outcomeOf, postLogin } from '../support/oauth-requests.ts'
import { codeOn, expectMode, setsSession, type Person } from '../support/person.ts'
import { createUserAgent, expectUnavailable, type Answer } from '../support/user-agent.ts'

type Change = Partial<ClientMetadata>

const MUST_PUSH: Change = { require_pushed_authorization_requests: true }
const MUST_SIGN: Change = { require_signed_request_object: true }
type Lost = 'connection' | 'write' | 'database'
/** Which write is lost: the nth to the collection, or of the model; before it is done, or the answer to it. */
type Loss = [which: string, when: Moment['when'], nth?: number]

const LIMITS = { serverSelectionTimeoutMS: 5_000, socketTimeoutMS: 5_000 }

async function expectGoesOnByLinkElsewhere(login: Person) {
  await login.opensElsewhere()
  await login.comesBack(await login.goesOn())
}

/** The link and the window say that the address is verified, and lead nowhere. */
async function expectLeadsNowhere(login: Person) {
  for (const answer of [await login.opensElsewhere(), await login.goesOn()])
    await login.isOnlyVerified(answer)
}

/** So they say; the same login goes on once the client is as it was. */
async function expectRefusedUntil({ login }: Pick<DynamicClient, 'login'>, restore: () => unknown) {
  await expectLeadsNowhere(login)
  await restore()
  return login.goesOn()
}

/** Consent is in test/http/verify-email-any-request.property.test.ts. */
describe('The waiting window finishes the very request of its client', () => {
  const h = suiteHarness({
    clients: [CLIENT, CONFIDENTIAL, PAR_ONLY, JAR_ONLY],
    provider: { features: THEIR_FEATURES },
  })

  it('though the other browser used a pushed request up, and uses a pushed request up where nobody else did', async () => {
    const { login: used, url: first } = await pushedLogin(h)
    expect((await used.opensElsewhere()).location).to.match(/[?&]code=/)
    await used.comesBack(await used.goesOn())
    const { login, url } = await pushedLogin(h)
    await login.comesBack(await login.types())
    for (const pushed of [first, url])
      expect(outcomeOf(await createUserAgent().get(pushed))).to.equal('invalid_request_uri')
  })

  it('unless its redirect URI was withdrawn, until it is back; no code is shown meanwhile (RED-05)', async () => {
    const { login, change } = await dynamicLogin(h)
    await change({ redirect_uris: [`${DYNAMIC_URI}/`] })
    await h.put({ email_link_confirmation: 'other_browser' })
    const elsewhere = await login.opensElsewhere()
    await h.put({ email_link_confirmation: 'off' })
    expectMode(elsewhere, 200, 'elsewhere')
    expect(codeOn(elsewhere)).to.equal(undefined)
    await login.comesBack(await expectRefusedUntil({ login }, change))
  })

  it('unless it may no longer ask for a code, or is gone, and another client’s login works', async () => {
    const { login, change, remove } = await dynamicLogin(h)
    await change(MACHINE)
    await expectLeadsNowhere(login)
    await remove()
    expectMode(await login.goesOn(), 200, 'verified')
    const { location } = await (await h.addVerified()).in(login.agent).signsIn()
    expect(location).to.match(/[?&]code=/)
  })
})

describe('A login that waited while its client changed', () => {
  const needsProof = new Set<string>()
  const h = suiteHarness({
    clients: [CLIENT],
    provider: {
      features: THEIR_FEATURES,
      responseTypes: ['code', 'id_token'],
      pkce: { required: (_ctx, { clientId }) => needsProof.has(clientId) },
    },
  })

  const IMPLICIT: Change = { response_types: ['id_token'], grant_types: ['implicit'] }
  const PUSHED_LESS: Change = { ...MUST_PUSH, scope: 'openid' }
  const narrower: [title: string, change: Change, send?: Sending][] = [
    ['must push its requests', MUST_PUSH],
    ['must push its requests, and this one was only signed', MUST_PUSH, bySigning],
    ['must sign its requests', MUST_SIGN],
    ['must sign its requests, and this one was only pushed', MUST_SIGN, byPushing],
    ['may not ask for the scope any more', { scope: 'openid' }],
    ['may not ask for the scope any more, and pushed', PUSHED_LESS, byPushing],
    ['may ask for another response type only', IMPLICIT],
  ]
  for (const [title, change, send] of narrower) {
    it(`goes nowhere where the client ${title} (RED-15)`, async () => {
      const client = await dynamicLogin(h, { send })
      await client.change(change)
      await client.login.comesBack(await expectRefusedUntil(client, () => client.change()))
    })
  }

  it('goes nowhere in the browser that logged in either: its window keeps the turn (RED-15)', async () => {
    const { login, change } = await dynamicLogin(h)
    await change(MUST_PUSH)
    await login.isOnlyVerified(await login.opensLink())
    await change()
    await login.comesBack(await login.goesOn())
  })

  it('goes nowhere where the client must sign its requests, also once another account was chosen (RED-15)', async () => {
    const client = await dynamicLogin(h)
    const { agent, party, request, goesOn } = client.login
    await h.follow(agent, await goesOn({ action: 'other_account' }))
    const login = Object.assign((await h.addUnverified()).in(agent), { party, request })
    login.blocked = await h.follow(agent, await postLogin(h, agent, login))
    login.link = (await login.mail(1)).link
    await client.change(MUST_SIGN)
    await login.comesBack(await expectRefusedUntil({ login }, () => client.change()))
  })

  it('goes nowhere where a scope is gone that a refresh token needs (RED-15)', async () => {
    const client = await dynamicLogin(h, { extra: OFFLINE })
    const { login, change } = client
    await change({ scope: 'openid email' })
    const answer = await expectRefusedUntil(client, () => change())
    await expectConsentThenCode(h, login, answer)
  })

  it('goes nowhere where the client must prove who redeems the code by now (RED-15)', async () => {
    const client = await dynamicLogin(h, {
      send: async ({ url }) => {
        url.searchParams.delete('code_challenge')
        url.searchParams.delete('code_challenge_method')
        return url
      },
    })
    const clientId = client.login.party.config.clientMetadata().client_id
    needsProof.add(clientId)
    const answer = await expectRefusedUntil(client, () => needsProof.delete(clientId))
    expect(answer.location).to.match(/[?&]code=/)
  })

  const proven: [title: string, change: Change, send: Sending][] = [
    ['must push its requests, as it did', MUST_PUSH, byPushing],
    ['must sign its requests, as it did', MUST_SIGN, bySigning],
    ['must sign and push, and did both', { ...MUST_PUSH, ...MUST_SIGN }, bySigningAndPushing],
    ['need not push its requests, and did', {}, byPushing],
  ]
  for (const [title, change, send] of proven) {
    it(`goes on where the client ${title}`, async () => {
      const { login, change: changeClient } = await dynamicLogin(h, { send })
      await changeClient(change)
      await expectGoesOnByLinkElsewhere(login)
    })
  }
})

describe('A login that waits, by a provider and a client of FAPI 2.0', () => {
  const h = suiteHarness({
    clients: [CLIENT, PAR_ONLY, JAR_ONLY],
    provider: {
      features: {
        ...THEIR_FEATURES,
        fapi: {
          enabled: true,
          profile: (_ctx, { clientId }) => (clientId === CLIENT.client_id ? undefined : '2.0'),
        },
      },
    },
  })

  it('goes on, by the code and by the link, and can be cancelled', async () => {
    const { login } = await pushedLogin(h)
    await login.comesBack(await login.types())
    await expectGoesOnByLinkElsewhere(await signedLogin(h))
    const { login: left } = await pushedLogin(h)
    expect((await left.goesOn({ action: 'cancel' })).location).to.include('access_denied')
    await expectGoesOnByLinkElsewhere(await h.blockedLogin())
  })
})

describe('A login by a signed request, where the provider takes none that are pushed', () => {
  const h = suiteHarness({
    clients: [CLIENT, JAR_ONLY],
    provider: { features: { ...THEIR_FEATURES, pushedAuthorizationRequests: { enabled: false } } },
  })

  it('goes on, and nowhere once the redirect URI is no longer the client’s, or it may no longer ask for a code (RED-05)', async () => {
    await expectGoesOnByLinkElsewhere(await signedLogin(h))
    for (const change of [{ redirect_uris: [`${DYNAMIC_URI}/`] }, MACHINE]) {
      const client = await dynamicLogin(h, { send: bySigning })
      await client.change({ ...MUST_SIGN, ...change })
      const answer = await expectRefusedUntil(client, () => client.change(MUST_SIGN))
      await client.login.comesBack(answer)
    }
  })
})

describe('A login that waited, where the host trusts a proxy that ends TLS', () => {
  const behindTls: Host = ({ provider, oauthPath, login }) => {
    const app = new Koa({ proxy: true })
    app.keys = provider.keys
    app.use(async (ctx, next) => {
      if (ctx.path === `${oauthPath}/login`) await login(ctx.req, ctx.res)
      else await next()
    })
    app.use(mount(oauthPath, provider))
    const listener = app.callback()
    return (req, res) => {
      // The addresses that a client discovers stay those of the tests.
      if (!req.url?.includes('/.well-known/')) req.headers['x-forwarded-proto'] = 'https'
      return listener(req, res)
    }
  }
  const secure = { long: { secure: true }, short: { secure: true } }
  const h = suiteHarness({
    provider: { cookies: { keys: ['a cookie key of the tests'], ...secure } },
    host: behindTls,
  })

  it('goes on, with cookies for https alone', async () => {
    const login = await h.blockedLogin()
    await login.opensElsewhere()
    const answer = await login.goesOn()
    // Ours is so where the base URL is https, which it is not here.
    const lines = answer.headers.getSetCookie()
    const theirs = lines.filter((line) => !line.startsWith('account_flows_'))
    expect(theirs).not.to.deep.equal([])
    for (const line of theirs) expect(line).to.include('; secure')
    await login.comesBack(answer)
  })
})

describe('A link whose request the provider cannot judge, because what is in front of it fails', () => {
  let fails: 'not' | 'gone' | 'broken' | 'busy' = 'not'
  const h = suiteHarness({ mayLogErrors: true })
  before(() => {
    h.provider.use(async (ctx, next) => {
      const isOurs = fails !== 'not' && ctx.path === '/auth'
      if (isOurs && fails === 'gone') throw new AccountFlowsError('ERR_STORE_UNAVAILABLE', 'gone')
      if (isOurs && fails === 'broken') throw new Error('broken')
      if (isOurs) ctx.status = 429
      else await next()
    })
  })

  for (const [how, status] of [
    ['gone', 503],
    ['broken', 500],
    ['busy', 500],
  ] as const) {
    it(`is not used up: ${how}, and finishes its request afterwards (RED-15)`, async () => {
      const login = await h.blockedLogin()
      fails = how
      const answer = await login.opensLink()
      fails = 'not'
      expect(answer.status).to.equal(status)
      expect([answer.location, setsSession(answer)]).to.deep.equal([undefined, false])
      expect(await login.isVerified()).to.equal(false)
      await login.stillGetsIn()
    })
  }
})

describeWithMongo('A login that waits, when the database fails between two steps [full]', () => {
  const { h, proxy } = suiteHarnessBehindProxy(LIMITS, { mayLogErrors: true })

  /** At this write its connection is lost; again when it is sent once more; or the whole database. */
  async function losing(what: Lost, [which, when, nth = 1]: Loss, work: () => Promise<Answer>) {
    const matches = isWriteOf(which)
    const strike = what === 'database' ? () => proxy.sever() : async () => {}
    const times = what === 'write' ? [nth, nth + 1] : [nth]
    const outages = times.map((nth) => proxy.interrupt({ matches, nth, when }, strike))
    const answer = await work()
    await proxy.restore()
    const isReady = async () => (await h.flows.health()).isReady
    await eventually('the database is reached again', isReady)
    for (const outage of outages) {
      outage.cancel()
      expect(await outage.happened, `${answer.status} ${answer.mode}`).not.to.equal(undefined)
    }
    return answer
  }

  it('before the address is verified: nothing is used, and the link does all of its work', async () => {
    const login = await h.blockedLogin()
    expectUnavailable(await losing('connection', ['users', 'before'], () => login.opensLink()))
    expect(await login.isVerified()).to.equal(false)
    await login.stillGetsIn()
  })

  for (const [what, loss, step] of [
    ['connection', ['users', 'after'], 'the address is verified, and nobody was told'],
    ['database', ['email_verification_tokens', 'before'], 'before the token is marked used'],
    ['database', ['email_verification_tokens', 'after'], 'the token is marked used'],
  ] satisfies [Lost, Loss, string][]) {
    it(`${step}: the link says verified, and the button of the window goes on`, async () => {
      const login = await h.blockedLogin()
      const elsewhere = login.in()
      expectUnavailable(await losing(what, loss, () => elsewhere.opensLink()))
      expect(await login.isVerified()).to.equal(true)
      expect(h.sessionId(elsewhere.agent)).to.equal(undefined)
      const again = await elsewhere.opensLink()
      expect(again.mode).to.be.oneOf(['verified', 'expired'])
      expect(again.location).to.equal(undefined)
      await login.comesBack(await login.goesOn())
    })
  }

  it('before the window takes its turn: it tries again (RACE-13)', async () => {
    const login = await h.blockedLogin()
    await login.opensElsewhere()
    const taking: Loss = ['pending_logins', 'before']
    expectUnavailable(await losing('database', taking, () => login.goesOn()))
    await login.comesBack(await login.goesOn())
  })

  for (const [what, loss, step] of [
    ['database', ['pending_logins', 'before'], 'before the turn is taken'],
    ['write', ['Interaction', 'before', 2], 'the provider was not reached'],
  ] satisfies [Lost, Loss, string][]) {
    it(`while it is left, ${step}: it waits on, and can be left (RACE-13)`, async () => {
      for (const action of ['cancel', 'other_account']) {
        const login = await h.blockedLogin()
        expectUnavailable(await losing(what, loss, () => login.goesOn({ action })))
        expectMode(await login.reloads(), 200, 'blocked')
        expect((await login.goesOn({ action })).status).to.equal(302)
        expectMode(await login.reloads(), 400, 'ended')
        expect(await login.isVerified()).to.equal(false)
      }
    })
  }

  it('while it is left, and ended already: its page says that it is over, without the database', async () => {
    const login = await h.blockedLogin()
    const leave = () => login.goesOn({ action: 'cancel' })
    expectUnavailable(await losing('database', ['pending_logins', 'before', 2], leave))
    expectMode(await leave(), 400, 'ended')
    expectMode(await login.opensLink(), 200, 'verified')
    expect((await login.signsIn()).location).to.match(/[?&]code=/)
  })
})

describe('A login that waits, when the provider fails', () => {
  let fault: { model: string; error: Error } | undefined
  const logged: unknown[][] = []
  const h = suiteHarness({
    mayLogErrors: true,
    flows: { log: (...line) => logged.push(line) },
    clients: [CLIENT, CONFIDENTIAL, PAR_ONLY],
    provider: {
      features: { ...THEIR_FEATURES, clientCredentials: { enabled: true } },
      renderError: (ctx, out) => void (ctx.body = out.error),
    },
    adapter: (adapter) => (model) => {
      const inner = adapter(model)
      return {
        ...inner,
        async upsert(...saved) {
          const [, { prompt, result }] = saved
          // Without a login it is that of the question whether the client may still ask.
          const isQuestion = prompt !== undefined && result === undefined
          if (fault?.model === model && !isQuestion) {
            const { error } = fault
            fault = undefined
            throw error
          }
          return inner.upsert(...saved)
        },
      }
    },
  })

  /** The provider fails once, at this model, and the page says so: nothing is finished, and nothing goes to the client. */
  async function failing(model: string, work: () => Promise<Answer>, isStore = false) {
    const gone = new AccountFlowsError('ERR_STORE_UNAVAILABLE', 'gone')
    fault = { model, error: isStore ? gone : new Error('the disk is full') }
    const { status, page, location, headers } = await work()
    expect(fault, 'it failed').to.equal(undefined)
    expect([status, page, location]).to.deep.equal([isStore ? 503 : 500, 'error', undefined])
    expect(headers.getSetCookie()).to.deep.equal([])
  }

  for (const [model, by] of [
    ['Interaction', 'window'],
    ['Session', 'window'],
    ['AuthorizationCode', 'window'],
    ['Session', 'link'],
    ['AuthorizationCode', 'link'],
    ['AuthorizationCode', 'link of a client that must push its requests'],
  ] as const) {
    it(`at its ${model}, by the ${by}, in its browser: the window has the turn again, once (RACE-13)`, async () => {
      const isByLink = by !== 'window'
      for (const isStore of [false, true]) {
        const login = by.endsWith('requests')
          ? (await pushedLogin(h)).login
          : await h.blockedLogin()
        if (!isByLink) await login.opensElsewhere()
        await failing(model, () => (isByLink ? login.opensLink() : login.goesOn()), isStore)
        expect(await login.isVerified()).to.equal(true)
        expect((await login.opensLink()).location).to.equal(undefined)
        await login.comesBack(await login.goesOn())
        expectMode(await login.goesOn(), 200, 'signed_in')
      }
    })
  }

  it('at a link that no login waits for: it leads nowhere, and the next sign-in goes through', async () => {
    const user = await h.addUnverified()
    await user.asksAgain(SERVER)
    await failing('AuthorizationCode', () => user.opensLink())
    const [, , details] = logged.findLast(([, message]) => message === 'request failed') ?? []
    expect(details).to.include({ path: '/verify-email' })
    expect(await user.isVerified()).to.equal(true)
    expect((await user.signsIn()).location).to.match(/[?&]code=/)
  })

  it('goes on once, of 20 windows at the same moment, one of which fails (RACE-13)', async () => {
    const login = await h.blockedLogin()
    await login.opensElsewhere()
    fault = { model: 'AuthorizationCode', error: new Error('the disk is full') }
    const answers = await Promise.all(Array.from({ length: 20 }, () => login.goesOn()))
    expect(answers.filter(({ status }) => status === 500)).to.have.length(1)
    const hasCode = ({ location = '' }: Answer) => location.includes('code=')
    const last = await login.goesOn()
    expect([...answers, last].filter(hasCode)).to.have.length(1)
  })
})
