import type { AccountFlowsStore } from '../../src/store/index.ts'
import { randomBytes, randomUUID } from 'node:crypto'
import { expect } from 'chai'
import { memoryMailbox, type AccountFlowsOptions } from '../../src/index.ts'
import { adminOf, codeOf, problemOf, settingsOf, stepOf } from '../support/admin.ts'
import {
  onEachStore,
  startHarness,
  type Harness,
  type HarnessOptions,
  suiteHarness,
} from '../support/harness.ts'
import { cliOf } from '../support/cli.ts'
import { eventually } from '../support/eventually.ts'
import { startFaultySmtp, type FaultySmtp } from '../support/mail-server.ts'
import { dump } from '../support/records.ts'
import { personAt } from '../support/person.ts'
import { movableClock } from '../support/time.ts'
import { createUserAgent } from '../support/user-agent.ts'
import { keptInMemory } from '../support/kept.ts'

const CANARY = 'S3cr3t canary / of the "SMTP" password'

/** With what the first mail came. */
const loginAt = ({ mails }: FaultySmtp) => mails[0] && [mails[0].user, mails[0].password]

/** What the doctor says at one of its steps. */
async function doctorOf(h: Harness, step: string): Promise<string> {
  const { checks } = await adminOf(h).runDoctor()
  const { status, message } = stepOf(checks, step)
  return `${status}: ${message}`
}

onEachStore('The setting smtp_password (2.5) is', (technology) => {
  const h = suiteHarness({ technology })
  const { get, put } = settingsOf(h)
  let smtp: FaultySmtp

  before(async () => {
    smtp = await startFaultySmtp({ offersAuth: true })
    await h.addUser({ username: 'ann' })
    await h.put({ smtp_port: String(smtp.port), smtp_username: 'mailer', smtp_password: CANARY })
  })
  after(() => smtp.close())

  /** With what the next mail logs in to the SMTP server. */
  async function nextLogin() {
    const sent = h.eventsOf('password_reset_mail_sent').length
    smtp.mails.length = 0
    await h.forgot('ann')
    await eventually('the mail leaves', () => h.eventsOf('password_reset_mail_sent').length > sent)
    return loginAt(smtp)
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
    await h.put({ smtp_password: '***', smtp_username: 'postman' })
    expect(await nextLogin()).to.deep.equal(['postman', CANARY])
  })

  it('forgotten when smtp_host changes without it, and the answer says so (SET-08)', async () => {
    for (const extra of [{}, { smtp_password: '***', smtp_username: 'm' }]) {
      await h.put({ smtp_host: '127.0.0.1', smtp_username: 'mailer', smtp_password: CANARY })
      const answer = await (await put({ body: { smtp_host: 'localhost', ...extra } })).json()
      expect(answer).not.to.have.property('smtp_password')
      expect(JSON.stringify(answer['warnings'])).to.include('is deleted')
      for (const smtp_host of ['localhost', '127.0.0.1']) {
        await h.put({ smtp_host })
        expect(await nextLogin()).to.deep.equal([undefined, undefined])
      }
    }
  })
})

