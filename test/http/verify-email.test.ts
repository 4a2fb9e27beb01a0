import type { IncomingMessage } from 'node:http'
import { expect } from 'chai'
import type { Document } from 'mongodb'
import { randomPKCECodeVerifier } from 'openid-client'
import type { User } from '../../src/index.ts'
import { koaHost } from '../../examples/hosts/koa.ts'
import { reasonOf } from '../support/bad-links.ts'
import { eventsOf, expectExpired, resend } from '../support/blocked-login.ts'
import { onBothStores } from '../support/both-stores.ts'
import {
  JAR_ONLY,
  PAR_ONLY,
  THEIR_FEATURES,
  forgetInteraction,
  pushedLogin,
  signedLogin,
} from '../support/clients.ts'
import { CLIENT, CONFIDENTIAL } from '../support/harness.ts'
import { describeWithMongo } from '../support/mongod.ts'
import { databaseOf, eventsOf as recordedOf, sha256, shapeOf } from '../support/observe.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { createUserAgent } from '../support/user-agent.ts'
import { expectTitle } from '../support/words.ts'
import {
  accountOf,
  addUnverified,
  blockedLogin,
  sessionId,
  setsSession,
  tokenOf,
} from '../support/person.ts'

// What HEAD, prefetches and other methods do not do is in test/attacks/verification.test.ts.
describe('GET {oauth_path}/verify-email (4.6)', () => {
  const h = suiteHarness({
    clients: [CLIENT, CONFIDENTIAL, PAR_ONLY, JAR_ONLY],
    provider: { features: THEIR_FEATURES },
  })

  it('marks the address verified and redirects once, with 302, to the client with code, state and iss', async () => {
    const login = await blockedLogin(h)
    const answer = await login.agent.get(login.link)
    expect(setsSession(answer)).to.equal(true)
    await login.comesBack(answer)
    const completed = { type: 'email_verification_completed', accountId: login.id } as const
    const [event] = await eventsOf(h, completed)
    expect(event?.clientId).to.equal(CLIENT.client_id)
  })

  it('does the same in another browser, and after the interaction is gone, in either (VER-16)', async () => {
    for (const [isSame, isGone] of [
      [false, false],
      [true, true],
      [false, true],
    ]) {
      const login = await blockedLogin(h)
      if (isGone) await forgetInteraction(h, login)
      const agent = isSame ? login.agent : createUserAgent()
      await login.comesBack(await agent.get(login.link))
      expect(await accountOf(h, agent)).to.equal(login.id)
      expect(sessionId(h, login.agent) !== undefined).to.equal(isSame)
    }
  })

  it('resumes a request of a client that must push it or sign it, also after its record and the interaction are gone', async () => {
    const signed = await signedLogin(h)
    await forgetInteraction(h, signed)
    const { login: kept } = await pushedLogin(h)
    const { login: gone, url } = await pushedLogin(h)
    const jti = url.searchParams.get('request_uri')?.split(':').at(-1) ?? ''
    const pushed = await h.provider.PushedAuthorizationRequest.find(jti)
    expect(pushed).to.not.equal(undefined)
    await pushed?.destroy()
    await forgetInteraction(h, gone)
    for (const login of [signed, kept, gone]) {
      await login.comesBack(await createUserAgent().get(login.link))
    }
  })

  it('keeps the nonce, and PKCE: another verifier redeems nothing (RED-06, RED-07)', async () => {
    const login = await blockedLogin(h)
    const { location = '' } = await login.agent.get(login.link)
    const stolen = { ...login.request, codeVerifier: randomPKCECodeVerifier() }
    const refused = await login.party.exchange(stolen, location).catch((error: unknown) => error)
    expect(refused).to.be.instanceOf(Error).with.property('error', 'invalid_grant')

    const again = await blockedLogin(h)
    const tokens = await again.comesBack(await again.agent.get(again.link))
    expect(tokens.claims()?.['nonce']).to.equal(again.request.nonce)
  })

  it('cannot be used again: the page says so, no session and no code', async () => {
    const login = await blockedLogin(h)
    await login.stillGetsIn()
    const session = sessionId(h, login.agent)
    const thief = createUserAgent()
    for (const agent of [thief, login.agent, thief]) {
      const answer = await agent.get(login.link)
      expectExpired(answer)
      expect(reasonOf(answer)).to.equal('used')
    }
    expect(sessionId(h, thief)).to.equal(undefined)
    expect(sessionId(h, login.agent)).to.equal(session)
  })
})

