import { expect } from 'chai'
import type { AdapterFactory } from 'oidc-provider'
import { koaHost } from '../../examples/hosts/koa.ts'
import type { User } from '../../src/index.ts'
import type { EndedSessions } from '../../src/contract/index.ts'
import { eventually } from '../support/eventually.ts'
import { expectPage, type Answer, createUserAgent, type UserAgent } from '../support/user-agent.ts'
import {
  type Harness,
  type HarnessOptions,
  type Host,
  onEachStore,
  suiteHarness,
} from '../support/harness.ts'
import * as ask from '../support/oauth-requests.ts'
import { setsSession } from '../support/person.ts'
import { keptInMemory } from '../support/kept.ts'
import { systemClock } from '../../src/clock.ts'

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

const cookieOf = (h: Harness, agent: UserAgent) => agent.cookiesFor(`${h.oauthUrl}/auth`)

/** What a client is told without a question, where a browser has this cookie alone. */
async function outcomeWith(h: Harness, cookie: string): Promise<string> {
  const { url } = await h.party.begin({ prompt: 'none' })
  return ask.outcomeOf(await createUserAgent().get(url, { cookie }))
}

onEachStore('flows.passwordChanged(accountId, { req, res })', (technology) => {
  const h = harnessOf({ technology })

  it('ends everything, makes this browser a new session of the same login, and records what ended', async () => {
    const here = await ask.signedIn(h)
    const there = await ask.signedIn(h, here)
    const other = await ask.signedIn(h)
    const [before, copy] = [await h.sessionOf(here.agent), cookieOf(h, here.agent)]
    // Of each the used code, the access token, the refresh token, the grant and the session.
    const counts = { oauth: 8, idp: 2 }
    expect(await changeIn(h, here.agent, here)).to.deep.equal(counts)
    expect(await ask.isActive(h, here.tokens.access_token)).to.equal(false)
    expect(await ask.refresh(h, here.tokens.refresh_token)).to.equal('invalid_grant')
    await ask.expectEnded(h, there)
    await ask.expectAlive(h, other)
    expect(await outcomeWith(h, copy)).to.equal('login_required')

    const after = await h.sessionOf(here.agent)
    for (const name of ['accountId', 'loginTs', 'acr', 'amr', 'transient'] as const)
      expect(after?.[name], name).to.deep.equal(before?.[name])
    for (const name of ['jti', 'uid'] as const)
      expect(after?.[name], name).to.be.a('string').and.not.equal(before?.[name])
    expect(after?.exp).to.be.closeTo(before?.exp ?? 0, 2)
    expect(after?.authorizations).to.equal(undefined)
    const [event, ...more] = h.events.filter(({ accountId }) => accountId === here.id)
    expect(more).to.deep.equal([])
    const told = { type: 'password_changed', details: counts, userAgent: 'The Browser' }
    expect(event).to.deep.include(told)
  })

  it('signs this browser in at a client without a question, until the next end', async () => {
    const user = await ask.signedIn(h)
    await changeIn(h, user.agent, user)
    const { location = '' } = await user.starts({ prompt: 'none' })
    const tokens = await h.party.exchange(user.request, location)
    expect(await ask.isActive(h, tokens.access_token)).to.equal(true)
    expect(await changeIn(h, user.agent, user)).to.deep.include({ idp: 1 })
    expect(await ask.isActive(h, tokens.access_token)).to.equal(false)
    expect(await user.account()).to.equal(user.id)
    await h.flows.passwordChanged(user.id)
    expect(await user.account()).to.equal(undefined)
  })
})

describe('flows.passwordChanged(accountId, { req, res })', () => {
  const h = harnessOf()

  it('voids all that was mailed, and ends the logins that wait', async () => {
    const [login, user] = [await h.blockedLogin(), await h.addVerified()]
    const link = await user.forgets()
    for (const { id } of [login, user]) await h.flows.passwordChanged(id)
    expect((await user.opensLink(link)).mode).to.equal('invalid')
    expectPage(await login.goesOn(), 400, 'verify-email', 'ended')
    await user.getsBackIn()
  })

  it('makes no session for another account, for one that was ended, or where there is none (SES-22)', async () => {
    const [ann, bob] = [await ask.signedIn(h), await ask.signedIn(h)]
    await changeIn(h, bob.agent, ann)
    expect(await ann.account()).to.equal(undefined)
    expect(await bob.account()).to.equal(bob.id)

    await ann.signsIn()
    await h.flows.endSessions(ann.id)
    await changeIn(h, ann.agent, ann)
    expect(await ann.account()).to.equal(undefined)

    await ann.signsIn()
    await changeIn(h, createUserAgent(), ann)
    expect(await ann.account()).to.equal(undefined)
  })
})

