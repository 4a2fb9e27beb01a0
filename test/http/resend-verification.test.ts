import { expect } from 'chai'
import { press } from '../support/page-forms.ts'
import { openElsewhere, windowOf } from '../support/waiting-window.ts'
import {
  addUnverified,
  addVerified,
  blockedLogin,
  type BlockedLogin,
  eventsOf,
  expectExpired,
  expectResumed,
  expectStillWorks,
  isVerified,
  mailsTo,
  resend,
} from '../support/blocked-login.ts'
import { CLIENT } from '../support/harness.ts'
import { jobs, later } from '../support/jobs.ts'
import { shapeOf } from '../support/observe.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { createUserAgent, type Form } from '../support/user-agent.ts'
import { expectTitle } from '../support/words.ts'

const CARRIED = {
  client_id: CLIENT.client_id,
  redirect_uri: CLIENT.redirect_uris[0],
  scope: 'openid',
  state: 'the state of the client',
}

// That answers and names tell nothing is in test/secrecy/same-work.test.ts and test/attacks/identity.test.ts.
describe('POST {oauth_path}/resend-verification (4.7)', () => {
  const anyone = createUserAgent()
  const harness = suiteHarness()
  let asked = 0

  const post = (form: Form, headers = {}) =>
    anyone.post(`${harness.oauthUrl}/resend-verification`, form, headers)

  /** Why each of these requests came to nothing, once a worker has looked at it. */
  async function reasonsFor(usernames: string[]) {
    asked += 1
    const userAgent = `browser number ${asked}`
    for (const username of usernames) {
      expect((await post({ username }, { 'user-agent': userAgent })).mode).to.equal('sent')
    }
    const matches = { type: 'email_verification_requested', userAgent } as const
    const events = await eventsOf(harness, matches, usernames.length)
    return events.map(({ reason }) => reason)
  }

  it('sends a mail to an unverified user, and to nobody else (VER-12)', async () => {
    const known = await addUnverified(harness)
    const verified = await addVerified(harness)
    const disabled = await addUnverified(harness, { disabled: true })
    const names = [verified.username, disabled.username, 'nobody']
    const reasons = await reasonsFor(names)
    expect(reasons).to.have.members(['already_verified', 'disabled', 'unknown'])
    await resend(harness, known)
    expect([verified, disabled].map((user) => mailsTo(harness, user))).to.deep.equal([0, 0])
  })

  it('names the stored address, whatever the form says besides', async () => {
    const user = await addUnverified(harness)
    await resend(harness, user, { email: 'evil@evil.example', to: 'evil@evil.example' })
    expect(harness.mail.mails.filter(({ to }) => String(to).includes('evil'))).to.deep.equal([])
  })

  it('sends a fresh link each time, and all of them live, the first as good as it was, until one is used', async () => {
    const login = await blockedLogin(harness)
    const { user, link: first } = login
    const links = [first, await resend(harness, user, CARRIED), await resend(harness, user)]
    const tokens = links.map((link) => new URL(link).searchParams.get('token'))
    expect(new Set(tokens).size).to.equal(3)
    for (const token of tokens) expect(token).to.match(/^[\w-]{43}$/)
    expect(await isVerified(harness, user)).to.equal(false)
    await expectStillWorks(harness, login)
    for (const link of links) expectExpired(await createUserAgent().get(link))

    const other = await blockedLogin(harness)
    const again = await resend(harness, other.user)
    expect((await createUserAgent().get(again)).mode).to.equal('verified')
    expectExpired(await createUserAgent().get(other.link))
  })

  it('works from the blocked page, whose form carries what the login began with', async () => {
    const login = await blockedLogin(harness)
    const { username } = login.user
    const { login: id, ...form } = login.blocked.hidden
    expect(id).to.match(/^[\w-]{22}$/)
    expect(form).to.deep.equal({
      username,
      client_id: CLIENT.client_id,
      redirect_uri: login.request.redirectUri,
      scope: 'openid email',
      state: login.request.state,
    })
    const link = await resend(harness, login.user, login.blocked.hidden)
    await expectStillWorks(harness, { ...login, link })
  })
})

describe('POST {oauth_path}/resend-verification from a page of ours', () => {
  const h = suiteHarness()

  const post = (form: Form) => createUserAgent().post(`${h.oauthUrl}/resend-verification`, form)
  const fieldsOf = (link: string) => Object.fromEntries(new URL(link).searchParams)

  async function expiredLogin(): Promise<BlockedLogin> {
    const login = await blockedLogin(h)
    await later(h, 24 * 3_600_000)
    return login
  }

  async function isNotRenewedAs(reason: string, form: Form, login: BlockedLogin) {
    const mails = h.mail.mails.length
    const known = await jobs(h)
    const answer = await post(form)
    expectExpired(answer)
    expectTitle(answer, `verify-email.expired.${reason}.title`)
    expect(known).to.include.members(await jobs(h))
    expect(h.mail.mails.length).to.equal(mails)
    expect(await isVerified(h, login.user)).to.equal(reason === 'used')
  }

  describe('in the place of an expired link (D17)', () => {
    it('sends a new one without a name being typed, and it finishes the login that waits', async () => {
      const login = await expiredLogin()
      const page = await createUserAgent().get(login.link)
      expectTitle(page, 'verify-email.expired.expired.title')
      expect(page.hidden).to.deep.equal(fieldsOf(login.link))
      const sent = await post(page.hidden)
      expect(shapeOf(sent)).to.deep.equal(shapeOf(await post({ username: 'nobody' })))
      const { link } = await h.mail.mailTo(login.user.email ?? '', 2)
      await expectResumed(h, { ...login, link }, await createUserAgent().get(link))
      await isNotRenewedAs('used', fieldsOf(login.link), login)
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
      expect(mailsTo(h, login.user)).to.equal(1)
      expect((await post(genuine)).mode).to.equal('sent')
      const { link } = await h.mail.mailTo(login.user.email ?? '', 2)
      await expectStillWorks(h, { ...login, link })
    })
  })

  describe('with the window that waits (D15)', () => {
    it('keeps it waiting, and that may lead to its client alone', async () => {
      const login = await blockedLogin(h)
      const window = windowOf(h, login)
      const sent = await press(login.agent, login.blocked, '/resend-verification')
      expect([sent.status, sent.mode]).to.deep.equal([200, 'sent'])
      expect(sent.hidden['login']).to.equal(window.id)
      expect(sent.headers.get('content-security-policy')).to.include("form-action 'self' https:;")
      expect(await window.status()).to.equal('waiting')
      const { link } = await h.mail.mailTo(login.user.email ?? '', 2)
      await openElsewhere({ ...login, link })
      expect(await window.status()).to.equal('verified')
      await expectResumed(h, login, await window.goOn())
    })

    it('is the same page whatever name was typed, and tells nothing without the cookie', async () => {
      const login = await blockedLogin(h)
      const id = login.blocked.hidden['login'] ?? ''
      const pages = []
      for (const username of [login.user.username, 'nobody', 'n'.repeat(300)]) {
        pages.push(shapeOf(await post({ username, login: id })))
      }
      expect(pages[1]).to.deep.equal(pages[0])
      expect(pages[2]).to.deep.equal(pages[0])
      expect(await windowOf(h, login).in(createUserAgent()).status()).to.equal('ended')
      await expectStillWorks(h, login)
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
