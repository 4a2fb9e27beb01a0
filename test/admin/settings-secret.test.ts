import { randomBytes } from 'node:crypto'
import { expect } from 'chai'
import { memoryMailbox, type MailTransport } from '../../src/index.ts'
import { adminOf } from '../support/admin-calls.ts'
import { settingsOf } from '../support/admin-requests.ts'
import { onBothStores } from '../support/both-stores.ts'
import { eventually } from '../support/eventually.ts'
import { type Harness, startHarness } from '../support/harness.ts'
import { type LoginRecorder, startLoginRecorder } from '../support/mail-server.ts'
import { dump, eventsOf } from '../support/observe.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { createUserAgent } from '../support/user-agent.ts'

const CANARY = 'S3cr3t canary / of the "SMTP" password'

onBothStores('The setting smtp_password (2.5) is', (technology) => {
  const h = suiteHarness({ technology })
  const { get, put, shown } = settingsOf(h)
  let smtp: LoginRecorder

  before(async () => {
    smtp = await startLoginRecorder()
    await h.addUser({ username: 'ann' })
    await h.put({ smtp_port: smtp.port, smtp_username: 'mailer', smtp_password: CANARY })
  })
  after(() => smtp.close())

  /** With what the next mail logs in to the SMTP server. */
  async function nextLogin() {
    const sent = eventsOf(h, 'password_reset_mail_sent').length
    smtp.logins.length = 0
    await h.forgot('ann')
    await eventually('the mail leaves', () => eventsOf(h, 'password_reset_mail_sent').length > sent)
    return smtp.logins[0]
  }

  it('shown as *** by GET and by PUT, and in no dump of the database (ADM-14)', async () => {
    for (const response of [await get(), await put({ body: { smtp_username: 'mailer' } })]) {
      const text = await response.text()
      expect(JSON.parse(text)).to.include({ smtp_password: '***' })
      expect(text).not.to.include('anary')
    }
    const stored = await dump(h)
    const bytes = Buffer.from(CANARY)
    for (const form of ['anary', bytes.toString('base64').slice(0, -4), bytes.toString('hex')]) {
      expect(stored).not.to.include(form)
    }
    expect(stored).to.include('smtp_password').and.to.include('mailer')
  })

  it('with which mails are sent, as it was given; *** sent back keeps it', async () => {
    expect(await nextLogin()).to.deep.equal(['mailer', CANARY])
    const all = await shown()
    expect((await put({ body: all })).status).to.equal(200)
    expect(await shown()).to.deep.equal(all)
    await h.put({ smtp_password: '***', smtp_username: 'postman' })
    expect(await nextLogin()).to.deep.equal(['postman', CANARY])
  })

  for (const extra of [
    {},
    { smtp_password: '***' },
    { smtp_password: '***', smtp_username: 'm' },
  ]) {
    it(`forgotten when smtp_host changes with ${JSON.stringify(extra)}, and it says so (SET-08)`, async () => {
      await h.put({ smtp_host: '127.0.0.1', smtp_username: 'mailer', smtp_password: CANARY })
      const answer = await (await put({ body: { smtp_host: 'localhost', ...extra } })).json()
      expect(answer).to.include({ smtp_host: 'localhost' })
      expect(answer).not.to.have.property('smtp_password')
      expect(JSON.stringify(answer['warnings'])).to.include('was deleted')
      expect(await nextLogin()).to.deep.equal([undefined, undefined])
      await h.put({ smtp_host: '127.0.0.1' })
      expect(await nextLogin()).to.deep.equal([undefined, undefined])
    })
  }

  it('but kept when smtp_host changes together with a new one, or stays as it is', async () => {
    await h.put({ smtp_host: 'localhost', smtp_username: 'mailer', smtp_password: 'another' })
    expect(await nextLogin()).to.deep.equal(['mailer', 'another'])
    await h.put({ smtp_host: 'localhost', smtp_from: 'other@idp.example' })
    expect(await nextLogin()).to.deep.equal(['mailer', 'another'])
  })
})

