import { expect } from 'chai'
import { authorizationCodeGrant } from 'openid-client'
import { CONFIDENTIAL, suiteHarness } from '../support/harness.ts'
import { APP, partyOf, SERVER } from '../support/clients.ts'
import { jobs } from '../support/jobs.ts'
import { shapeOf } from '../support/observe.ts'
import {
  formsOf,
  withoutId,
  createUserAgent,
  type Answer,
  type Form,
} from '../support/user-agent.ts'
import { eventsLike, expectExpired, expectMode, tokenOf, type Person } from '../support/person.ts'
import { expectTitle } from '../support/words.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

// That answers and names tell nothing is in test/secrecy/same-work.test.ts and test/attacks/identity.test.ts.
describe('POST {oauth_path}/resend-verification (4.7)', () => {
  const anyone = createUserAgent()
  const h = suiteHarness()

  const post = (form: Form, headers = {}) =>
    anyone.post(`${h.oauthUrl}/resend-verification`, form, headers)

  it('sends a mail to an unverified user, to the stored address whatever the form says besides, and to nobody else (VER-12)', async () => {
    const known = await h.addUnverified()
    const verified = await h.addVerified()
    const disabled = await h.addUnverified({ disabled: true })
    const userAgent = 'a browser of its own'
    for (const username of [verified.username, disabled.username, 'nobody'])
      expect((await post({ username }, { 'user-agent': userAgent })).mode).to.equal('sent')
    const events = await eventsLike(h, { type: 'email_verification_requested', userAgent }, 3)
    const reasons = events.map(({ reason }) => reason)
    expect(reasons).to.have.members(['already_verified', 'disabled', 'unknown'])
    await known.asksAgain({ email: 'evil@evil.example', to: 'evil@evil.example' })
    expect([verified, disabled].map((user) => user.mailCount())).to.deep.equal([0, 0])
    expect(h.mail.mails.filter(({ to }) => String(to).includes('evil'))).to.deep.equal([])
  })

  it('sends a fresh link each time, and all of them live, the first as good as it was, until one is used (VER-06)', async () => {
    const login = await h.blockedLogin()
    const first = login.link
    const second = await login.asksAgain({ ...APP, state: 'the state of the client' })
    const links = [first, second, await login.asksAgain()]
    expect(new Set(links.map(tokenOf)).size).to.equal(3)
    for (const link of links) expect(tokenOf(link)).to.match(/^[\w-]{43}$/)
    expect(await login.isVerified()).to.equal(false)
    login.link = first
    await login.stillGetsIn()
    for (const link of links) expectExpired(await login.opensElsewhere(link))

    const other = await h.blockedLogin()
    const again = await other.in().asksAgain()
    expect((await other.opensElsewhere(again)).mode).to.equal('verified')
    expectExpired(await other.opensElsewhere())
  })

  const fieldsOf = (link: string) => Object.fromEntries(new URL(link).searchParams)

  async function expiredLogin(): Promise<Person> {
    const login = await h.blockedLogin()
    await h.later(DAY_MS)
    return login
  }

  /** The newest link, which an answer of this kind sent, finishes the login that waits. */
  async function expectSentLinkWorks(login: Person, sent: Answer) {
    expectMode(sent, 200, 'sent')
    login.link = (await login.mail(2)).link
    await login.comesBack(await login.opensElsewhere())
  }

  async function isNotRenewedAs(reason: string, form: Form, login: Person) {
    await h.withoutJobs(async () => {
      const answer = await post(form)
      expectExpired(answer)
      expectTitle(answer, `verify-email.expired.${reason}.title`)
    })
    expect(await login.isVerified()).to.equal(reason === 'used')
  }

  it('in the place of an expired link sends a new one without a name being typed, and it finishes the login that waits (TOK-06, ENU-09)', async () => {
    const login = await expiredLogin()
    const page = await login.opensElsewhere()
    expectTitle(page, 'verify-email.expired.expired.title')
    expect(page.text).to.not.include(login.username)
    expect(withoutId(page.hidden)).to.deep.equal({ ...fieldsOf(login.link), ui_locales: 'en' })
    const { link: first } = login
    const sent = await post(page.hidden)
    await expectSentLinkWorks(login, sent)
    await isNotRenewedAs('used', fieldsOf(first), login)
    const alike = await expiredLogin()
    const sentAlike = await post({ ...fieldsOf(alike.link), ui_locales: 'en' })
    expect(shapeOf(sentAlike)).to.deep.equal(shapeOf(sent))
    await alike.mail(2)
  })

  it('in the place of an expired link sends none for what is not genuine in every character, and the link still does its work', async () => {
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
    await expectSentLinkWorks(login, await post(genuine))
  })

  it('with the page that waits asks again for a name where none was typed, keeps all that the form carried, and waits on', async () => {
    const login = await h.blockedLogin()
    const { username = '', ...fields } = login.blocked.hidden
    const parameters: Record<string, string> = { ...fields, ui_locales: 'de en' }
    const known = await jobs(h)
    for (const form of [
      { ...parameters, username: '' },
      { ...parameters, username: ' \t' },
      parameters,
    ]) {
      const page = await post(form)
      expectMode(page, 400, 'invalid')
      expect(page.text).to.include('Geben Sie Ihren Benutzernamen ein.')
      expect(page.headers.get('content-security-policy')).to.include("form-action 'self' https:;")
      const asked = formsOf(page).find(({ action }) => action.endsWith('/resend-verification'))
      const expected = { ...withoutId(parameters), username: '' }
      expect(withoutId(asked?.fields ?? {})).to.deep.equal(expected)
    }
    expect(known).to.include.members(await jobs(h))
    login.page = await post(parameters)
    const sent = await login.presses('/resend-verification', { typed: { username } })
    expect(sent.hidden['login']).to.equal(login.loginId())
    await expectSentLinkWorks(login, sent)
  })

  it('with the page that waits is the same whatever name was typed, and tells nothing without the cookie', async () => {
    const login = await h.blockedLogin()
    const pageFor = async (username: string) =>
      shapeOf(await post({ username, login: login.loginId() }))
    const page = await pageFor(login.username)
    for (const username of ['nobody', 'n'.repeat(300)])
      expect(await pageFor(username)).to.deep.equal(page)
    expectMode(await login.in().reloads(), 400, 'ended')
    await login.stillGetsIn()
  })

  it('asks for a name in the place of an unknown link, carries nothing that was not sent, ignores what is no id, and leads to no address that is not genuine', async () => {
    const page = await post({ username: '' })
    expect([page.status, page.mode, withoutId(page.hidden)]).to.deep.equal([400, 'invalid', {}])
    const username = 'nobody'
    const plain = shapeOf(await post({ username }))
    const short = 'a'.repeat(21)
    for (const login of ['', 'x', short, `${short}aa`, `${short}"`, '../..']) {
      expect(shapeOf(await post({ username, login }))).to.deep.equal(plain)
    }
    const { headers } = await post({
      username,
      login: 'a'.repeat(22),
      client_id: APP.client_id,
      redirect_uri: 'https://evil.example/cb',
    })
    expect(headers.get('content-security-policy')).to.include("form-action 'self';")
  })
})