onBothStores('GET {oauth_path}/verify-email, many times at once (4.6)', (technology) => {
  const h = suiteHarness({ technology })

  it('gives one of 20 parallel requests the redirect, and the others nothing (RACE-05)', async () => {
    const login = await blockedLogin(h)
    const agents = Array.from({ length: 20 }, () => createUserAgent())
    const answers = await Promise.all(agents.map((agent) => agent.get(login.link)))
    const redirects = answers.filter(({ status }) => status === 302)
    expect(redirects).to.have.length(1)
    expect(answers.filter(setsSession)).to.deep.equal(redirects)
    for (const { status, mode, location } of answers) {
      if (status === 302) continue
      expect(`${status} ${mode}`).to.be.oneOf(['400 expired', '200 verified'])
      expect(location).to.equal(undefined)
    }
    for (const answer of redirects) await login.comesBack(answer)
  })
})

onBothStores('A link of an address that is confirmed already (3.2, 4.6)', (technology) => {
  const h = suiteHarness({ technology })

  async function expectConfirmedAlready(link: string, user: User) {
    const answer = await createUserAgent().get(link)
    expectExpired(answer)
    expectTitle(answer, 'verify-email.expired.used.title')
    expect(recordedOf(h, 'email_verification_rejected', user).at(-1)?.reason).to.equal(
      'already_verified',
    )
    expect(recordedOf(h, 'email_verification_completed', user)).to.have.length(1)
    return answer
  }

  it('says so with the way on, be it the one that was used, another, or one that is over', async () => {
    const login = await blockedLogin(h)
    const { user } = login
    const fields = { client_id: CLIENT.client_id, redirect_uri: CLIENT.redirect_uris[0] }
    const another = await user.asksAgain(fields)
    const expired = await user.asksAgain(fields)
    const { id = '' } = (await h.store.verificationTokens.find(sha256(tokenOf(expired)))) ?? {}
    await h.store.verificationTokens.revoke({ id }, new Date(Date.now() - 60_000))
    await login.stillGetsIn()
    for (const link of [login.link, another, expired, login.link]) {
      const page = await expectConfirmedAlready(link, user)
      expect(page.text).to.match(/Continue to .*We can send you a new link/s)
      expect(page.text).not.to.match(/already used|not confirmed|works once/)
    }
    const renewed = await createUserAgent().post(
      `${h.oauthUrl}/resend-verification`,
      Object.fromEntries(new URL(another).searchParams),
    )
    expectTitle(renewed, 'verify-email.expired.used.title')
  })

  it('says so after a reset, whose new password ended the link', async () => {
    const login = await blockedLogin(h)
    const another = await login.asksAgain()
    await login.stillGetsIn()
    expect((await h.reset(await login.forgets(), 'a new password')).mode).to.equal('done')
    await expectConfirmedAlready(another, login)
  })

  it('says so to whoever comes second of two at once', async () => {
    const login = await blockedLogin(h)
    const answers = await Promise.all([1, 2, 3].map(() => createUserAgent().get(login.link)))
    for (const answer of answers.filter(({ mode }) => mode === 'expired'))
      expectTitle(answer, 'verify-email.expired.used.title')
    expect(answers.filter(({ status }) => status === 302)).to.have.length(1)
  })

  it('says nothing of it once the account has another address, is not verified any more, or is disabled', async () => {
    const changes = [{ email: 'other@users.example' }, { emailVerified: false }, { disabled: true }]
    for (const change of changes) {
      const login = await blockedLogin(h)
      await login.stillGetsIn()
      await login.becomes(change)
      const page = await createUserAgent().get(login.link)
      expectExpired(page)
      expectTitle(page, 'verify-email.expired.changed.title')
      expect(recordedOf(h, 'email_verification_rejected', login)[0]?.reason).to.equal('used')
    }
  })

  it('says nothing of it to whoever has no genuine link', async () => {
    const login = await blockedLogin(h)
    const url = new URL(login.link)
    url.searchParams.set('state', 'another')
    const other = new URL(login.link)
    other.searchParams.set('token', 'A'.repeat(43))
    const strange = [
      url.href,
      other.href,
      `${h.oauthUrl}/verify-email?token=${tokenOf(login.link)}`,
    ]
    const visit = async () =>
      Promise.all(strange.map(async (link) => shapeOf(await createUserAgent().get(link))))
    const before = await visit()
    await login.stillGetsIn()
    expect(await visit()).to.deep.equal(before)
    expect(recordedOf(h, 'email_verification_rejected', login)).to.deep.equal([])
  })
})