onBothStores('Keys of which a new one was put in front', (technology) => {
  const [oldKey, newKey, lostKey] = [randomBytes(32), randomBytes(32), randomBytes(32)]
  let first: Harness
  let smtp: LoginRecorder
  let running: Harness[]

  beforeEach(async () => {
    smtp = await startLoginRecorder()
    first = await startHarness({ technology, flows: { secrets: [oldKey] } })
    await first.put({ smtp_port: smtp.port, smtp_username: 'mailer', smtp_password: CANARY })
    running = []
  })
  afterEach(async () => {
    for (const h of running) await h.close()
    await first.close()
    await smtp.close()
  })

  /** A later start on the same store, with these keys. */
  async function restartWith(
    secrets: Buffer[],
    mayLogErrors = false,
    transport?: MailTransport,
  ): Promise<Harness> {
    const { store, users } = first
    // Whoever has the old keys alone follows the settings no more.
    for (const earlier of [first, ...running]) await earlier.flows.stop({ withinMs: 2_000 })
    const h = await startHarness({
      flows: { secrets, store, users, ...(transport && { transport }) },
      mayLogErrors,
    })
    running.push(h)
    return h
  }

  const stored = () => first.store.settings.read()

  /** With what a mail logs in to the SMTP server. */
  async function loginOf(h: Harness) {
    await first.flows.stop({ withinMs: 2_000 })
    const user = await first.addUser({ username: `user${running.length}` })
    smtp.logins.length = 0
    await h.forgot(user.username)
    return eventually('the mail leaves', () => smtp.logins[0])
  }

  it('seal the stored secrets anew, once; the old key can be taken away after that', async () => {
    const before = await stored()
    const rotated = await restartWith([newKey, oldKey])
    expect(await stored()).to.deep.equal(before)

    const resealed = ['smtp_password']
    expect(await adminOf(rotated).rotateKeys()).to.deep.equal({ resealed, unreadable: [], keys: 2 })
    const after = await stored()
    expect(after.values['smtp_password']).not.to.equal(before.values['smtp_password'])
    const { smtp_password } = after.values
    expect(after.values).to.deep.equal({ ...before.values, smtp_password })
    expect(await adminOf(rotated).rotateKeys()).to.deep.include({ resealed: [], unreadable: [] })
    expect(await stored()).to.deep.equal(after)

    const alone = await restartWith([newKey])
    expect(await settingsOf(alone).shown()).to.include({ smtp_password: '***' })
    expect(await adminOf(alone).rotateKeys()).to.deep.equal({
      resealed: [],
      unreadable: [],
      keys: 1,
    })
    expect(await stored()).to.deep.equal(after)
    expect(await loginOf(alone)).to.deep.equal(['mailer', CANARY])
  })

  it('open the secrets also before that, and seal new ones with the first', async () => {
    const rotated = await restartWith([newKey, oldKey])
    expect(await settingsOf(rotated).shown()).to.include({ smtp_password: '***' })
    await rotated.put({ smtp_password: `${CANARY} 2` })
    expect((await adminOf(rotated).rotateKeys()).resealed).to.deep.equal([])
    const alone = settingsOf(await restartWith([newKey]))
    expect(await alone.shown()).to.include({ smtp_password: '***' })
    expect(await loginOf(rotated)).to.deep.equal(['mailer', `${CANARY} 2`])
  })

  it('say which secrets none of them opens, and leave them as they are', async () => {
    const before = await stored()
    const without = await restartWith([newKey, lostKey], true)
    for (let count = 0; count < 2; count += 1) {
      const rotation = await adminOf(without).rotateKeys()
      expect(rotation).to.deep.include({ resealed: [], unreadable: ['smtp_password'] })
    }
    expect(await stored()).to.deep.equal(before)
    expect(await settingsOf(without).shown()).not.to.have.property('smtp_password')
    expect(await settingsOf(first).shown()).to.include({ smtp_password: '***' })

    await without.put({ smtp_password: 'given again' })
    expect((await adminOf(without).rotateKeys()).unreadable).to.deep.equal([])
    expect(await loginOf(without)).to.deep.equal(['mailer', 'given again'])
  })

  it('let mails wait while none of them opens the password, also beside a development mailbox (FLT-23)', async () => {
    const mailbox = memoryMailbox()
    const without = await restartWith([newKey], true, mailbox)
    const user = await first.addUser({ username: 'waiting' })
    const sentTo = (h: Harness) => eventsOf(h, 'password_reset_mail_sent', user)
    smtp.logins.length = 0
    await without.forgot(user.username)
    const waiting = () => adminOf(without).listOutbox({ state: 'waiting' })
    await eventually('it is resolved', async () => (await waiting()).mails.length === 1)
    const { checks } = await adminOf(without).runDoctor({})
    expect(checks.find(({ step }) => step === 'configuration')).to.include({
      status: 'failed',
      message: 'No key of the ring opens smtp_password. Mails wait until this is mended.',
    })
    expect((await adminOf(without).userStatus({ id: user.id })).summary).to.match(/all mails wait/)
    await without.flows.stop({ withinMs: 2_000 })
    expect([mailbox.messages(), sentTo(without), smtp.logins]).to.deep.equal([[], [], []])

    const h = await restartWith([newKey, oldKey], false, mailbox)
    await eventually('it leaves by the mail server', () => sentTo(h).length === 1)
    expect([smtp.logins, mailbox.messages()]).to.deep.equal([[['mailer', CANARY]], []])
  })

  it('let go of a secret that none of them opens, where it is unset', async () => {
    const without = await restartWith([newKey], true)
    expect((await settingsOf(without).unset({ query: 'key=smtp_password' })).status).to.equal(200)
    expect((await stored()).values).not.to.have.property('smtp_password')
    expect(await adminOf(without).rotateKeys()).to.deep.equal({
      resealed: [],
      unreadable: [],
      keys: 1,
    })
  })

  it('are rotated in front of witnesses: by whom is audited, and no value', async () => {
    const rotated = await restartWith([newKey, oldKey])
    await adminOf(rotated).rotateKeys()
    expect(eventsOf(rotated, 'admin_action').map(({ details }) => details)).to.deep.equal([
      { action: 'keys_rotate', actor: 'admin_token' },
    ])
    expect(await dump(first)).not.to.include('anary')
    expect(JSON.stringify(rotated.events)).not.to.include('anary')
  })

  it('are rotated by two admins and a change at the same time, and none of it is lost', async () => {
    const rotated = await restartWith([newKey, oldKey])
    const [one, two] = await Promise.all([
      adminOf(rotated).rotateKeys(),
      adminOf(rotated).rotateKeys(),
      rotated.put({ smtp_from_name: 'Meanwhile' }),
    ])
    expect([...one.resealed, ...two.resealed]).to.deep.equal(['smtp_password'])
    const alone = settingsOf(await restartWith([newKey]))
    expect(await alone.shown()).to.include({ smtp_password: '***', smtp_from_name: 'Meanwhile' })
  })

  it('are left alone by whoever has no token', async () => {
    const rotated = await restartWith([newKey, oldKey])
    const before = await stored()
    const url = `${rotated.baseUrl}/admin/api/keys/rotate`
    expect((await fetch(url, { method: 'POST' })).status).to.equal(401)
    expect(await stored()).to.deep.equal(before)
    expect((await adminOf(rotated).rotateKeys()).resealed).to.deep.equal(['smtp_password'])
  })
})

describe('The old keys of a ring are needed', () => {
  const h = suiteHarness({ flows: { secrets: [randomBytes(32), randomBytes(32)] } })

  it('until the last live verification link expires, whatever the setting is by now', async () => {
    const admin = adminOf(h)
    expect(await admin.rotateKeys()).to.deep.equal({ resealed: [], unreadable: [], keys: 2 })

    const ann = await h.addUser({ username: 'ann', emailVerified: false })
    await admin.sendVerification({ id: ann.id })
    const { link } = await h.mail.mailTo('ann@users.example')
    await h.put({ email_verification_expiration: '1h' })
    const [token] = await h.store.verificationTokens.ofUser(ann.id, 1)
    const { old_keys_needed_until: until } = await admin.rotateKeys()
    expect(until).to.equal(token?.expiresAt.toISOString())

    expect((await createUserAgent().get(link)).status).to.equal(200)
    expect(await admin.rotateKeys()).not.to.have.property('old_keys_needed_until')
  })
})
