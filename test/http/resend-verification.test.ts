import { expect } from 'chai'
import { authorizationCodeGrant } from 'openid-client'
import {
  eventsOf,
  expectExpired,
  expectOnlyVerified,
  expectResumed,
  expectStillWorks,
} from '../support/blocked-login.ts'
import { CLIENT, CONFIDENTIAL } from '../support/harness.ts'
import { jobs, later } from '../support/jobs.ts'
import { shapeOf } from '../support/observe.ts'
import { formsOf, press, withoutId } from '../support/page-forms.ts'
import { createRelyingParty } from '../support/relying-party.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { moveTime } from '../support/time.ts'
import { type Answer, createUserAgent, type Form } from '../support/user-agent.ts'
import { expectMode, openElsewhere, windowOf } from '../support/waiting-window.ts'
import { expectTitle } from '../support/words.ts'
import {
  accountOf,
  addUnverified,
  addVerified,
  blockedLogin,
  type Person,
  sessionId,
  tokenOf,
} from '../support/person.ts'

const [APP_URI] = CLIENT.redirect_uris
const [SERVER_URI] = CONFIDENTIAL.redirect_uris
const APP: Record<string, string> = {
  client_id: CLIENT.client_id,
  redirect_uri: APP_URI,
  scope: 'openid',
}
const SERVER = { client_id: CONFIDENTIAL.client_id, redirect_uri: SERVER_URI, scope: 'openid' }
const NAMES = new Set(['client_id', 'redirect_uri', 'scope', 'state'])

const carriedIn = (link: string) =>
  Object.fromEntries([...new URL(link).searchParams].filter(([name]) => NAMES.has(name)))

// That answers and names tell nothing is in test/secrecy/same-work.test.ts and test/attacks/identity.test.ts.
describe('POST {oauth_path}/resend-verification (4.7)', () => {
  const anyone = createUserAgent()
  const h = suiteHarness()
  let asked = 0

  const post = (form: Form, headers = {}) =>
    anyone.post(`${h.oauthUrl}/resend-verification`, form, headers)

  /** Why each of these requests came to nothing, once a worker has looked at it. */
  async function reasonsFor(usernames: string[]) {
    asked += 1
    const userAgent = `browser number ${asked}`
    for (const username of usernames) {
      expect((await post({ username }, { 'user-agent': userAgent })).mode).to.equal('sent')
    }
    const matches = { type: 'email_verification_requested', userAgent } as const
    const events = await eventsOf(h, matches, usernames.length)
    return events.map(({ reason }) => reason)
  }

  it('sends a mail to an unverified user, and to nobody else (VER-12)', async () => {
    const known = await addUnverified(h)
    const verified = await addVerified(h)
    const disabled = await addUnverified(h, { disabled: true })
    const names = [verified.username, disabled.username, 'nobody']
    const reasons = await reasonsFor(names)
    expect(reasons).to.have.members(['already_verified', 'disabled', 'unknown'])
    await known.asksAgain()
    expect([verified, disabled].map((user) => user.mailCount())).to.deep.equal([0, 0])
  })

  it('names the stored address, whatever the form says besides', async () => {
    const user = await addUnverified(h)
    await user.asksAgain({ email: 'evil@evil.example', to: 'evil@evil.example' })
    expect(h.mail.mails.filter(({ to }) => String(to).includes('evil'))).to.deep.equal([])
  })

  it('sends a fresh link each time, and all of them live, the first as good as it was, until one is used', async () => {
    const login = await blockedLogin(h)
    const { user, link: first } = login
    const links = [
      first,
      await user.asksAgain({ ...APP, state: 'the state of the client' }),
      await user.asksAgain(),
    ]
    const tokens = links.map((link) => new URL(link).searchParams.get('token'))
    expect(new Set(tokens).size).to.equal(3)
    for (const token of tokens) expect(token).to.match(/^[\w-]{43}$/)
    expect(await user.isVerified()).to.equal(false)
    await login.stillGetsIn()
    for (const link of links) expectExpired(await createUserAgent().get(link))

    const other = await blockedLogin(h)
    const again = await other.asksAgain()
    expect((await createUserAgent().get(again)).mode).to.equal('verified')
    expectExpired(await createUserAgent().get(other.link))
  })

  it('works from the blocked page, whose form carries what the login began with', async () => {
    const login = await blockedLogin(h)
    const { username } = login
    const { login: id, ...form } = withoutId(login.blocked.hidden)
    expect(id).to.match(/^[\w-]{22}$/)
    expect(form).to.deep.equal({
      username,
      client_id: CLIENT.client_id,
      redirect_uri: login.request.redirectUri,
      scope: 'openid email',
      state: login.request.state,
    })
    const link = await login.asksAgain(login.blocked.hidden)
    await expectStillWorks(h, { ...login, link })
  })
})

