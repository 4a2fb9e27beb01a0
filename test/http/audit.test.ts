import { expect } from 'chai'
import type { AuditEvent } from '../../src/index.ts'
import { onBothStores } from '../support/both-stores.ts'
import { eventually } from '../support/eventually.ts'
import { CLIENT } from '../support/harness.ts'
import { isIdle, later } from '../support/jobs.ts'
import { dump, eventsOf } from '../support/observe.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { createUserAgent } from '../support/user-agent.ts'
import { tokenOf, type Person } from '../support/person.ts'

const USER_AGENT = 'A Browser/1.0'

describe('The audit log (6)', () => {
  const h = suiteHarness()
  let added = 0

  const newUser = (changes = {}) => h.addUser({ username: `user-${(added += 1)}`, ...changes })
  const client = () => createUserAgent()
  const headers = { 'user-agent': USER_AGENT }
  const post = (path: string, form: Record<string, string>) =>
    client().post(`${h.oauthUrl}${path}`, form, headers)
  const resetBy = (link: string, password = 'a new password') =>
    post('/reset-password', { token: tokenOf(link), password, confirm_password: password })
  const who = { address: '127.0.0.1', userAgent: USER_AGENT }
  const about = (event: AuditEvent | undefined) => ({
    address: event?.address,
    userAgent: event?.userAgent,
  })

  it('tells of a reset: requested, mailed and completed, each with who asked and for which client (LOG-06)', async () => {
    const user = await newUser()
    const carried = { client_id: CLIENT.client_id, redirect_uri: CLIENT.redirect_uris[0] }
    await post('/forgot-password', { identifier: user.username, ...carried })
    const { link } = await h.mail.mailTo(user.email ?? '')
    expect((await resetBy(link)).mode).to.equal('done')
    for (const type of [
      'password_reset_requested',
      'password_reset_mail_sent',
      'password_reset_completed',
    ] as const) {
      const [event, another] = user.events(type)
      expect(about(event), type).to.deep.equal(who)
      expect(event?.clientId, type).to.equal(CLIENT.client_id)
      expect(event?.at, type).to.be.instanceOf(Date)
      expect(another, type).to.equal(undefined)
    }
  })

  describe('tells why a genuine reset link was refused', () => {
    const ends: Record<string, (user: Person, link: string) => Promise<unknown>> = {
      used: (_user, link) => resetBy(link),
      invalidated: (user) => user.forgets(),
      expired: () => later(h, 3_600_000),
      account_changed: (user) => user.becomes({ email: `new-${user.email}` }),
    }
    for (const [reason, end] of Object.entries(ends)) {
      it(`because: ${reason}`, async () => {
        const user = await newUser()
        const link = await user.forgets()
        await end(user, link)
        expect((await resetBy(link, 'another password')).mode).to.equal('invalid')
        const [event, another] = user.events('password_reset_rejected')
        expect(event).to.include({ reason, ...who })
        expect(another).to.equal(undefined)
      })
    }
  })

  it('tells nothing of a token that nobody was ever given', async () => {
    await isIdle(h)
    const before = h.events.length
    for (const token of ['A'.repeat(43), 'short', '']) {
      expect((await resetBy(`${h.oauthUrl}/reset-password?token=${token}`)).status).to.equal(400)
    }
    await client().get(`${h.oauthUrl}/verify-email?token=${'A'.repeat(43)}&authorize_sig=x`)
    expect(h.events.slice(before)).to.deep.equal([])
  })

  it('tells of a login that was blocked, and of its verification', async () => {
    const user = await newUser({ emailVerified: false })
    const agent = client()
    const { url } = await h.party.begin()
    expect((await h.login(agent, url, user.username)).mode).to.equal('blocked')
    const { link } = await h.mail.mailTo(user.email ?? '')
    expect((await agent.get(link, headers)).status).to.equal(302)
    expect((await agent.get(link, headers)).status).to.be.oneOf([200, 400])
    const types = [
      'email_verification_requested',
      'email_login_blocked',
      'email_verification_mail_sent',
      'email_verification_completed',
    ] as const
    for (const type of types) expect(user.events(type), type).to.have.length(1)
    expect(about(user.events('email_verification_completed')[0])).to.deep.equal(who)
    const [rejected] = user.events('email_verification_rejected')
    expect(rejected).to.include({ reason: 'already_verified', clientId: CLIENT.client_id, ...who })
  })

  it('tells by one name why a verification link was refused, whether it is opened or asks for a new one', async () => {
    const user = await newUser({ emailVerified: false })
    const { url } = await h.party.begin()
    await h.login(client(), url, user.username)
    const { link } = await h.mail.mailTo(user.email ?? '')
    await user.becomes({ email: `new-${user.email}` })
    await post('/resend-verification', Object.fromEntries(new URL(link).searchParams))
    const [event] = user.events('email_verification_rejected')
    expect(event).to.include({ reason: 'account_changed', clientId: CLIENT.client_id, ...who })
    await client().get(link, headers)
    for (const { reason } of user.events('email_verification_rejected'))
      expect(reason).to.equal('account_changed')
  })

  it('tells once an hour that a verification link was refused, however often it is opened', async () => {
    const users = [await newUser({ emailVerified: false }), await newUser({ emailVerified: false })]
    for (const user of users) {
      const agent = client()
      const { url } = await h.party.begin()
      await h.login(agent, url, user.username)
      const { link } = await h.mail.mailTo(user.email ?? '')
      await agent.get(link)
      const refused = await Promise.all(Array.from({ length: 20 }, () => client().get(link)))
      for (const { status } of refused) expect(status).to.equal(400)
    }
    // At most two: an hour may have passed.
    for (const user of users) {
      expect(user.events('email_verification_rejected').length).to.be.within(1, 2)
    }
  })
})

onBothStores('What the audit log holds', (technology) => {
  const h = suiteHarness({ technology })

  it('keeps a hash of what a stranger typed, and no token (LOG-07)', async () => {
    const user = await h.addUser({ username: 'ann' })
    await h.forgot('a-stranger@nowhere.example')
    const event = await eventually('the event', () =>
      eventsOf(h, 'password_reset_requested').find(({ reason }) => reason === 'unknown'),
    )
    expect(event.details?.identifier_hash).to.match(/^[\w-]{20,}$/)
    const link = await user.forgets()
    await h.reset(link, 'a new password')
    const stored = await dump(h)
    expect(stored).not.to.include('a-stranger@nowhere')
    expect(stored).not.to.include(tokenOf(link))
    expect(stored).to.include(user.id)
  })
})
