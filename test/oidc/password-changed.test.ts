import { ServerResponse, type IncomingMessage } from 'node:http'
import { expect } from 'chai'
import type { AdapterFactory } from 'oidc-provider'
import { koaHost } from '../../examples/hosts/koa.ts'
import { memoryStore, type EndedSessions, type User } from '../../src/index.ts'
import { onBothStores } from '../support/both-stores.ts'
import { eventually } from '../support/eventually.ts'
import type { Harness, HarnessOptions, Host } from '../support/harness.ts'
import { isIdle } from '../support/jobs.ts'
import * as ask from '../support/oauth-requests.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { createUserAgent, type Answer, type UserAgent } from '../support/user-agent.ts'
import { expectMode } from '../support/waiting-window.ts'
import {
  accountOf,
  addUnverified,
  addVerified,
  blockedLogin,
  sessionId,
  setsSession,
} from '../support/person.ts'

/** A host that calls it with each request to `/changed/<account>`. */
const host: Host = (parts) => {
  const others = koaHost(parts)
  return async (req, res) => {
    const [, id] = /^\/changed\/(.*)$/.exec(req.url ?? '') ?? []
    if (id === undefined) return others(req, res)
    res.end(JSON.stringify(await parts.flows.passwordChanged(id, { req, res })))
  }
}

const harnessOf = (options: HarnessOptions = {}) => suiteHarness({ host, ...options })

/** Changed in this browser, for itself or for another account. */
async function changeIn(h: Harness, agent: UserAgent, { id }: User): Promise<EndedSessions> {
  const headers = { 'user-agent': 'The Browser', 'accept-language': 'de' }
  return JSON.parse((await agent.get(`${h.baseUrl}/changed/${id}`, headers)).text)
}

async function signedIn(h: Harness, user: User) {
  const agent = createUserAgent()
  return { agent, tokens: await ask.offlineTokens(h, agent, user) }
}

const sessionIn = (h: Harness, agent: UserAgent) =>
  h.provider.Session.find(sessionId(h, agent) ?? '')

const cookieOf = (h: Harness, agent: UserAgent) => agent.cookiesFor(`${h.oauthUrl}/auth`)

/** What a client is told without a question, where a browser has this cookie alone. */
async function outcomeWith(h: Harness, cookie: string): Promise<string> {
  const { url } = await h.party.begin({ prompt: 'none' })
  return ask.outcomeOf(await createUserAgent().get(url, { cookie }))
}

onBothStores('flows.passwordChanged(accountId, { req, res })', (technology) => {
  const h = harnessOf({ technology })

  it('ends everything, makes this browser a new session of the same login, and records what ended', async () => {
    const user = await addVerified(h)
    const here = await signedIn(h, user)
    const there = await signedIn(h, user)
    const other = await signedIn(h, await addVerified(h))
    const [before, copy] = [await sessionIn(h, here.agent), cookieOf(h, here.agent)]
    // Of each the used code, the access token, the refresh token, the grant and the session.
    const counts = { oauth: 8, idp: 2 }
    expect(await changeIn(h, here.agent, user)).to.deep.equal(counts)
    for (const { tokens } of [here, there]) {
      expect(await ask.isActive(h, tokens.access_token)).to.equal(false)
      expect(await ask.refresh(h, tokens.refresh_token)).to.equal('invalid_grant')
    }
    expect(await there.account()).to.equal(undefined)
    expect(await outcomeWith(h, copy)).to.equal('login_required')
    expect(await ask.refresh(h, other.tokens.refresh_token)).to.equal('tokens')

    const after = await sessionIn(h, here.agent)
    for (const name of ['accountId', 'loginTs', 'acr', 'amr', 'transient'] as const)
      expect(after?.[name], name).to.deep.equal(before?.[name])
    for (const name of ['jti', 'uid'] as const)
      expect(after?.[name], name).to.be.a('string').and.not.equal(before?.[name])
    expect(after?.exp).to.be.closeTo(before?.exp ?? 0, 2)
    expect(after?.authorizations).to.equal(undefined)
    const [event, ...more] = h.events.filter(({ accountId }) => accountId === user.id)
    expect(more).to.deep.equal([])
    const told = { type: 'password_changed', details: counts, userAgent: 'The Browser' }
    expect(event).to.deep.include(told)
  })

  it('signs this browser in at a client without a question, until the next end', async () => {
    const user = await addVerified(h)
    const { agent } = await signedIn(h, user)
    await changeIn(h, agent, user)
    const request = await h.party.begin({ prompt: 'none' })
    const { location = '' } = await agent.get(request.url)
    const tokens = await h.party.exchange(request, location)
    expect(await ask.isActive(h, tokens.access_token)).to.equal(true)
    expect(await changeIn(h, agent, user)).to.deep.include({ idp: 1 })
    expect(await ask.isActive(h, tokens.access_token)).to.equal(false)
    expect(await accountOf(h, agent)).to.equal(user.id)
    await h.flows.passwordChanged(user.id)
    expect(await accountOf(h, agent)).to.equal(undefined)
  })
})

