import { expect } from 'chai'
import type { User } from '../../src/index.ts'
import {
  addUnverified,
  addVerified,
  blockedLogin,
  changeUser,
  eventsOf,
  expectExpired,
  expectStillWorks,
  isVerified,
  mailsTo,
  resend,
} from '../support/blocked-login.ts'
import { onBothStores } from '../support/both-stores.ts'
import { CLIENT, startHarness, type Harness } from '../support/harness.ts'
import { createUserAgent, type Form } from '../support/user-agent.ts'

const CARRIED = {
  client_id: CLIENT.client_id,
  redirect_uri: CLIENT.redirect_uris[0],
  scope: 'openid',
  state: 'the state of the client',
}
const FORM_TYPE = 'application/x-www-form-urlencoded'

onBothStores('POST {oauth_path}/resend-verification (4.7)', (technology) => {
  const anyone = createUserAgent()
  let harness: Harness
  let url: string
  let asked = 0

  before(async () => {
    harness = await startHarness({ technology })
    url = `${harness.oauthUrl}/resend-verification`
  })
  after(() => harness.close())

  const post = (form: Form, headers = {}) => anyone.post(url, form, headers)

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

  it('shows the same success page for a known, unknown, verified and disabled user', async () => {
    const known = await addUnverified(harness)
    const verified = await addVerified(harness)
    const disabled = await addUnverified(harness, { disabled: true })
    const addressless = await addUnverified(harness, { email: undefined })
    const users = [known, verified, disabled, addressless].map(({ username }) => username)
    for (const carried of [{}, CARRIED, { ...CARRIED, redirect_uri: 'https://evil.example' }]) {
      const answers = []
      for (const username of [...users, 'nobody', 'n'.repeat(254), 'n'.repeat(5_000)]) {
        answers.push(await post({ username, ...carried }))
      }
      const seen = answers.map(({ status, text, headers }) => {
        const others = [...headers].filter(([name]) => name !== 'date')
        return JSON.stringify([status, text, others])
      })
      expect(new Set(seen).size).to.equal(1)
      const [first] = answers
      expect([first?.status, first?.page, first?.mode]).to.deep.equal([200, 'verify-email', 'sent'])
      expect(first?.headers.getSetCookie()).to.deep.equal([])
      expect(first?.text).to.not.match(/evil|app\.example/)
    }
    await harness.mail.mailTo(known.email ?? '', 3)
    for (const user of [verified, disabled]) expect(mailsTo(harness, user)).to.equal(0)
  })

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

  it('matches usernames only, and those to the byte', async () => {
    const verified = await addVerified(harness)
    const user = await addUnverified(harness)
    const { username, email = '' } = user
    const names = [
      email,
      verified.email ?? '',
      username.toUpperCase(),
      ` ${username}`,
      `${username} `,
      '*',
      '{"$ne":null}',
    ]
    const reasons = await reasonsFor(names)
    expect(reasons).to.deep.equal(names.map(() => 'unknown'))
    await resend(harness, user)
    expect(mailsTo(harness, user)).to.equal(1)
    expect(mailsTo(harness, verified)).to.equal(0)
  })

  it('names the stored address, whatever the form says besides', async () => {
    const user = await addUnverified(harness)
    await resend(harness, user, { email: 'evil@evil.example', to: 'evil@evil.example' })
    expect(harness.mail.mails.filter(({ to }) => String(to).includes('evil'))).to.deep.equal([])
  })

  it('sends a fresh link each time, and all of them live until one is used', async () => {
    const { user, link: first } = await blockedLogin(harness)
    const links = [first, await resend(harness, user), await resend(harness, user)]
    const tokens = links.map((link) => new URL(link).searchParams.get('token'))
    expect(new Set(tokens).size).to.equal(3)
    for (const token of tokens) expect(token).to.match(/^[\w-]{43}$/)
    expect(await isVerified(harness, user)).to.equal(false)
    const used = await createUserAgent().get(links[1] ?? '')
    expect([used.status, used.mode]).to.deep.equal([200, 'verified'])
    for (const link of links) expectExpired(await createUserAgent().get(link))
  })

  it('leaves the first link as good as it was', async () => {
    const login = await blockedLogin(harness)
    await resend(harness, login.user, CARRIED)
    await resend(harness, login.user)
    await expectStillWorks(harness, login)
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

  it('sends nothing once the account was verified or disabled before the mail left', async () => {
    for (const [changes, reason] of [
      [{ emailVerified: true }, 'already_verified'],
      [{ disabled: true }, 'disabled'],
    ] as const) {
      const user = await addUnverified(harness)
      await changeUser(harness, user, changes)
      expect(await reasonsFor([user.username])).to.deep.equal([reason])
      expect(mailsTo(harness, user)).to.equal(0)
    }
  })

  describe('with bad input', () => {
    let user: User

    beforeEach(async () => {
      user = await addUnverified(harness)
    })

    async function expectRefused(form: Form, status: number, headers = {}) {
      const answer = await post(form, headers)
      expect([answer.status, answer.page], JSON.stringify(form).slice(0, 80)).to.deep.equal([
        status,
        'error',
      ])
      expect(answer.headers.getSetCookie()).to.deep.equal([])
    }

    async function expectNoMailYetOneAfterwards() {
      await resend(harness, user)
      expect(mailsTo(harness, user)).to.equal(1)
    }

    it('refuses a missing, empty or repeated username', async () => {
      const { username } = user
      await expectRefused('', 400)
      await expectRefused({ client_id: 'app' }, 400)
      await expectRefused({ username: '' }, 400)
      await expectRefused(`username=${username}&username=${username}`, 400)
      await expectRefused(`username=${username}&username=nobody`, 400)
      await expectRefused(`username[]=${username}`, 400)
      await expectRefused(`username[$ne]=x`, 400)
      await expectRefused(`username=${username}%ff`, 400)
      await expectNoMailYetOneAfterwards()
    })

    it('refuses any other repeated field', async () => {
      const { username } = user
      await expectRefused(`username=${username}&state=a&state=b`, 400)
      await expectRefused(`username=${username}&redirect_uri=a&redirect_uri=b`, 400)
      await expectNoMailYetOneAfterwards()
    })

    it('refuses JSON, text and multipart bodies', async () => {
      const json = JSON.stringify({ username: user.username })
      await expectRefused(json, 415, { 'content-type': 'application/json' })
      await expectRefused(`username=${user.username}`, 415, { 'content-type': 'text/plain' })
      const multipart = 'multipart/form-data; boundary=x'
      const part = `--x\r\ncontent-disposition: form-data; name="username"\r\n\r\n${user.username}\r\n--x--`
      await expectRefused(part, 415, { 'content-type': multipart })
      await expectNoMailYetOneAfterwards()
    })

    it('refuses a body of more than 64 KiB, and takes one of exactly that', async () => {
      const start = `username=${user.username}&padding=`
      await expectRefused(start.padEnd(65_537, 'x'), 413)
      expect(mailsTo(harness, user)).to.equal(0)
      expect((await post(start.padEnd(65_536, 'x'))).mode).to.equal('sent')
      await harness.mail.mailTo(user.email ?? '')
    })

    it('refuses a form posted by another site', async () => {
      const form = { username: user.username }
      await expectRefused(form, 403, { 'sec-fetch-site': 'cross-site' })
      await expectRefused(form, 403, { 'sec-fetch-site': 'same-site' })
      await expectRefused(form, 403, { origin: 'https://evil.example' })
      await expectRefused(form, 403, { origin: 'null' })
      await expectRefused(form, 403, { origin: harness.baseUrl, 'sec-fetch-site': 'cross-site' })
      await expectNoMailYetOneAfterwards()
    })

    it('answers no other method', async () => {
      for (const method of ['GET', 'HEAD', 'PUT', 'DELETE']) {
        const answer = await anyone.request(method, `${url}?username=${user.username}`)
        expect([answer.status, answer.headers.get('allow')]).to.deep.equal([405, 'POST'])
      }
      await expectNoMailYetOneAfterwards()
    })

    it('takes a form with a charset, and one of our own pages', async () => {
      const form = { username: user.username }
      const own = { origin: 'null', 'sec-fetch-site': 'same-origin' }
      expect((await post(form, own)).mode).to.equal('sent')
      const typed = { 'content-type': `${FORM_TYPE}; charset=utf-8`, origin: harness.baseUrl }
      expect((await post(form, typed)).mode).to.equal('sent')
      await harness.mail.mailTo(user.email ?? '', 2)
    })
  })
})
