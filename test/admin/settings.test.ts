import { expect } from 'chai'
import type { Clock } from '../../src/clock.ts'
import { bearer, settingsOf } from '../support/admin-requests.ts'
import { onBothStores } from '../support/both-stores.ts'
import { eventually } from '../support/eventually.ts'
import { PASSWORD } from '../support/harness.ts'
import { describeWithMongo, freshDatabase } from '../support/mongod.ts'
import { eventsOf, usableRecord } from '../support/observe.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { movableClock } from '../support/time.ts'
import { createUserAgent } from '../support/user-agent.ts'

describe('PUT {base_url}/admin/api/settings (4.5)', () => {
  const h = suiteHarness()
  const { get, put } = settingsOf(h)

  describe('answers with the settings in force', () => {
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
        audit_retention: '400d',
        smtp_host: '127.0.0.1',
        smtp_port: String(h.mail.port),
        smtp_from: 'accounts@idp.example',
        smtp_tls: 'auto',
        password_changed_email: 'false',
        reset_requires_verified_email: 'false',
        reset_verifies_email: 'false',
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
      const url = `${h.baseUrl}/admin/api/settings`
      const response = await fetch(url, { method: 'HEAD', headers: bearer })
      expect([response.status, await response.text()]).to.deep.equal([200, ''])
    })

    it('changing nothing for an empty object, and saying what SMTP lacks', async () => {
      const before = await h.store.settings.read()
      expect((await put({ body: {} })).status).to.equal(200)
      expect(await h.store.settings.read()).to.deep.equal(before)
      const response = await put({ body: { smtp_from: '' } })
      expect(JSON.stringify(await response.json())).to.include('SMTP is not configured')
      await h.put({ smtp_from: 'accounts@idp.example' })
    })

    it('and records the keys of what changed, never a secret (SET-16)', async () => {
      const before = eventsOf(h, 'settings_changed').length
      const smtp_password = 'S3cr3t canary'
      await h.put({ smtp_password, smtp_port: String(h.mail.port), smtp_username: 'm' })
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
      await h.put({ password_reset_expiration: '1h' })
    })

    it('require_email_verification: "true" blocks, "false" really does not (SET-04)', async () => {
      await h.addUser({ username: 'unverified', emailVerified: false })
      for (const value of ['true', 'false', 'true']) {
        await h.put({ require_email_verification: value })
        const { page, mode, location } = await h.signIn(createUserAgent(), 'unverified')
        if (value === 'true') expect([page, mode]).to.deep.equal(['verify-email', 'blocked'])
        else expect(location).to.match(/^https:\/\/app\.example\/cb\?code=/)
      }
    })

    it('validation_min_password_length, for links mailed before too', async () => {
      await h.put({ validation_min_password_length: '12' })
      const link = await h.resetLink(await h.addUser({ username: 'lengths' }))
      expect((await h.reset(link, 'a'.repeat(11))).mode).to.equal('password_too_short')
      await h.put({ validation_min_password_length: '11' })
      expect((await h.reset(link, 'a'.repeat(11))).mode).to.equal('done')
      await h.put({ validation_min_password_length: '8' })
    })
  })
})

onBothStores('Several changes of settings at the same time', (technology) => {
  const h = suiteHarness({ technology })
  const { shown, put } = settingsOf(h)

  it('are all applied, where they are to different settings: none is lost (SET-14)', async () => {
    for (let round = 1; round <= 5; round += 1) {
      const changes = {
        password_reset_expiration: `${round}h`,
        email_verification_expiration: `${round + 10}h`,
        smtp_username: `name ${round}`,
        smtp_password: `password ${round}`,
        validation_max_password_length: String(64 + round),
      }
      const each = Object.entries(changes).map(([key, value]) => put({ body: { [key]: value } }))
      for (const { status } of await Promise.all(each)) expect(status).to.equal(200)
      expect(await shown()).to.include({ ...changes, smtp_password: '***' })
    }
  })

  it('to a minimum and a maximum that exclude each other: one of them is refused', async () => {
    await h.put({ validation_min_password_length: '8', validation_max_password_length: '64' })
    const answers = await Promise.all([
      put({ body: { validation_min_password_length: '40' } }),
      put({ body: { validation_max_password_length: '20' } }),
    ])
    expect(answers.map(({ status }) => status)).to.have.members([200, 400])
    const settings = await shown()
    const { validation_min_password_length: min, validation_max_password_length: max } = settings
    expect(Number(min)).to.be.at.most(Number(max))
  })
})

/** What follows the settings looks at its start, and then not for an hour: all else is for the requests. */
const following: Clock = {
  ...movableClock,
  sleep: (ms, options) => movableClock.sleep(options?.ref === false ? 3_600_000 : ms, options),
}

describeWithMongo('Settings are held in memory and followed, so that [full]', () => {
  let commands: string[] = []
  const h = suiteHarness(async () => ({
    database: await freshDatabase('standalone', ({ commandName, command }) => {
      commands.push(`${commandName} ${command[commandName]}`)
    }),
    flows: { clock: following },
  }))

  before(async () => {
    // Workers ask the database by themselves.
    await h.flows.stop({ withinMs: 2_000 })
    commands = []
    await h.flows.start({ workers: false })
    await eventually('it has followed the settings once', () => ofSettings().length >= 2)
  })

  beforeEach(() => {
    commands = []
  })

  const ofSettings = () => commands.filter((command) => command.endsWith(' settings'))

  it('GET settings costs one command', async () => {
    const { get } = settingsOf(h)
    expect((await get()).status).to.equal(200)
    expect(commands).to.deep.equal(['find settings'])
    await get()
    expect(commands).to.have.length(2)
  })

  it('a refused change costs no more, and a change is seen to cost a write', async () => {
    const { put } = settingsOf(h)
    expect((await put({ body: { smtp_port: 'x' } })).status).to.equal(400)
    const body = { smtp_from_name: 'X' }
    expect((await put({ body, query: 'dry_run=true' })).status).to.equal(200)
    expect(commands).to.deep.equal(['find settings', 'find settings'])
    expect((await put({ body })).status).to.equal(200)
    expect(ofSettings()).to.include('update settings')
  })

  it('requests in the flows cost none for settings', async () => {
    await h.addUser({ username: 'verified' })
    await h.addUser({ username: 'waiting', emailVerified: false })
    const agent = createUserAgent()
    commands = []
    expect((await h.signIn(createUserAgent(), 'verified')).location).to.include('code=')
    expect((await h.signIn(agent, 'waiting')).page).to.be.a('string')
    expect((await h.forgot('verified')).mode).to.equal('sent')
    await agent.post(`${h.oauthUrl}/resend-verification`, { username: 'waiting' })
    await agent.get(`${h.oauthUrl}/forgot-password`)
    await agent.get(`${h.oauthUrl}/reset-password?token=${'x'.repeat(43)}`)
    await h.reset(`${h.oauthUrl}/reset-password?token=${'x'.repeat(43)}`, PASSWORD)
    await agent.get(`${h.oauthUrl}/verify-email?token=${'x'.repeat(43)}`)
    expect(commands).not.to.deep.equal([])
    expect(ofSettings()).to.deep.equal([])
  })
})