// What processes take from each other while keys are rotated is in test/http/links.test.ts.
onEachStore('Keys of which a new one was put in front', (technology) => {
  const [oldKey, newKey, lostKey] = [randomBytes(32), randomBytes(32), randomBytes(32)]
  let first: Harness
  let smtp: FaultySmtp
  let running: Harness[]

  beforeEach(async () => {
    smtp = await startFaultySmtp({ offersAuth: true })
    first = await startHarness({ technology, flows: { secrets: [oldKey] } })
    await first.put({
      smtp_port: String(smtp.port),
      smtp_username: 'mailer',
      smtp_password: CANARY,
    })
    running = []
  })
  afterEach(async () => {
    for (const h of running) await h.close()
    await first.close()
    await smtp.close()
  })

  /** A later start on the same store, with these keys. */
  async function restartWith(secrets: Buffer[], options: HarnessOptions = {}): Promise<Harness> {
    const { records: store, users } = first
    // Whoever has the old keys alone follows the settings no more.
    for (const earlier of [first, ...running]) await earlier.flows.stop({ withinMs: 2_000 })
    const h = await startHarness({
      ...options,
      flows: { secrets, store, users, ...options.flows },
    })
    running.push(h)
    return h
  }

  /** The record, with what is sealed. */
  const stored = () => first.store.settings.read()
  const isShown = async (h: Harness) => (await settingsOf(h).shown())['smtp_password'] === '***'

  /** With what a mail logs in to the SMTP server. */
  async function loginOf(h: Harness) {
    await first.flows.stop({ withinMs: 2_000 })
    const user = await first.addVerified()
    smtp.mails.length = 0
    await h.forgot(user.username)
    return eventually('the mail leaves', () => loginAt(smtp))
  }

  it('seal the stored secrets anew, once, which is audited without a value; the old key can be taken away after that', async () => {
    const before = await stored()
    const rotated = await restartWith([newKey, oldKey])
    expect(await stored()).to.deep.equal(before)
    expect(await doctorOf(rotated, 'secrets')).to.match(/^warning: .*smtp_password/)

    const resealed = ['smtp_password']
    expect(await adminOf(rotated).rotateKeys()).to.deep.equal({ resealed, unreadable: [], keys: 2 })
    const after = await stored()
    const { smtp_password } = after.values
    expect(smtp_password).not.to.equal(before.values['smtp_password'])
    expect(after.values).to.deep.equal({ ...before.values, smtp_password })
    expect(await adminOf(rotated).rotateKeys()).to.deep.include({ resealed: [], unreadable: [] })
    expect(await stored()).to.deep.equal(after)
    expect(await doctorOf(rotated, 'secrets')).to.match(/^ok: /)
    const details = { action: 'keys_rotate', actor: 'admin_token' }
    const told = rotated.eventsOf('admin_action').map((event) => event.details)
    expect(told).to.deep.equal([details, details])
    expect((await dump(first)) + JSON.stringify(rotated.events)).not.to.include('anary')

    const alone = await restartWith([newKey])
    expect(await isShown(alone)).to.equal(true)
    expect(await doctorOf(alone, 'secrets')).to.match(/^ok: /)
    const nothing = { resealed: [], unreadable: [], keys: 1 }
    expect(await adminOf(alone).rotateKeys()).to.deep.equal(nothing)
    expect(await stored()).to.deep.equal(after)
    expect(await loginOf(alone)).to.deep.equal(['mailer', CANARY])
  })

  it('say which secrets none of them opens, and leave them as they are until they are given again, or unset', async () => {
    const before = await stored()
    const without = await restartWith([newKey, lostKey], { mayLogErrors: true })
    const rotate = () => adminOf(without).rotateKeys()
    expect(await doctorOf(without, 'secrets')).to.match(/^failed: .*smtp_password/)
    const unreadable = { resealed: [], unreadable: ['smtp_password'] }
    for (let count = 0; count < 2; count += 1) expect(await rotate()).to.deep.include(unreadable)
    expect(await stored()).to.deep.equal(before)
    expect([await isShown(without), await isShown(first)]).to.deep.equal([false, true])

    await without.put({ smtp_password: 'given again' })
    expect((await rotate()).unreadable).to.deep.equal([])
    expect(await loginOf(without)).to.deep.equal(['mailer', 'given again'])

    const next = await restartWith([lostKey], { mayLogErrors: true })
    await adminOf(next).unsetSettings(['smtp_password'])
    expect((await stored()).values).not.to.have.property('smtp_password')
    const nothing = { resealed: [], unreadable: [], keys: 1 }
    expect(await adminOf(next).rotateKeys()).to.deep.equal(nothing)
  })

  it('let mails wait while none of them opens the password, also beside a development mailbox (FLT-23)', async () => {
    const transport = memoryMailbox()
    const without = await restartWith([newKey], { mayLogErrors: true, flows: { transport } })
    const user = await first.addVerified()
    const sentTo = (h: Harness) => personAt(h, user).events('password_reset_mail_sent')
    smtp.mails.length = 0
    smtp.logins.length = 0
    await without.forgot(user.username)
    const waiting = () => adminOf(without).listOutbox({ state: 'waiting' })
    await eventually('it is resolved', async () => (await waiting()).mails.length === 1)
    expect(await doctorOf(without, 'configuration')).to.equal(
      'failed: No key of the ring opens smtp_password. Mails wait until this is mended.',
    )
    expect((await adminOf(without).userStatus({ id: user.id })).summary).to.match(/all mails wait/)
    await without.flows.stop({ withinMs: 2_000 })
    expect([transport.messages(), sentTo(without)]).to.deep.equal([[], []])
    expect([smtp.logins, smtp.mails]).to.deep.equal([[], []])

    const h = await restartWith([newKey, oldKey], { flows: { transport } })
    await eventually('it leaves by the mail server', () => sentTo(h).length === 1)
    expect(loginAt(smtp)).to.deep.equal(['mailer', CANARY])
    expect([smtp.mails.length, transport.messages()]).to.deep.equal([1, []])
  })
})

describe('The old keys of a ring are needed', () => {
  const h = suiteHarness({ flows: { secrets: [randomBytes(32), randomBytes(32)] } })

  it('until the last live verification link expires, whatever the setting is by now', async () => {
    const admin = adminOf(h)
    expect(await admin.rotateKeys()).to.deep.equal({ resealed: [], unreadable: [], keys: 2 })

    const ann = await h.addUnverified()
    await admin.sendVerification({ id: ann.id })
    const { link } = await ann.mail(1)
    await h.put({ email_verification_expiration: '1h' })
    const { expires_at } = await admin.explainLink({ link })
    expect((await admin.rotateKeys()).old_keys_needed_until).to.equal(expires_at)

    expect((await createUserAgent().get(link)).status).to.equal(200)
    expect(await admin.rotateKeys()).not.to.have.property('old_keys_needed_until')
  })
})

