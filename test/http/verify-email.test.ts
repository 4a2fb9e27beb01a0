import { createHmac, randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { expect } from 'chai'
import { randomPKCECodeVerifier } from 'openid-client'
import { koaHost } from '../../examples/hosts/koa.ts'
import { createKeyRing } from '../../src/crypto/keys.ts'
import { onEachStore, ADMIN_TOKEN, CLIENT, CONFIDENTIAL, suiteHarness } from '../support/harness.ts'
import { APP, expectPasswordThenCode, forgetInteraction, SERVER } from '../support/clients.ts'
import { reasonOf, createUserAgent, type Answer, type UserAgent } from '../support/user-agent.ts'
import { sha256, shapeOf } from '../support/observe.ts'
import { expectExpired, setsSession, tokenOf, type Person } from '../support/person.ts'
import { byAnotherClock, moveTime } from '../support/time.ts'
import { expectTitle } from '../support/words.ts'

/** Ids that were drawn by lot may have any letters. */
function expectNamesNobody(page: Answer, { id, username, email = '' }: Person) {
  const shown = page.text.replaceAll(/[\w-]{22,}/g, ' ')
  for (const secret of [id, username, email, 'users.example']) expect(shown).to.not.include(secret)
  expect(page.hidden).not.to.have.any.keys('username', 'email', 'identifier')
}

/** The page that says that the link is over, and names nobody; nothing is verified. */
async function expectOver(login: Person, link = login.link) {
  const page = await login.opensLink(link)
  expectExpired(page)
  expectNamesNobody(page, login)
  await login.getsNothing(page)
  return page
}

// What HEAD, prefetches and other methods do not do is in test/attacks/verification.test.ts.
describe('GET {oauth_path}/verify-email (4.6)', () => {
  const h = suiteHarness()

  it('marks the address verified and redirects once, with 302, to the client with code, state and iss: in this browser or another, also after the interaction is gone (VER-16)', async () => {
    for (const way of [0, 1, 2, 3]) {
      const [isSame, isGone] = [way < 2, way % 2 === 1]
      const login = await h.blockedLogin()
      if (isGone) await forgetInteraction(h, login)
      const there = isSame ? login : login.in()
      const answer = await there.opensLink()
      expect(setsSession(answer)).to.equal(true)
      const tokens = await login.comesBack(answer)
      expect(tokens.claims()?.['nonce']).to.equal(login.request.nonce)
      const events = login.events('email_verification_completed')
      expect(events.map(({ clientId }) => clientId)).to.deep.equal([CLIENT.client_id])
      expect(await there.account()).to.equal(login.id)
      expect(h.sessionId(login.agent) !== undefined).to.equal(isSame)
    }
  })

  for (const minutes of [3, -3]) {
    it(`does so by a clock that is ${minutes} minutes ahead of the one that made the link`, async () => {
      const login = await h.blockedLogin()
      await byAnotherClock(minutes * 60_000, async () => {
        await login.comesBack(await login.opensElsewhere())
        await login.comesBack(await login.goesOn())
      })
    })
  }

  it('keeps PKCE: another verifier redeems nothing (RED-06, RED-07); and cannot be used again: the page says so, no session and no code', async () => {
    const login = await h.blockedLogin()
    const { location = '' } = await login.opensLink()
    const stolen = { ...login.request, codeVerifier: randomPKCECodeVerifier() }
    const refused = await login.party.exchange(stolen, location).catch((error: unknown) => error)
    expect(refused).to.be.instanceOf(Error).with.property('error', 'invalid_grant')
    const session = h.sessionId(login.agent)
    const thief = login.in()
    for (const each of [thief, login, thief]) {
      const answer = await each.opensLink()
      expectExpired(answer)
      expect(reasonOf(answer)).to.equal('used')
    }
    expect(h.sessionId(thief.agent)).to.equal(undefined)
    expect(h.sessionId(login.agent)).to.equal(session)
  })

  it('verifies and leads nowhere by a link that a stranger asked for with parameters longer than an address can be', async () => {
    const carol = await h.addUnverified()
    const link = await carol.asksAgain({ ...APP, state: 's'.repeat(60_000) })
    expect(link.length).to.be.below(500)
    await carol.isOnlyVerified(await carol.opensLink())
    expect(carol.agent.cookiesFor(h.oauthUrl)).to.equal('')
    expect((await carol.signsIn()).location).to.include('code=')
  })
})

onEachStore('GET {oauth_path}/verify-email, many times at once (4.6)', (technology) => {
  const h = suiteHarness({ technology })

  it('gives one of 20 parallel requests the redirect, and the others nothing (RACE-05)', async () => {
    const login = await h.blockedLogin()
    const answers = await Promise.all(Array.from({ length: 20 }, () => login.opensElsewhere()))
    const redirects = answers.filter(({ status }) => status === 302)
    expect(redirects).to.have.length(1)
    expect(answers.filter(setsSession)).to.deep.equal(redirects)
    for (const answer of answers) {
      const { status, mode, location } = answer
      if (status === 302) continue
      expect(`${status} ${mode}`).to.be.oneOf(['400 expired', '200 verified'])
      expect(location).to.equal(undefined)
      if (mode === 'expired') expectTitle(answer, 'verify-email.expired.used.title')
    }
    await login.comesBack(redirects[0])
  })
})

onEachStore('A link of an address that is confirmed already (3.2, 4.6)', (technology) => {
  const h = suiteHarness({ technology })

  async function expectConfirmedAlready(link: string, user: Person) {
    const answer = await user.opensElsewhere(link)
    expectExpired(answer)
    expectNamesNobody(answer, user)
    expectTitle(answer, 'verify-email.expired.used.title')
    const [last] = user.events('email_verification_rejected').slice(-1)
    expect(last?.reason).to.equal('already_verified')
    expect(user.events('email_verification_completed')).to.have.length(1)
    return answer
  }

  it('says so with the way on, be it the one that was used, another (VER-06), or one that is over, also after a reset, whose new password ended it (ENU-09)', async () => {
    const login = await h.blockedLogin()
    const { link: first } = login
    const another = await login.asksAgain(APP)
    const expired = await login.asksAgain(APP)
    const { id = '' } = (await h.store.verificationTokens.find(sha256(tokenOf(expired)))) ?? {}
    await h.store.verificationTokens.expire(id, new Date(Date.now() - 60_000))
    login.link = first
    await login.stillGetsIn()
    for (const link of [first, another, expired, first]) {
      const page = await expectConfirmedAlready(link, login)
      expect(page.text).to.match(/Continue to .*We can send you a new link/s)
      expect(page.text).not.to.match(/already used|not confirmed|works once/)
    }
    const { searchParams } = new URL(another)
    const url = `${h.oauthUrl}/resend-verification`
    const renewed = await createUserAgent().post(url, Object.fromEntries(searchParams))
    expectTitle(renewed, 'verify-email.expired.used.title')
    await login.getsBackIn()
    await expectConfirmedAlready(another, login)
  })

  it('says nothing of it once the account has another address, is not verified any more, or is disabled', async () => {
    const changes = [{ email: 'other@users.example' }, { emailVerified: false }, { disabled: true }]
    for (const change of changes) {
      const login = await h.blockedLogin()
      await login.stillGetsIn()
      await login.becomes(change)
      const page = await login.opensElsewhere()
      expectExpired(page)
      expectTitle(page, 'verify-email.expired.changed.title')
      expect(login.events('email_verification_rejected')[0]?.reason).to.equal('used')
    }
  })

  it('says nothing of it to whoever has no genuine link', async () => {
    const login = await h.blockedLogin()
    const strange = [
      changed(login.link, (q) => q.set('state', 'another')),
      changed(login.link, (q) => q.set('token', 'A'.repeat(43))),
      `${h.oauthUrl}/verify-email?token=${tokenOf(login.link)}`,
    ]
    const visit = () =>
      Promise.all(strange.map(async (link) => shapeOf(await login.opensElsewhere(link))))
    const before = await visit()
    await login.stillGetsIn()
    expect(await visit()).to.deep.equal(before)
    expect(login.events('email_verification_rejected')).to.deep.equal([])
  })
})

describe('What the host sees of GET {oauth_path}/verify-email (4.6)', () => {
  const seen: { before: object; after: object }[] = []
  const h = suiteHarness({
    host(parts) {
      const listener = koaHost(parts)
      const facts = ({ url, method, headers: { cookie } }: IncomingMessage) => [url, method, cookie]
      return (req, res) => {
        const before = facts(req)
        res.on('finish', () => seen.push({ before, after: facts(req) }))
        return listener(req, res)
      }
    },
  })

  it('leaves address, method and cookies of the request as they came, whatever resumes the login', async () => {
    const [first, second] = [await h.blockedLogin(), await h.blockedLogin()]
    const third = await h.addUnverified()
    await third.agent.get(`${h.oauthUrl}/session/end`)
    await third.asksAgain(SERVER)
    seen.length = 0
    const answers = [await first.opensElsewhere(), await third.opensLink(), await second.types()]
    expect(answers.map(({ status }) => status)).to.deep.equal([302, 302, 302])
    expect(seen).to.have.length(3)
    for (const { before, after } of seen) expect(after).to.deep.equal(before)
    await second.comesBack()
  })
})

describe('A verification link after something changed meanwhile (4.6)', () => {
  const h = suiteHarness()

  /** The page of the link says so. */
  async function changesMeanwhile(login: Person, change: (user: Person) => unknown) {
    await change(login)
    expect(reasonOf(await expectOver(login))).to.equal('changed')
  }

  // That it stays so once the account is enabled again is in test/http/account.test.ts.
  it('is expired while the account is disabled, or once it is deleted, and asks for no new one', async () => {
    for (const change of [
      (user: Person) => user.becomes({ disabled: true }),
      (user: Person) => user.isDeleted(),
    ]) {
      const login = await h.blockedLogin()
      await changesMeanwhile(login, change)
      await h.withoutJobs(async () => {
        await login.sendsForm()
        await h.isIdle()
      })
    }
  })

  it('is expired once the address is another one, and never verifies that; a new link goes there (RACE-06, VER-09)', async () => {
    const move = (user: Person) => user.becomes({ email: `new-${user.email}` })
    const [returned, moved] = [await h.blockedLogin(), await h.blockedLogin()]
    await changesMeanwhile(returned, move)
    await returned.becomes({ email: returned.email })
    await returned.stillGetsIn()
    await changesMeanwhile(moved, move)
    await moved.sendsForm()
    await moved.opensLink((await h.mail.mailTo(`new-${moved.email}`)).link)
    expect(moved.mailCount()).to.equal(1)
    expect(await moved.isVerified()).to.equal(true)
  })

  it('says verified, without session and code, once an admin verified the account (TOK-22); other accounts stay as they are', async () => {
    const [bystander, waiting] = [await h.addVerified(), await h.blockedLogin()]
    await bystander.signsIn()
    const login = await h.blockedLogin()
    await login.becomes({ emailVerified: true })
    for (const _time of [1, 2]) await login.isOnlyVerified(await login.opensLink())
    await (await h.blockedLogin()).stillGetsIn()
    expect(await bystander.account()).to.equal(bystander.id)
    await waiting.stillGetsIn()
  })

  it('is expired once everything of the account was ended; a new one verifies, and signs nobody in', async () => {
    const login = await h.blockedLogin()
    await h.flows.endSessions(login.id)
    await expectOver(login)
    expect((await login.presses('/resend-verification')).mode).to.equal('sent')
    await login.isOnlyVerified(await login.opensLink((await login.mail(2)).link))
  })

  it('verifies, then asks for the password again, once max_age has passed since its check', async () => {
    const login = await h.blockedLogin({ extra: { max_age: '600' } })
    await moveTime(601_000)
    const elsewhere = login.in()
    const answer = await elsewhere.opensLink()
    expect(await login.isVerified()).to.equal(true)
    expect(setsSession(answer)).to.equal(false)
    await expectPasswordThenCode(h, elsewhere, answer)
  })
})

/** The page about another account, which names none of these users. */
function expectOtherAccount(page: Answer, users: Person[]): void {
  expect([page.status, page.page]).to.deep.equal([200, 'verify-email'])
  expect([page.mode, page.location]).to.deep.equal(['other_account', undefined])
  expect(setsSession(page)).to.equal(false)
  for (const { username, email, id } of users) {
    for (const name of [username, email ?? '', `"${id}"`]) expect(page.text).to.not.include(name)
  }
}

describe('A verification link in a browser with a session (4.6)', () => {
  const h = suiteHarness()

  describe('of another account', () => {
    let login: Person
    let owner: Person
    let browser: UserAgent

    beforeEach(async () => {
      login = await h.blockedLogin()
      owner = await h.addSignedIn()
      browser = owner.agent
    })

    it('verifies and replaces nothing, names neither account, and consumes nothing: sign out first, or use the code; it answers no form (VER-05, VER-18)', async () => {
      const session = h.sessionId(browser)
      for (const _time of [1, 2, 3]) {
        const page = await browser.get(login.link)
        expectOtherAccount(page, [owner, login])
        expect(page.text).to.include('Sign out first').and.to.not.include('<form')
        expect(h.sessionId(browser)).to.equal(session)
        expect(await login.isVerified()).to.equal(false)
      }
      const query = Object.fromEntries(new URL(login.link).searchParams)
      for (const action of ['confirm', 'continue', 'confirm_only', 'disown']) {
        const answer = await browser.post(`${h.oauthUrl}/verify-email`, { ...query, action })
        expect([answer.status, answer.headers.get('allow')]).to.deep.equal([405, 'GET, HEAD'])
        expect(await login.isVerified()).to.equal(false)
      }
      expect(await h.accountOf(browser)).to.equal(owner.id)
      await browser.get(`${h.oauthUrl}/session/end`)
      await (await h.sessionOf(browser))?.destroy()
      await login.comesBack(await browser.get(login.link))
    })

    it('leaves it alone for a link that no login waits for, too, and the code good where one waits', async () => {
      expectOtherAccount(await browser.get(login.link), [owner, login])
      await login.comesBack(await login.types())
      expect(await h.accountOf(browser)).to.equal(owner.id)
      const user = await h.addUnverified()
      expectOtherAccount(await browser.get(await user.asksAgain(SERVER)), [owner, user])
      expect((await user.opensLink()).location).to.match(/^https:\/\/server\.example\/cb\?code=/)
    })
  })

  it('replaces an anonymous session that somebody planted, which is worth nothing then (SES-07)', async () => {
    for (const link of [
      (await h.blockedLogin()).link,
      await (await h.addUnverified()).asksAgain(SERVER),
    ]) {
      const victim = createUserAgent()
      await victim.get(`${h.oauthUrl}/session/end`)
      const planted = h.sessionId(victim)
      const cookie = victim.cookiesFor(`${h.oauthUrl}/auth`)
      expect(planted).to.be.a('string')
      expect((await victim.get(link)).location).to.match(/[?&]code=/)
      expect(h.sessionId(victim)).to.not.equal(planted)
      expect(await h.provider.Session.find(planted ?? '')).to.equal(undefined)
      const { url } = await h.party.begin({ prompt: 'none' })
      const { location = '' } = await createUserAgent().get(url, { cookie })
      expect(new URL(location).searchParams.get('error')).to.equal('login_required')
      expect((await h.silently(victim)).has('code')).to.equal(true)
    }
  })
})

const SIGNED = ['token', 'client_id', 'redirect_uri', 'scope', 'state', 'authorize_sig'] as const
const REQUEST_PARAMETERS = ['client_id', 'redirect_uri', 'scope', 'state'] as const

/** The link with its query changed; order and encoding are kept. */
function changed(link: string, change: (query: URLSearchParams) => void): string {
  const url = new URL(link)
  change(url.searchParams)
  return url.href
}

const withQuery = (link: string, query: string) => `${link.split('?')[0]}?${query}`

describe('authorize_sig of GET {oauth_path}/verify-email (5.4)', () => {
  const secret = randomBytes(32)
  const h = suiteHarness({ flows: { secrets: [secret] } })

  async function expectAllRefused(login: Person, links: string[]) {
    for (const link of links) {
      expect(link).to.not.equal(login.link)
      await expectOver(login, link)
    }
    await login.stillGetsIn()
  }

  it('carries token, client_id, redirect_uri, scope and state, and a signature of 43 characters', async () => {
    const { link, request, username } = await h.blockedLogin()
    const { searchParams, origin, pathname } = new URL(link)
    expect(origin + pathname).to.equal(`${h.oauthUrl}/verify-email`)
    const { token, authorize_sig, ...parameters } = Object.fromEntries(searchParams)
    expect([...searchParams]).to.have.length(SIGNED.length)
    for (const secret of [token, authorize_sig]) expect(secret).to.match(/^[\w-]{43}$/)
    const { redirectUri: redirect_uri, state } = request
    const { client_id } = CLIENT
    expect(parameters).to.deep.equal({ client_id, redirect_uri, scope: 'openid email', state })
    expect(link).to.not.include(username)
  })

  type LinksOf = (link: string, query: URLSearchParams) => string[]
  function itRefuses(title: string, linksOf: LinksOf) {
    it(title, async () => {
      const login = await h.blockedLogin()
      await expectAllRefused(login, linksOf(login.link, new URL(login.link).searchParams))
    })
  }

  itRefuses('refuses a link in which one parameter was changed (SIG-01, ENU-09)', (link, query) => {
    const evil: Record<string, string> = {
      token: randomBytes(32).toString('base64url'),
      client_id: CONFIDENTIAL.client_id,
      redirect_uri: CONFIDENTIAL.redirect_uris[0],
      scope: 'openid email offline_access',
      state: 'evil',
      authorize_sig: randomBytes(32).toString('base64url'),
    }
    const valueOf = (name: string) => query.get(name) ?? ''
    return [
      ...Object.entries(evil).map((pair) => changed(link, (q) => q.set(...pair))),
      ...REQUEST_PARAMETERS.map((name) =>
        changed(link, (q) => q.set(name, valueOf(name).toUpperCase())),
      ),
      ...SIGNED.map((name) => changed(link, (q) => q.set(name, `${valueOf(name)}x`))),
    ]
  })

  itRefuses('refuses a link in which one parameter is missing or empty (SIG-02)', (link) => [
    ...SIGNED.map((name) => changed(link, (q) => q.delete(name))),
    ...SIGNED.map((name) => changed(link, (q) => q.set(name, ''))),
    changed(link, (q) => REQUEST_PARAMETERS.forEach((name) => q.delete(name))),
    link.split('?')[0] ?? '',
  ])

  itRefuses('refuses a parameter that is repeated, be it the same (SIG-04)', (link, query) =>
    SIGNED.flatMap((name) => [
      changed(link, (q) => q.append(name, q.get(name) ?? '')),
      changed(link, (q) => q.append(name, 'evil')),
      withQuery(link, `${name}=evil&${query}`),
      // A line break of a mail program stands before the second value.
      ...['%0Aer', '%0D%0A', '%0A%20x', '3Dx'].flatMap((value) => [
        `${link}&${name}=${value}`,
        withQuery(link, `${name}=${value}&${query}`),
      ]),
    ]),
  )

  itRefuses(
    'refuses a parameter in brackets, beside or instead of the plain one (SIG-05)',
    (link) =>
      SIGNED.flatMap((plain) =>
        ['[]', '[0]', '[$ne]'].flatMap((brackets) => {
          const beside = changed(link, (q) => q.append(plain + brackets, q.get(plain) ?? ''))
          return [beside, changed(beside, (q) => q.delete(plain))]
        }),
      ),
  )

  itRefuses(
    'refuses a signature that is cut, too long, or written in another way (SIG-11, TIM-10)',
    (link, query) => {
      const signature = query.get('authorize_sig') ?? ''
      const last = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
      const sibling = last[last.indexOf(signature.slice(-1)) ^ 1]
      return [
        signature.slice(0, 8),
        signature.slice(0, -1),
        `${signature}A`,
        signature + signature,
        signature.slice(0, -1) + sibling,
        Buffer.from(signature, 'base64url').toString('hex'),
        'undefined',
        'null',
        '0',
        'A'.repeat(43),
        'A'.repeat(8_000),
      ].map((odd) => changed(link, (q) => q.set('authorize_sig', odd)))
    },
  )

  itRefuses('refuses a query that is no UTF-8', (link) => [
    `${link}%ff`,
    `${link}&state=%c0%80`,
    `${link}&%`,
  ])

  it('refuses a parameter that was added, be it empty', async () => {
    const login = await h.blockedLogin({
      send({ url }) {
        url.searchParams.delete('state')
        return url
      },
    })
    expect(new URL(login.link).searchParams.has('state')).to.equal(false)
    for (const state of ['evil', '']) {
      const link = changed(login.link, (q) => q.set('state', state))
      await expectOver(login, link)
    }
    const { location = '' } = await login.opensLink()
    expect([...new URL(location).searchParams.keys()]).to.have.members(['code', 'iss'])
  })

  it('refuses the signature of another mail, both ways (SIG-08)', async () => {
    const [first, stranger] = [await h.blockedLogin(), await h.blockedLogin()]
    const second = await h.blockedLogin({ user: first })
    for (const other of [second, stranger]) {
      for (const [from, into] of [
        [first, other],
        [other, first],
      ] as const) {
        const { searchParams } = new URL(from.link)
        for (const names of [
          ['authorize_sig'],
          ['token'],
          [...REQUEST_PARAMETERS, 'authorize_sig'],
        ]) {
          const mixed = changed(into.link, (q) =>
            names.forEach((name) => q.set(name, searchParams.get(name) ?? '')),
          )
          await expectOver(into, mixed)
        }
      }
    }
    for (const each of [first, stranger]) await each.stillGetsIn()
  })

  it('refuses a signature made with any other key, one for another purpose, or the key ring itself (SIG-12)', async () => {
    const login = await h.blockedLogin()
    const query = new URL(login.link).searchParams
    const values = ['token', ...REQUEST_PARAMETERS].map((name) => query.get(name))
    const text = JSON.stringify(values)
    const ofOthers = (['jwe', 'login_code'] as const).map(
      (of) => createKeyRing([secret])[of][0].bytes,
    )
    const known = [
      ADMIN_TOKEN,
      'a cookie key of the tests',
      CONFIDENTIAL.client_secret,
      ...ofOthers,
    ]
    const links = [secret, Buffer.alloc(0), Buffer.alloc(32), ...known].flatMap((key) =>
      [
        ['sha256', text],
        ['sha256', values.join('')],
        ['sha1', text],
        ['md5', text],
      ].map(([algorithm = '', signed = '']) => {
        const signature = createHmac(algorithm, key).update(signed).digest('base64url')
        return changed(login.link, (q) => q.set('authorize_sig', signature))
      }),
    )
    await expectAllRefused(login, links)
  })
})