describe('POST {oauth_path}/resend-verification from a page of ours', () => {
  const h = suiteHarness()

  const post = (form: Form) => createUserAgent().post(`${h.oauthUrl}/resend-verification`, form)
  const fieldsOf = (link: string) => Object.fromEntries(new URL(link).searchParams)

  async function expiredLogin(): Promise<Person> {
    const login = await blockedLogin(h)
    await later(h, 24 * 3_600_000)
    return login
  }

  async function isNotRenewedAs(reason: string, form: Form, login: Person) {
    const mails = h.mail.mails.length
    const known = await jobs(h)
    const answer = await post(form)
    expectExpired(answer)
    expectTitle(answer, `verify-email.expired.${reason}.title`)
    expect(known).to.include.members(await jobs(h))
    expect(h.mail.mails.length).to.equal(mails)
    expect(await login.isVerified()).to.equal(reason === 'used')
  }

  describe('in the place of an expired link', () => {
    it('sends a new one without a name being typed, and it finishes the login that waits', async () => {
      const login = await expiredLogin()
      const page = await createUserAgent().get(login.link)
      expectTitle(page, 'verify-email.expired.expired.title')
      expect(withoutId(page.hidden)).to.deep.equal({ ...fieldsOf(login.link), ui_locales: 'en' })
      const sent = await post(page.hidden)
      expect([sent.status, sent.mode]).to.deep.equal([200, 'sent'])
      const { link } = await h.mail.mailTo(login.email ?? '', 2)
      await expectResumed(h, { ...login, link }, await createUserAgent().get(link))
      await isNotRenewedAs('used', fieldsOf(login.link), login)
      const alike = await expiredLogin()
      const sentAlike = await post({ ...fieldsOf(alike.link), ui_locales: 'en' })
      expect(shapeOf(sentAlike)).to.deep.equal(shapeOf(sent))
      await h.mail.mailTo(alike.email ?? '', 2)
    })

    it('sends none for what is not genuine in every character, and the link still does its work', async () => {
      const login = await expiredLogin()
      const genuine = fieldsOf(login.link)
      const { authorize_sig: signature = '', token = '' } = genuine
      const changed: Form[] = [
        { ...genuine, token: 'A'.repeat(43) },
        { ...genuine, authorize_sig: `${signature.slice(0, -1)}_` },
        { ...genuine, state: 'another' },
        { ...genuine, 'scope[]': 'openid' },
        { token, authorize_sig: signature },
        { token },
      ]
      for (const form of changed) await isNotRenewedAs('unknown', form, login)
      const repeated = await post(`${new URLSearchParams(genuine)}&token=${token}`)
      expect([repeated.status, repeated.mode]).to.deep.equal([400, 'bad_request'])
      expect(login.mailCount()).to.equal(1)
      expect((await post(genuine)).mode).to.equal('sent')
      const { link } = await h.mail.mailTo(login.email ?? '', 2)
      await expectStillWorks(h, { ...login, link })
    })
  })

  describe('with the page that waits', () => {
    it('keeps it waiting, and that may lead to its client alone', async () => {
      const login = await blockedLogin(h)
      const window = windowOf(h, login)
      const sent = await press(login.agent, login.blocked, '/resend-verification')
      expect([sent.status, sent.mode]).to.deep.equal([200, 'sent'])
      expect(sent.hidden['login']).to.equal(window.id)
      expect(sent.headers.get('content-security-policy')).to.include("form-action 'self' https:;")
      const { link } = await h.mail.mailTo(login.email ?? '', 2)
      await openElsewhere({ ...login, link })
      await login.comesBack(await window.goOn())
    })

    it('asks again for a name where none was typed, keeps all that the form carried, and waits on', async () => {
      const login = await blockedLogin(h)
      const window = windowOf(h, login)
      const { username = '', ...fields } = login.blocked.hidden
      const carried: Record<string, string> = { ...fields, ui_locales: 'de en' }
      const known = await jobs(h)
      for (const form of [{ ...carried, username: '' }, carried]) {
        const page = await login.agent.post(`${h.oauthUrl}/resend-verification`, form)
        expect([page.status, page.mode]).to.deep.equal([400, 'invalid'])
        expect(page.text).to.include('Geben Sie Ihren Benutzernamen ein.')
        expect(page.headers.get('content-security-policy')).to.include("form-action 'self' https:;")
        const asked = formsOf(page).find(({ action }) => action.endsWith('/resend-verification'))
        expect(withoutId(asked?.fields ?? {})).to.deep.equal({
          ...withoutId(carried),
          username: '',
        })
      }
      expect(known).to.include.members(await jobs(h))
      const page = await login.agent.post(`${h.oauthUrl}/resend-verification`, carried)
      const typed = { username }
      const sent = await press(login.agent, page, '/resend-verification', { typed })
      expect([sent.status, sent.mode, sent.hidden['login']]).to.deep.equal([200, 'sent', window.id])
      const { link } = await h.mail.mailTo(login.email ?? '', 2)
      await expectStillWorks(h, { ...login, link })
    })

    it('asks for a name in the place of an unknown link, and carries nothing that was not sent', async () => {
      const page = await post({ username: '' })
      expect([page.status, page.mode, withoutId(page.hidden)]).to.deep.equal([400, 'invalid', {}])
      for (const username of ['\0', 'a\0b']) {
        expect((await post({ username })).mode).to.equal('bad_request')
      }
    })

    it('is the same page whatever name was typed, and tells nothing without the cookie', async () => {
      const login = await blockedLogin(h)
      const id = login.blocked.hidden['login'] ?? ''
      const pages = []
      for (const username of [login.username, 'nobody', 'n'.repeat(300)]) {
        pages.push(shapeOf(await post({ username, login: id })))
      }
      expect(pages[1]).to.deep.equal(pages[0])
      expect(pages[2]).to.deep.equal(pages[0])
      expectMode(await login.in(createUserAgent()).reloads(), 400, 'ended')
      await login.stillGetsIn()
    })

    it('ignores what is no id, and leads to no address that is not genuine', async () => {
      const username = 'nobody'
      const plain = shapeOf(await post({ username }))
      const short = 'a'.repeat(21)
      for (const login of ['', 'x', short, `${short}aa`, `${short}"`, '../..']) {
        expect(shapeOf(await post({ username, login }))).to.deep.equal(plain)
      }
      const { headers } = await post({
        username,
        login: 'a'.repeat(22),
        client_id: CLIENT.client_id,
        redirect_uri: 'https://evil.example/cb',
      })
      expect(headers.get('content-security-policy')).to.include("form-action 'self';")
    })
  })
})

