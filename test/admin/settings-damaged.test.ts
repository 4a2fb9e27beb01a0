import { randomBytes, randomUUID } from 'node:crypto'
import { expect } from 'chai'
import { memoryStore, mongoStore, type AccountFlowsStore } from '../../src/index.ts'
import { adminOf, codeOf } from '../support/admin-calls.ts'
import { problemOf, settingsOf } from '../support/admin-requests.ts'
import { addUnverified } from '../support/blocked-login.ts'
import { onBothStores } from '../support/both-stores.ts'
import { runCli } from '../support/cli.ts'
import { ADMIN_TOKEN, startHarness, type Harness, type HarnessOptions } from '../support/harness.ts'
import { freshDatabase } from '../support/mongod.ts'
import { movableClock } from '../support/time.ts'
import { createUserAgent } from '../support/user-agent.ts'

const STRICTEST = {
  require_email_verification: 'true',
  email_link_confirmation: 'other_browser',
  reset_requires_verified_email: 'true',
  reset_verifies_email: 'false',
  smtp_tls: 'auto',
  validation_min_password_length: '15',
}

onBothStores('A damaged settings record (SET-18)', (technology) => {
  let h: Harness
  let store: AccountFlowsStore
  let database: HarnessOptions['database']
  /** Everything that is stored of the settings. */
  let raw: () => Promise<unknown>
  /** The values become a text, as if somebody had saved them as such, and are what they were again. */
  let damage: () => Promise<unknown>
  let repair: () => Promise<unknown>
  let drop = async () => {}
  const errors: string[] = []
  const secrets = [randomBytes(32)]

  async function start() {
    h = await startHarness({
      ...(database && { database }),
      flows: {
        store,
        secrets,
        log: (level, message, details) => {
          if (level === 'error') errors.push(JSON.stringify([message, details]))
        },
      },
    })
  }

  async function restart() {
    await h.close()
    await start()
  }

  beforeEach(async () => {
    errors.splice(0)
    if (technology === 'memory') {
      const inner = memoryStore(movableClock)
      let isUnreadable = false
      raw = inner.settings.read
      damage = async () => (isUnreadable = true)
      repair = async () => (isUnreadable = false)
      const read = async () => ({
        ...(await inner.settings.read()),
        ...(isUnreadable && { values: {}, isUnreadable }),
      })
      store = { ...inner, settings: { ...inner.settings, read } }
    } else {
      const fresh = await freshDatabase()
      const record = fresh.db.collection('settings')
      let values: unknown
      database = { db: fresh.db, drop: async () => {} }
      store = mongoStore(fresh.db, movableClock)
      drop = fresh.drop
      raw = () => record.findOne()
      damage = async () => {
        values = (await record.findOne())?.['values']
        await record.updateOne({}, { $set: { values: JSON.stringify(values) } })
      }
      repair = () => record.updateOne({}, { $set: { values } })
    }
    await start()
  })

  afterEach(async () => {
    await h.close()
    await drop()
  })

  const shown = () => settingsOf(h).shown()

  async function signIn(emailVerified: boolean): Promise<string | undefined> {
    const user = await addUnverified(h, { id: randomUUID(), emailVerified })
    const back = await h.signIn(createUserAgent(), user.username)
    return /[?&]code=/.test(back.location ?? '') ? 'a code' : back.mode
  }

  async function doctorsWords(): Promise<string> {
    const { checks } = await adminOf(h).runDoctor({})
    const { status, message } = checks.find(({ step }) => step === 'settings') ?? {}
    return `${status}: ${message}`
  }

  it('with require_email_verification "yes" lets no unverified user in, running or restarted, until an admin decides', async () => {
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
    await damage()
    const damaged = await raw()
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
      put({ body }),
      put({ body, query: 'dry_run=true' }),
      unset({ query: 'key=require_email_verification' }),
    ]) {
      const problem = await problemOf(await refused, 409)
      expect(problem.code).to.equal('settings_unreadable')
      expect(problem.title).to.match(/Repair the record in the database, or delete it/)
    }
    for (const refused of [adminOf(h).rotateKeys(), adminOf(h).settingsHistory()])
      expect(await codeOf(refused)).to.deep.equal([409, 'settings_unreadable'])
    const env = { ACCOUNT_FLOWS_URL: h.baseUrl, ACCOUNT_FLOWS_TOKEN: ADMIN_TOKEN }
    for (const args of [
      ['set', 'require_email_verification=false'],
      ['rollback', '1', '--yes'],
    ]) {
      const run = await runCli(['settings', ...args], { env })
      expect([run.exitCode, run.stdout]).to.deep.equal([1, ''])
      expect(run.stderr).to.include('Repair the record in the database, or delete it')
    }
    expect(await doctorsWords()).to.match(/^failed: .*cannot be read/)
    expect(await raw()).to.deep.equal(damaged)
    expect(h.events.filter(({ type }) => type === 'settings_changed')).to.deep.equal([])

    await repair()
    expect(await shown()).to.deep.equal(before)
    expect(await doctorsWords()).to.match(/^ok:/)
    expect(await signIn(false)).to.equal('a code')
    await h.put({ require_email_verification: 'true' })
    expect(await signIn(false)).to.equal('blocked')
  })
})