describe('flows.passwordChanged(accountId, { req, res })', () => {
  const h = harnessOf()

  it('voids all that was mailed, and ends the logins that wait', async () => {
    const login = await blockedLogin(h)
    const user = await addVerified(h)
    const link = await user.forgets()
    for (const { id } of [login, user]) await h.flows.passwordChanged(id)
    expect((await createUserAgent().get(link)).mode).to.equal('invalid')
    expectMode(await login.goesOn(), 400, 'ended')
    expect((await h.reset(await user.forgets(), 'a new password')).mode).to.equal('done')
  })

  it('makes no session for another account, for one that was ended, or where there is none (SES-22)', async () => {
    const [ann, bob] = [await addVerified(h), await addVerified(h)]
    const [annIn, bobIn, ended] = [
      await signedIn(h, ann),
      await signedIn(h, bob),
      createUserAgent(),
    ]
    await changeIn(h, bobIn.agent, ann)
    expect(await annIn.account()).to.equal(undefined)
    expect(await bobIn.account()).to.equal(bob.id)

    await h.signIn(ended, ann.username)
    await h.flows.endSessions(ann.id)
    await changeIn(h, ended, ann)
    expect(await accountOf(h, ended)).to.equal(undefined)

    await h.signIn(ended, ann.username)
    await changeIn(h, createUserAgent(), ann)
    expect(await accountOf(h, ended)).to.equal(undefined)
  })

  it('needs no account, and mails nobody then, nor who is disabled', async () => {
    await h.put({ password_changed_email: 'true' })
    const mails = h.mail.mails.length
    const nothing = { oauth: 0, idp: 0 }
    expect(await h.flows.passwordChanged('nobody')).to.deep.equal(nothing)
    const { id } = await addUnverified(h, { disabled: true })
    expect(await h.flows.passwordChanged(id)).to.deep.equal(nothing)
    await isIdle(h)
    expect(h.mail.mails).to.have.length(mails)
    await h.put({ password_changed_email: 'false' })
  })
})

describe('The cookie of a new session', () => {
  const long = { sameSite: 'strict', path: '/', httpOnly: false, priority: 'high' } as const
  let remember = true
  const h: Harness = harnessOf({
    provider: {
      cookies: { keys: ['a cookie key of the tests'], names: { session: 'sid' }, long },
      claims: { openid: ['sub', 'acr', 'amr'] },
    },
    finishLogin: (req, res, login) =>
      h.flows.finishLogin(req, res, { ...login, remember, acr: 'gold', amr: ['pwd'] }),
  })

  /** Of what an answer sets, without what differs by time and id. */
  const cookiesOf = ({ headers }: Answer) =>
    headers
      .getSetCookie()
      .filter((line) => line.startsWith('sid'))
      .map((line) => line.replace(/=[^;]*/, '').replace(/expires=[^;]*/i, 'expires'))
      .map((line) => line.split('; ').toSorted())

  for (const isRemembered of [true, false]) {
    it(`is set as the provider sets it, ${isRemembered ? 'with' : 'without'} "remember"`, async () => {
      remember = isRemembered
      const user = await addVerified(h)
      const { agent } = await signedIn(h, user)
      const ofProvider = await agent.get((await h.party.begin({ prompt: 'none' })).url)
      const changed = await agent.get(`${h.baseUrl}/changed/${user.id}`)
      expect(cookiesOf(changed)).to.have.length(2).and.deep.equal(cookiesOf(ofProvider))
      expect(changed.headers.get('set-cookie')?.includes('expires')).to.equal(isRemembered)
      const request = await h.party.begin({ prompt: 'none' })
      const { location = '' } = await agent.get(request.url)
      const claims = (await h.party.exchange(request, location)).claims()
      expect(claims).to.deep.include({ sub: user.id, acr: 'gold', amr: ['pwd'] })
    })
  }
})

describe('The mail that tells of a password that the host changed', () => {
  const h = harnessOf({ settings: { password_changed_email: 'true' } })

  it('goes to the address of the account, in the language and with the browser of the request', async () => {
    const user = await addVerified(h)
    const { agent } = await signedIn(h, user)
    await changeIn(h, agent, user)
    const { mail } = await h.mail.mailTo(user.email ?? '')
    expect(mail.headers.get('x-account-flows-mail')).to.equal('password_changed')
    expect(mail.subject).to.equal('Ihr Passwort wurde geändert')
    expect(mail.text?.replaceAll('\n', ' '))
      .to.include('Auf allen anderen Geräten wurden Sie abgemeldet.')
      .and.include('hat jemand anderes Zugang zu Ihrem Konto')
    const sent = await eventually('the event', () => user.events('password_reset_mail_sent').at(0))
    expect(sent.details).to.include({ mail: 'password_changed' })
  })

  it('goes once for each change, also of a support tool, and not while the setting is off', async () => {
    const user = await addVerified(h)
    const mails = () => h.mail.mails.filter(({ to }) => to.includes(user.email ?? ''))
    for (const count of [1, 2]) {
      await h.flows.passwordChanged(user.id)
      await isIdle(h)
      expect(mails()).to.have.length(count)
    }
    await h.put({ password_changed_email: 'false' })
    await h.flows.passwordChanged(user.id)
    await isIdle(h)
    expect(mails()).to.have.length(2)
  })
})