const STRICTEST = {
  require_email_verification: 'true',
  email_link_confirmation: 'other_browser',
  reset_requires_verified_email: 'true',
  reset_verifies_email: 'false',
  smtp_tls: 'auto',
  validation_min_password_length: '15',
}

// That a record on MongoDB cannot be read is told as in test/store/store.test.ts.
describe('A damaged settings record (SET-18)', () => {
  let h: Harness
  let store: ReturnType<typeof keptInMemory>
  let kept: AccountFlowsStore['settings']
  let isUnreadable: boolean
  const errors: string[] = []
  const secrets = [randomBytes(32)]

  async function start() {
    const log: AccountFlowsOptions['log'] = (level, message, details) => {
      if (level === 'error') errors.push(JSON.stringify([message, details]))
    }
    h = await startHarness({ flows: { store: store.records, secrets, log } })
  }

  async function restart() {
    await h.close()
    await start()
  }

  beforeEach(async () => {
    errors.splice(0)
    isUnreadable = false
    store = keptInMemory(movableClock, ({ settings }) => {
      kept = settings
      const read = async () => ({
        ...(await settings.read()),
        ...(isUnreadable && { values: {}, isUnreadable }),
      })
      return { settings: { ...settings, read } }
    })
    await start()
  })

  afterEach(() => h.close())

  const shown = () => settingsOf(h).shown()

  async function signIn(emailVerified: boolean): Promise<string | undefined> {
    const user = await h.addUnverified({ id: randomUUID(), emailVerified })
    const back = await user.signsIn()
    return /[?&]code=/.test(back.location ?? '') ? 'a code' : back.mode
  }

  const doctorsWords = () => doctorOf(h, 'settings')

  it('with require_email_verification "yes" lets no unverified user in, running or restarted, until an admin decides: then "false" really does not block, and "true" does, at once (SET-04)', async () => {
    expect(await doctorsWords()).to.match(/^ok:/)
    const { values, version } = await store.settings.read()
    await store.settings.write({ ...values, require_email_verification: 'yes' }, version)
    for (const next of [restart, async () => {}]) {
      expect(await shown()).to.include({ require_email_verification: 'true' })
      expect([await signIn(false), await signIn(true)]).to.deep.equal(['blocked', 'a code'])
      expect(errors.filter((line) => line.includes('require_email_verification'))).to.have.length(1)
      expect(await doctorsWords()).to.match(/^failed: require_email_verification: .*true/)
      errors.splice(0)
      await next()
    }
    await h.put({ require_email_verification: 'false' })
    expect([await signIn(false), await doctorsWords()]).to.deep.equal([
      'a code',
      'ok: All stored settings are valid.',
    ])
    await h.put({ require_email_verification: 'true' })
    expect(await signIn(false)).to.equal('blocked')
  })

  it('that cannot be read is in force as it was, or the strictest after a restart, and kept until it is repaired', async () => {
    await h.put({ require_email_verification: 'false', password_reset_expiration: '2h' })
    await h.put({ smtp_username: 'mailer', smtp_password: 'canary' })
    const before = await shown()
    isUnreadable = true
    const damaged = await kept.read()
    expect(await shown()).to.deep.equal(before)
    expect(await signIn(false)).to.equal('a code')

    await restart()
    expect(await shown()).to.include({ ...STRICTEST, password_reset_expiration: '1h' })
    expect(await signIn(false)).to.equal('blocked')
    const said = errors.filter((line) => line.includes('cannot be read'))
    expect(said, 'one line of each process').to.have.length(2)
    const { put, unset } = settingsOf(h)
    const body = { require_email_verification: 'false' }
    for (const refused of [
      await put({ body }),
      await put({ body, query: 'dry_run=true' }),
      await unset({ query: 'key=require_email_verification' }),
    ]) {
      const problem = await problemOf(refused, 409)
      expect(problem.code).to.equal('settings_unreadable')
      expect(problem.title).to.match(/Repair the record in the database, or delete it/)
    }
    for (const call of ['rotateKeys', 'settingsHistory'] as const)
      expect(await codeOf(adminOf(h)[call]())).to.deep.equal([409, 'settings_unreadable'])
    for (const args of ['set require_email_verification=false', 'rollback 1 --yes']) {
      const run = await cliOf(h).run(['settings', ...args.split(' ')])
      expect([run.exitCode, run.stdout]).to.deep.equal([1, ''])
      expect(run.stderr).to.include('Repair the record in the database, or delete it')
    }
    expect(await doctorsWords()).to.match(/^failed: .*cannot be read/)
    expect(await kept.read()).to.deep.equal(damaged)
    expect(h.eventsOf('settings_changed')).to.deep.equal([])

    isUnreadable = false
    expect(await shown()).to.deep.equal(before)
    expect(await doctorsWords()).to.match(/^ok:/)
    expect(await signIn(false)).to.equal('a code')
    await h.put({ require_email_verification: 'true' })
    expect(await signIn(false)).to.equal('blocked')
  })
})