describe('The mail that tells of a password that the host changed', () => {
  const h = harnessOf({ settings: { password_changed_email: 'true' } })

  it('goes to nobody without an account, nor to who is disabled', async () => {
    const mails = h.mail.mails.length
    const nothing = { oauth: 0, idp: 0 }
    const { id } = await h.addUnverified({ disabled: true })
    for (const account of ['nobody', id]) {
      expect(await h.flows.passwordChanged(account)).to.deep.equal(nothing)
    }
    await h.isIdle()
    expect(h.mail.mails).to.have.length(mails)
  })

  it('goes to the address of the account, in the language and with the browser of the request', async () => {
    const user = await ask.signedIn(h)
    await changeIn(h, user.agent, user)
    const { mail } = await user.mail(1)
    expect(mail.headers.get('x-account-flows-mail')).to.equal('password_changed')
    expect(mail.subject).to.equal('Ihr Passwort wurde geändert')
    expect(mail.text?.replaceAll('\n', ' '))
      .to.include('Auf allen anderen Geräten wurden Sie abgemeldet.')
      .and.include('hat jemand anderes Zugang zu Ihrem Konto')
    const sent = await eventually('the event', () => user.events('password_reset_mail_sent').at(0))
    expect(sent.details).to.include({ mail: 'password_changed' })
  })

  it('goes once for each change, also of a support tool, and not while the setting is off', async () => {
    const user = await h.addVerified()
    for (const count of [1, 2]) {
      await h.flows.passwordChanged(user.id)
      await h.isIdle()
      expect(user.mailCount()).to.equal(count)
    }
    await h.put({ password_changed_email: 'false' })
    await h.flows.passwordChanged(user.id)
    await h.isIdle()
    expect(user.mailCount()).to.equal(2)
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
      const user = await ask.signedIn(h)
      const ofProvider = await user.starts({ prompt: 'none' })
      const changed = await user.agent.get(`${h.baseUrl}/changed/${user.id}`)
      expect(cookiesOf(changed)).to.have.length(2).and.deep.equal(cookiesOf(ofProvider))
      expect(changed.headers.get('set-cookie')?.includes('expires')).to.equal(isRemembered)
      const { location = '' } = await user.starts({ prompt: 'none' })
      const claims = (await h.party.exchange(user.request, location)).claims()
      expect(claims).to.deep.include({ sub: user.id, acr: 'gold', amr: ['pwd'] })
    })
  }
})

describe('A new session, while another end of its account comes in between (SES-22)', () => {
  let atEnd = async (_step: string) => {}
  const { records: store } = keptInMemory(systemClock, ({ cutoffs }) => ({
    cutoffs: {
      ...cutoffs,
      async end(...of) {
        await atEnd('before')
        const ends = await cutoffs.end(...of)
        await atEnd('after')
        return ends
      },
    },
  }))
  // Nothing is deleted, so that the cut-offs alone tell.
  const h = harnessOf({ flows: { store }, adapter: ask.withoutAccounts })

  for (const step of ['before', 'after']) {
    it(`is dead where that comes just ${step} its own, and its person can sign in again`, async () => {
      const user = await ask.signedIn(h)
      atEnd = async (reached) => {
        if (reached !== step) return
        atEnd = async () => {}
        await h.flows.endSessions(user.id)
      }
      await changeIn(h, user.agent, user)
      expect(await user.account()).to.equal(undefined)
      await user.signsIn()
      expect(await user.account()).to.equal(user.id)
      await changeIn(h, user.agent, user)
      expect(await user.account()).to.equal(user.id)
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
    const user = await ask.signedIn(h)
    const { agent } = user
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
    expect(await user.account()).to.equal(undefined)
    expect(await outcomeWith(h, renewed)).to.equal('code')
    await user.signsIn()
    expect(await user.account()).to.equal(user.id)
  })
})

describe('flows.passwordChanged over an adapter that does not find accounts', () => {
  const h = harnessOf({ adapter: ask.withoutAccounts })

  it('makes a new session all the same, ends the others, and counts nothing', async () => {
    const here = await ask.signedIn(h)
    const there = await ask.signedIn(h, here)
    expect(await changeIn(h, here.agent, here)).to.deep.equal({})
    expect(await here.account()).to.equal(here.id)
    await ask.expectEnded(h, there)
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
    const here = await ask.signedIn(h)
    const there = await ask.signedIn(h, here)
    fails = true
    await changeIn(h, here.agent, here)
    fails = false
    for (const { account } of [here, there]) expect(await account()).to.equal(undefined)
    await here.signsIn()
    expect(await here.account()).to.equal(here.id)
  })
})