const facts = ({ url, method, headers: { cookie } }: IncomingMessage) => ({ url, method, cookie })

describe('What the host sees of GET {oauth_path}/verify-email (4.6)', () => {
  const seen: { before: object; after: object }[] = []
  const h = suiteHarness({
    async host(parts) {
      const listener = koaHost(parts)
      return (req, res) => {
        const before = facts(req)
        res.on('finish', () => seen.push({ before, after: facts(req) }))
        return listener(req, res)
      }
    },
  })

  it('leaves address, method and cookies of the request as they came, whatever resumes the login', async () => {
    const [first, second] = [await blockedLogin(h), await blockedLogin(h)]
    const visited = createUserAgent()
    await visited.get(`${h.oauthUrl}/session/end`)
    const fresh = await resend(h, await addUnverified(h), {
      client_id: CONFIDENTIAL.client_id,
      redirect_uri: CONFIDENTIAL.redirect_uris[0],
      scope: 'openid',
    })
    seen.length = 0
    const answers = [
      await createUserAgent().get(first.link),
      await visited.get(fresh),
      await second.types(second.code),
    ]
    expect(answers.map(({ status }) => status)).to.deep.equal([302, 302, 302])
    expect(seen).to.have.length(3)
    for (const { before, after } of seen) expect(after).to.deep.equal(before)
    await second.comesBack(answers[2] ?? second.blocked)
  })
})

describe('Carried parameters longer than an address can be (4.6, 4.7)', () => {
  const h = suiteHarness()

  it('are not in the link of a blocked login, which finishes the request with all of them', async () => {
    const login = await blockedLogin(h, { extra: { state: 's'.repeat(10_000) } })
    expect(login.link.length).to.be.below(500)
    await login.comesBack(await createUserAgent().get(login.link))
  })

  it('are not in the link of a stranger who asks for one, which verifies and leads nowhere', async () => {
    const carol = await addUnverified(h)
    const link = await carol.asksAgain({
      client_id: CLIENT.client_id,
      redirect_uri: CLIENT.redirect_uris[0],
      state: 's'.repeat(60_000),
    })
    expect(link.length).to.be.below(500)
    const agent = createUserAgent()
    const answer = await agent.get(link)
    expect([answer.status, answer.mode]).to.deep.equal([200, 'verified'])
    expect(agent.cookiesFor(h.oauthUrl)).to.equal('')
    expect(await carol.isVerified()).to.equal(true)
    expect((await h.signIn(createUserAgent(), carol.username)).location).to.include('code=')
  })
})

describeWithMongo('A verification link in the database [full]', () => {
  const h = suiteHarness({ technology: 'mongodb' })

  for (const [where, minutes] of [
    ['ahead of', 3],
    ['behind', -3],
  ] as const) {
    it(`written by a process whose clock is three minutes ${where} ours: works`, async () => {
      const login = await blockedLogin(h)
      const { id } = login
      const shift = async (collection: string, of: Document, names: string[]) => {
        const shifted = names.map((name) => [
          name,
          { $dateAdd: { startDate: `$${name}`, unit: 'minute', amount: minutes } },
        ])
        const changes = [{ $set: Object.fromEntries(shifted) }]
        const { modifiedCount } = await databaseOf(h).collection(collection).updateOne(of, changes)
        expect(modifiedCount).to.equal(1)
      }
      await shift('email_verification_tokens', { user_id: id }, ['created_at', 'expires_at'])
      await shift('pending_logins', { account_id: id }, ['created_at', 'purge_at'])
      await login.comesBack(await createUserAgent().get(login.link))
      await login.comesBack(await login.goesOn())
    })
  }
})
