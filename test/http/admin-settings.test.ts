import { expect } from 'chai'
import { settingsOf } from '../support/admin-requests.ts'
import { onBothStores } from '../support/both-stores.ts'
import { eventually } from '../support/eventually.ts'
import { ADMIN_TOKEN, startHarness, type Harness } from '../support/harness.ts'
import { eventsOf, tokenOf, usableRecord } from '../support/observe.ts'
import { createUserAgent } from '../support/user-agent.ts'

const CANARY = 'S3cr3t canary / of the "SMTP" password'
const bearer = { authorization: `Bearer ${ADMIN_TOKEN}` }

onBothStores('PUT {base_url}/admin/api/settings (4.5)', (technology) => {
  const agent = createUserAgent()
  let h: Harness
  let url: string

  before(async () => {
    h = await startHarness({ technology })
    url = `${h.baseUrl}/admin/api/settings`
  })

  after(() => h.close())

  const get = () => settingsOf(h).get()
  const put = (body: Record<string, string>) => settingsOf(h).put({ body })

  describe('answers with the settings in force (D27)', () => {
    it('by their names, as strings, with the defaults of section 2.5', async () => {
      const response = await get()
      expect(response.status).to.equal(200)
      expect(response.headers.get('content-type')).to.match(/^application\/json/)
      expect(response.headers.get('cache-control')).to.equal('no-store')
      const settings: Record<string, unknown> = await response.json()
      expect(settings).to.include({
        password_reset_expiration: '1h',
        require_email_verification: 'true',
        email_verification_expiration: '24h',
        smtp_host: '127.0.0.1',
        smtp_port: String(h.mail.port),
        smtp_from: 'accounts@idp.example',
        smtp_tls: 'auto',
        password_changed_email: 'false',
        reset_requires_verified_email: 'false',
        requests_per_ip_per_minute: '60',
        mails_per_account_per_hour: '1000',
        resend_cooldown: '0s',
        mails_per_minute: '600',
        validation_min_password_length: '8',
        validation_max_password_length: '64',
      })
      expect(settings).not.to.have.any.keys('smtp_username', 'smtp_password', 'version')
      for (const value of Object.values(settings)) expect(value).to.be.a('string')
    })

    it('and to HEAD alike, without them', async () => {
      const response = await fetch(url, { method: 'HEAD', headers: bearer })
      expect([response.status, await response.text()]).to.deep.equal([200, ''])
    })

    it('changing nothing for an empty object, and saying what SMTP lacks', async () => {
      const before = await h.store.settings.read()
      expect((await put({})).status).to.equal(200)
      expect(await h.store.settings.read()).to.deep.equal(before)
      const response = await put({ smtp_from: '' })
      expect(JSON.stringify(await response.json())).to.include('SMTP is not configured')
      await h.put({ smtp_from: 'accounts@idp.example' })
    })

    it('and records the keys of what changed, never a secret (D33, SET-16)', async () => {
      const before = eventsOf(h, 'settings_changed').length
      await h.put({ smtp_password: CANARY, smtp_port: String(h.mail.port), smtp_username: 'm' })
      const events = eventsOf(h, 'settings_changed').slice(before)
      expect(events).to.have.length(1)
      expect(events[0]?.details?.['keys']).to.have.members(['smtp_password', 'smtp_username'])
      expect(JSON.stringify(h.events)).not.to.include('canary')
      await h.put({ smtp_password: '', smtp_username: '' })
    })
  })

  describe('takes effect at once', () => {
    it('password_reset_expiration, for links mailed from now on', async () => {
      const user = await h.addUser({ username: 'lifetimes' })
      for (const [value, ms] of [
        ['2h', 7_200_000],
        ['90s', 90_000],
      ] as const) {
        await h.put({ password_reset_expiration: value })
        const record = await usableRecord(h, await h.resetLink(user))
        expect(Number(record?.expiresAt) - Number(record?.createdAt)).to.equal(ms)
      }
    })

    it('and leaves the lifetime of the other kind of link as it is (TOK-10)', async () => {
      const user = await h.addUser({ username: 'other-kind', emailVerified: false })
      await h.put({ password_reset_expiration: '1s', email_verification_expiration: '2h' })
      await agent.post(`${h.oauthUrl}/resend-verification`, { username: user.username })
      const { link } = await h.mail.mailTo(user.email ?? '')
      const reset = await h.resetLink(user)
      await eventually(
        'the reset link expires',
        async () => (await agent.get(reset)).status === 400,
      )
      expect((await agent.get(link)).mode).to.equal('verified')
      expect(tokenOf(link)).to.have.length(43)
    })

    it('require_email_verification: "true" blocks, "false" really does not (SET-04)', async () => {
      await h.addUser({ username: 'unverified', emailVerified: false })
      for (const value of ['true', 'false', 'true']) {
        await h.put({ require_email_verification: value })
        const answer = await h.signIn(createUserAgent(), 'unverified')
        if (value === 'true')
          expect([answer.page, answer.mode]).to.deep.equal(['verify-email', 'blocked'])
        else expect(answer.location).to.match(/^https:\/\/app\.example\/cb\?code=/)
      }
    })

    it('validation_min_password_length, for links mailed before too', async () => {
      await h.put({ password_reset_expiration: '1h', validation_min_password_length: '12' })
      const user = await h.addUser({ username: 'lengths' })
      const link = await h.resetLink(user)
      expect((await h.reset(link, 'a'.repeat(11))).mode).to.equal('password_too_short')
      await h.put({ validation_min_password_length: '11' })
      expect((await h.reset(link, 'a'.repeat(11))).mode).to.equal('done')
      await h.put({ validation_min_password_length: '8' })
    })
  })
})