describe('A link of POST {oauth_path}/resend-verification (4.7)', () => {
  const h = suiteHarness()

  describe('while a login waits', () => {
    it('finishes the one of the same client, redirect URI and state', async () => {
      const user = await addUnverified(h)
      const first = await blockedLogin(h, { user })
      const second = await blockedLogin(h, { user })
      const link = await user.asksAgain({ ...APP, state: first.request.state })
      const answer = await createUserAgent().get(link)
      await expectResumed(h, { ...first, link }, answer)
      expectExpired(await createUserAgent().get(second.link))
    })

    it('finishes the newest of several that are alike', async () => {
      const user = await addUnverified(h)
      const extra = { state: 'always the same' }
      await blockedLogin(h, { user, extra })
      const newest = await blockedLogin(h, { user, extra })
      const link = await user.asksAgain({ ...APP, ...extra })
      await expectResumed(h, { ...newest, link }, await newest.agent.get(link))
    })

    it('finishes none of another state, absent and empty being two', async () => {
      for (const carried of [
        (state: string) => ({ ...APP, state: `${state}x` }),
        () => ({ ...APP, state: '' }),
        () => APP,
      ]) {
        const login = await blockedLogin(h)
        const link = await login.asksAgain(carried(login.request.state))
        expectNoCode(await login.agent.get(link))
      }
    })

    it('finishes none of another user', async () => {
      const login = await blockedLogin(h)
      const stranger = await addUnverified(h)
      const link = await stranger.asksAgain({ ...APP, state: login.request.state })
      expectNoCode(await createUserAgent().get(link))
      expect(await login.isVerified()).to.equal(false)
      await login.stillGetsIn()
    })

    function expectNoCode({ status, location = '' }: Answer) {
      expect(status).to.equal(302)
      const { searchParams } = new URL(location)
      expect(searchParams.has('code')).to.equal(false)
      expect(searchParams.get('error')).to.equal('invalid_request')
    }
  })

  describe('while no login waits', () => {
    it('ends in an OAuth error at the redirect URI of a client that needs PKCE, and signs in (RED-06)', async () => {
      const user = await addUnverified(h)
      const agent = createUserAgent()
      const answer = await agent.get(await user.asksAgain({ ...APP, state: 'a b&c' }))
      expect(answer.status).to.equal(302)
      const location = new URL(answer.location ?? '')
      expect(location.origin + location.pathname).to.equal(APP_URI)
      const { error, error_description, state, iss, ...others } = Object.fromEntries(
        location.searchParams,
      )
      expect([error, state, iss]).to.deep.equal(['invalid_request', 'a b&c', h.oauthUrl])
      expect(error_description).to.match(/PKCE/)
      expect(others).to.deep.equal({})
      expect(await user.isVerified()).to.equal(true)
      expect(await accountOf(h, agent)).to.equal(user.id)
    })

    it('gives a client that needs no PKCE its code', async () => {
      const user = await addUnverified(h)
      const agent = createUserAgent()
      const link = await user.asksAgain({ ...SERVER, state: 'its state' })
      const answer = await agent.get(link)
      expect(answer.status).to.equal(302)
      const party = await createRelyingParty(h.oauthUrl, {
        clientId: CONFIDENTIAL.client_id,
        redirectUri: SERVER_URI,
        clientSecret: CONFIDENTIAL.client_secret,
      })
      const location = new URL(answer.location ?? '')
      expect(location.searchParams.get('iss')).to.equal(h.oauthUrl)
      const checks = { expectedState: 'its state' }
      const tokens = await authorizationCodeGrant(party.config, location, checks)
      expect(tokens.claims()?.sub).to.equal(user.id)
      const session = await h.provider.Session.find(sessionId(h, agent) ?? '')
      expect(session?.amr).to.deep.equal(['email'])
      expect((session?.exp ?? 0) - Date.now() / 1000).to.be.greaterThan(3600)
      expect(await accountOf(h, agent)).to.equal(user.id)
      expectExpired(await agent.get(link))
    })

    it('only verifies without client parameters: no session and no code', async () => {
      for (const carried of [{}, { state: 'x', scope: 'openid' }, { client_id: 'app' }]) {
        const user = await addUnverified(h)
        const agent = createUserAgent()
        const link = await user.asksAgain(carried)
        expect(carriedIn(link)).to.deep.equal({})
        await expectOnlyVerified(h, { user, agent }, await agent.get(link))
      }
    })

    it('never asks for a scope that the client may not have (RED-11)', async () => {
      const user = await addUnverified(h)
      const scope = 'openid email admin'
      const answer = await createUserAgent().get(await user.asksAgain({ ...SERVER, scope }))
      const code = new URL(answer.location ?? '').searchParams.get('code')
      const record = code ? await h.provider.AuthorizationCode.find(code) : undefined
      expect(record?.scope ?? '').to.not.include('admin')
    })
  })

  describe('with a redirect URI that is not the client’s', () => {
    const near = [
      'https://evil.example/cb',
      'https://app.example/cb/',
      'https://app.example/cb?x=y',
      'https://APP.example/cb',
      'https://app.example@evil.example/cb',
      '//app.example/cb',
      'javascript:alert(1)',
      SERVER_URI,
      '',
    ]

    it('is neither signed nor mailed, and the link only verifies (SIG-16)', async () => {
      const strangers = ['nobody', '', 'APP', 'app ']
      await Promise.all([
        ...near.map((redirect_uri) => expectOnlyVerifies({ redirect_uri, state: 'x' })),
        ...strangers.map((client_id) => expectOnlyVerifies({ client_id })),
      ])
    })

    async function expectOnlyVerifies(evil: Record<string, string>) {
      const carried = { ...APP, ...evil }
      const user = await addUnverified(h)
      const link = await user.asksAgain(carried)
      expect(carriedIn(link), JSON.stringify(carried)).to.deep.equal({})
      const { mail } = await h.mail.mailTo(user.email ?? '')
      const body = `${mail.text}${String(mail.html)}`
      expect(/.{0,40}(evil\.|app\.example|javascript:).{0,40}/i.exec(body)?.[0]).to.equal(undefined)
      const agent = createUserAgent()
      await expectOnlyVerified(h, { user, agent }, await agent.get(link))
    }
  })
})