describe('A link of POST {oauth_path}/resend-verification (4.7)', () => {
  const h = suiteHarness()

  it('while a login waits finishes the one of the same client, redirect URI and state, and the newest of several that are alike', async () => {
    const first = await h.blockedLogin()
    const second = await h.blockedLogin({ user: first })
    await first.asksAgain({ ...APP, state: first.request.state })
    await first.comesBack(await first.opensElsewhere())
    expectExpired(await second.opensElsewhere())
    const extra = { state: 'always the same' }
    const user = await h.blockedLogin({ extra })
    const newest = await h.blockedLogin({ user, extra })
    await newest.asksAgain({ ...APP, ...extra })
    await newest.stillGetsIn()
  })

  it('while a login waits finishes none of another state, absent and empty being two, nor of another user', async () => {
    const login = await h.blockedLogin()
    const { state } = login.request
    for (const [user, parameters] of [
      [await h.addUnverified(), { state }],
      [await h.blockedLogin(), { state: `${state}x` }],
      [await h.blockedLogin(), { state: '' }],
      [await h.blockedLogin(), {}],
    ] as const) {
      await user.asksAgain({ ...APP, ...parameters })
      const { location = '' } = await user.opensLink()
      const { searchParams } = new URL(location)
      expect(searchParams.has('code')).to.equal(false)
      expect(searchParams.get('error')).to.equal('invalid_request')
    }
    expect(await login.isVerified()).to.equal(false)
    await login.stillGetsIn()
  })

  it('while no login waits ends in an OAuth error at the redirect URI of a client that needs PKCE, and signs in (RED-06)', async () => {
    const user = await h.addUnverified()
    await user.asksAgain({ ...APP, state: 'a b&c' })
    const { status, location = '' } = await user.opensLink()
    const { origin, pathname, searchParams } = new URL(location)
    expect([status, origin + pathname]).to.deep.equal([302, APP.redirect_uri])
    const { error_description, ...told } = Object.fromEntries(searchParams)
    const iss = h.oauthUrl
    expect(told).to.deep.equal({ error: 'invalid_request', state: 'a b&c', iss })
    expect(error_description).to.match(/PKCE/)
    expect(await user.isVerified()).to.equal(true)
    expect(await user.account()).to.equal(user.id)
  })

  it('while no login waits gives a client that needs no PKCE its code', async () => {
    const user = await h.addUnverified()
    await user.asksAgain({ ...SERVER, state: 'its state' })
    const { location = '' } = await user.opensLink()
    const party = await partyOf(h, CONFIDENTIAL)
    const back = new URL(location)
    expect(back.searchParams.get('iss')).to.equal(h.oauthUrl)
    const checks = { expectedState: 'its state' }
    const tokens = await authorizationCodeGrant(party.config, back, checks)
    expect(tokens.claims()?.sub).to.equal(user.id)
    const session = await h.sessionOf(user.agent)
    expect(session?.amr).to.deep.equal(['email'])
    expect((session?.exp ?? 0) - Date.now() / 1000).to.be.greaterThan(3600)
    expect(await user.account()).to.equal(user.id)
    expectExpired(await user.opensLink())
  })

  it('while no login waits only verifies without a client and its redirect URI: no session and no code', async () => {
    const unknown = ['nobody', '', 'APP', 'app '].map((client_id) => ({ ...APP, client_id }))
    const incomplete = [{}, { state: 'x', scope: 'openid' }, { client_id: 'app' }]
    for (const parameters of [...incomplete, ...unknown]) {
      const user = await h.addUnverified()
      const { searchParams } = new URL(await user.asksAgain(parameters))
      expect([...searchParams.keys()]).to.deep.equal(['token', 'authorize_sig'])
      await user.isOnlyVerified(await user.opensLink())
    }
  })

  it('while no login waits never asks for a scope that the client may not have (RED-11)', async () => {
    const user = await h.addUnverified()
    await user.asksAgain({ ...SERVER, scope: 'openid email admin' })
    const { location = '' } = await user.opensLink()
    const code = new URL(location).searchParams.get('code') ?? ''
    const record = await h.provider.AuthorizationCode.find(code)
    expect(record?.scope ?? '').to.not.include('admin')
  })
})