describe('A new session, while another end of its account comes in between (SES-22)', () => {
  const store = memoryStore()
  let atEnd = async (_step: string) => {}
  const cutoffs = {
    ...store.cutoffs,
    async end(...of: Parameters<typeof store.cutoffs.end>) {
      await atEnd(`before ${of[1]}`)
      const ends = await store.cutoffs.end(...of)
      await atEnd(`after ${of[1]}`)
      return ends
    },
  }
  // Nothing is deleted, so that the cut-offs alone tell.
  const h = harnessOf({ flows: { store: { ...store, cutoffs } }, adapter: ask.withoutAccounts })

  for (const step of ['before oauth', 'after oauth', 'before idp', 'after idp']) {
    it(`is dead where that comes ${step}, and its person can sign in again`, async () => {
      const user = await addVerified(h)
      const { agent } = await signedIn(h, user)
      atEnd = async (reached) => {
        if (reached !== step) return
        atEnd = async () => {}
        await h.flows.endSessions(user.id)
      }
      await changeIn(h, agent, user)
      expect(await accountOf(h, agent)).to.equal(undefined)
      await h.signIn(agent, user.username)
      expect(await accountOf(h, agent)).to.equal(user.id)
      await changeIn(h, agent, user)
      expect(await accountOf(h, agent)).to.equal(user.id)
    })
  }
})

describe('A request with the cookie of before, which is in flight meanwhile', () => {
  let meanwhile = async (_id: string) => {}
  // Nothing is deleted, so that it comes as far as it can.
  const h: Harness = harnessOf({
    adapter: ask.withoutAccounts,
    provider: {
      async findAccount(_ctx, sub) {
        await meanwhile(sub)
        return { accountId: sub, claims: () => ({ sub }) }
      },
    },
  })

  it('saves that session again, which stays dead, as does its code; the new one lives (RACE-09)', async () => {
    const user = await addVerified(h)
    const { agent } = await signedIn(h, user)
    meanwhile = async () => {
      meanwhile = async () => {}
      await changeIn(h, agent, user)
      renewed = cookieOf(h, agent)
    }
    let renewed = ''
    const request = await h.party.begin()
    const answer = await agent.get(request.url)
    expect(setsSession(answer)).to.equal(true)
    expect(await ask.redeem(h, request, answer.location)).to.equal('invalid_grant')
    // Of two cookies a browser has the one that arrived last.
    expect(await accountOf(h, agent)).to.equal(undefined)
    expect(await outcomeWith(h, renewed)).to.equal('code')
    await h.signIn(agent, user.username)
    expect(await accountOf(h, agent)).to.equal(user.id)
  })
})

describe('flows.passwordChanged over an adapter that does not find accounts', () => {
  const h = harnessOf({ adapter: ask.withoutAccounts })

  it('makes a new session all the same, ends the others, and counts nothing', async () => {
    const user = await addVerified(h)
    const [here, there] = [await signedIn(h, user), await signedIn(h, user)]
    const ended = await changeIn(h, here.agent, user)
    expect(ended).to.deep.equal({})
    expect(await here.account()).to.equal(user.id)
    expect(await there.account()).to.equal(undefined)
    expect(await ask.refresh(h, here.tokens.refresh_token)).to.equal('invalid_grant')
  })
})

describe('flows.passwordChanged over an adapter that fails', () => {
  let fails = false
  const failing =
    (adapter: AdapterFactory): AdapterFactory =>
    (model) => {
      const inner = adapter(model)
      return {
        ...inner,
        async upsert(...of) {
          if (fails) throw new Error(`${model} cannot be saved`)
          return inner.upsert(...of)
        },
      }
    }
  const h = harnessOf({ adapter: failing, mayLogErrors: true })

  it('ends everything where no new session can be made', async () => {
    const user = await addVerified(h)
    const [here, there] = [await signedIn(h, user), await signedIn(h, user)]
    fails = true
    await changeIn(h, here.agent, user)
    fails = false
    for (const { agent } of [here, there]) expect(await accountOf(h, agent)).to.equal(undefined)
    await h.signIn(here.agent, user.username)
    expect(await here.account()).to.equal(user.id)
  })
})

describe('flows.passwordChanged before flows.attach', () => {
  it('cannot look for a session', async () => {
    const { createAccountFlows, memoryUsers } = await import('../../src/index.ts')
    const flows = createAccountFlows({
      baseUrl: 'http://localhost:3000',
      oauthPath: '/oauth2',
      secrets: [new Uint8Array(32)],
      store: memoryStore(),
      users: memoryUsers([]),
      log: () => {},
    })
    const req = { headers: {} } as IncomingMessage
    const refusal: unknown = await flows
      .passwordChanged('ann', { req, res: new ServerResponse(req) })
      .catch((error: unknown) => error)
    expect(refusal).to.include({ code: 'ERR_NOT_ATTACHED' })
  })
})
