import { expect } from 'chai'
import {
  addUnverified,
  addVerified,
  blockedLogin,
  eventsOf,
  expectExpired,
  expectStillWorks,
  isVerified,
  mailsTo,
  resend,
} from '../support/blocked-login.ts'
import { CLIENT } from '../support/harness.ts'
import { isIdle } from '../support/jobs.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { createUserAgent, type Form } from '../support/user-agent.ts'

const CARRIED = {
  client_id: CLIENT.client_id,
  redirect_uri: CLIENT.redirect_uris[0],
  scope: 'openid',
  state: 'the state of the client',
}
const FORM_TYPE = 'application/x-www-form-urlencoded'

describe('POST {oauth_path}/resend-verification (4.7)', () => {
  const anyone = createUserAgent()
  const harness = suiteHarness()
  let url: string
  let asked = 0

  before(async () => {
    url = `${harness.oauthUrl}/resend-verification`
  })

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

  it('refuses what is not one username, is too long, or comes from another site, and mails nobody', async () => {
    const user = await addUnverified(harness)
    const { username } = user
    const refused: [status: number, form: Form, headers?: Record<string, string>][] = [
      [400, ''],
      [400, { client_id: 'app' }],
      [400, { username: '' }],
      [400, `username=${username}&username=nobody`],
      [400, `username=${username}&state=a&state=b`],
      [400, `username[]=${username}`],
      [400, `username=${username}%ff`],
      [413, `username=${username}&padding=`.padEnd(65_537, 'x')],
      [415, JSON.stringify({ username }), { 'content-type': 'application/json' }],
      [403, { username }, { 'sec-fetch-site': 'cross-site' }],
      [403, { username }, { origin: 'https://evil.example' }],
    ]
    for (const [status, form, headers] of refused) {
      const answer = await post(form, headers)
      const which = JSON.stringify(form).slice(0, 80)
      expect([answer.status, answer.page], which).to.deep.equal([status, 'error'])
      expect(answer.headers.getSetCookie()).to.deep.equal([])
    }
    await resend(harness, user)
    expect(mailsTo(harness, user)).to.equal(1)
  })

  it('takes a form of 64 KiB, one with a charset, and one of our own pages', async () => {
    const user = await addUnverified(harness)
    const form = `username=${user.username}&padding=`
    const typed = { 'content-type': `${FORM_TYPE}; charset=utf-8`, origin: harness.baseUrl }
    for (const [body, headers] of [
      [form.padEnd(65_536, 'x'), {}],
      [form, { origin: 'null', 'sec-fetch-site': 'same-origin' }],
      [form, typed],
    ] as const) {
      expect((await post(body, headers)).mode).to.equal('sent')
      await isIdle(harness)
    }
    expect(mailsTo(harness, user)).to.equal(3)
  })
})