const HOUR_S = 3_600

/** What the page counts down. `undefined`: nothing. */
function secondsIn({ text }: Answer): number | undefined {
  const seconds = /data-seconds="(\d+)"/.exec(text)?.[1]
  return seconds === undefined ? undefined : Number(seconds)
}

describe('The countdown to the next mail (resend_cooldown)', () => {
  const h = suiteHarness({
    settings: { resend_cooldown: '1h' },
    flows: { trustedProxies: 1 },
  })

  before(async () => {
    await h.addUser({ username: 'known' })
  })

  const forms = {
    'forgot-password': (name: string) => ({ identifier: name }),
    'resend-verification': (name: string) => ({ username: name }),
  }

  const ask = (path: keyof typeof forms, name: string, from = '192.0.2.1') =>
    createUserAgent().post(`${h.oauthUrl}/${path}`, forms[path](name), { 'x-forwarded-for': from })

  /** The page after a repeated request: what is left of the hour, and no more. */
  function expectRest(answer: Answer) {
    expect(answer.mode).to.equal('sent')
    expect(secondsIn(answer)).to.be.within(1, HOUR_S)
  }

  for (const path of ['forgot-password', 'resend-verification'] as const) {
    it(`${path}: the whole of it after the first request, the same for known and unknown names`, async () => {
      const pages = [await ask(path, 'known'), await ask(path, 'nobody at all')]
      for (const page of pages) expect(secondsIn(page)).to.equal(HOUR_S)
      const [known, unknown] = pages.map(shapeOf)
      expect(known).to.deep.equal(unknown)
      for (const name of ['known', 'nobody at all']) expectRest(await ask(path, name))
      const asked = [...h.events].filter(({ reason }) => reason === 'unknown')
      expect(JSON.stringify(asked)).not.to.include('nobody')
    })

    it(`${path}: it tells nobody in another network that somebody asked`, async () => {
      const name = `private ${path}`
      expect(secondsIn(await ask(path, name, '192.0.2.7'))).to.equal(HOUR_S)
      await moveTime(1_100)
      expect(secondsIn(await ask(path, name, '192.0.2.7'))).to.be.within(1, HOUR_S - 1)
      for (const from of ['192.0.2.8', '2001:db8::1']) {
        expect(secondsIn(await ask(path, name, from))).to.equal(HOUR_S)
      }
    })
  }

  it('counts each kind of mail by itself, and names byte for byte', async () => {
    for (const path of ['forgot-password', 'resend-verification'] as const) {
      for (const name of ['one and the same', 'One and the same', 'one and the same ']) {
        expect(secondsIn(await ask(path, name)), `${path} ${name}`).to.equal(HOUR_S)
      }
    }
  })

  it('goes on where the blocked login began it', async () => {
    const login = await blockedLogin(h)
    const { user } = login
    expect(secondsIn(login.blocked)).to.equal(HOUR_S)
    expectRest(await ask('resend-verification', user.username))
    const window = windowOf(h, login)
    for (const answer of [await window.reload(), await window.goOn()]) {
      expect(answer.mode).to.equal('blocked')
      expect(secondsIn(answer)).to.be.within(1, HOUR_S)
    }
    const again = await h.signIn(createUserAgent(), user.username)
    expect(again.mode).to.equal('blocked')
    expect(secondsIn(again)).to.be.within(1, HOUR_S)
  })

  it('is no refusal: whoever has no link to use gets one', async () => {
    const user = await h.addUser({ username: 'again' })
    await h.forgot(user.username)
    const { link } = await h.mail.mailTo(user.email ?? '')
    expect((await h.reset(link, 'a new password')).mode).to.equal('done')
    expectRest(await h.forgot(user.username))
    const { link: newer } = await h.mail.mailTo(user.email ?? '', 2)
    expect(tokenOf(newer)).not.to.equal(tokenOf(link))
    expect((await h.reset(newer, 'another new password')).mode).to.equal('done')
  })

  it('shows nothing and counts nothing where it is 0s, as is the default', async () => {
    await h.put({ resend_cooldown: '0s' })
    const { user, blocked } = await blockedLogin(h)
    const pages = [
      blocked,
      await ask('resend-verification', user.username),
      await ask('forgot-password', 'free'),
      await ask('forgot-password', 'free'),
    ]
    for (const page of pages) expect(secondsIn(page)).to.equal(undefined)
    await h.mail.mailTo(user.email ?? '', 2)
    expect(user.mailCount()).to.equal(2)
    await h.put({ resend_cooldown: '1h' })
    expect(secondsIn(await ask('forgot-password', 'free'))).to.equal(HOUR_S)
  })
})
