import { expect } from 'chai'
import type pg from 'pg'
import { postgresStore } from '../../src/index.ts'
import { ALL_KINDS } from '../../src/store/index.ts'
import { adminOf, stepOf } from '../support/admin.ts'
import { eventually } from '../support/eventually.ts'
import { expectMode, type Person } from '../support/person.ts'
import { type Harness, startHarness } from '../support/harness.ts'
import {
  describeWithPostgresql,
  type FreshPostgresql,
  freshPostgresql,
  poolOf,
} from '../support/postgresql.ts'

/** What each flow does is told elsewhere: here that it does so on PostgreSQL, two processes on one database. */
describeWithPostgresql('Flows on postgresStore()', () => {
  let database: FreshPostgresql
  let carelessPool: pg.Pool
  let h: Harness
  let other: Harness

  before(async () => {
    database = await freshPostgresql()
    h = await startHarness({ flows: { store: postgresStore(database.pool) } })
    await database.pool.query('CREATE ROLE careless LOGIN SUPERUSER')
    await database.pool.query('ALTER ROLE careless SET synchronous_commit = off')
    carelessPool = poolOf(database.url.replace('postgres@', 'careless@'))
    other = await startHarness({ flows: { store: postgresStore(carelessPool), users: h.users } })
    // Its links would lead to itself.
    await other.flows.stop()
    await other.flows.start({ workers: false })
  })

  after(async () => {
    await other.close()
    await h.close()
    await carelessPool.end()
    await database.drop()
  })

  it('reset a password, end what was signed in, and tell the account', async () => {
    await h.put({ password_changed_email: 'true' })
    const thief = await h.addVerified()
    const owner = thief.in()
    await thief.signsIn()
    expect(await thief.account()).to.equal(owner.id)
    const link = await owner.forgets()
    expect((await h.reset(link, 'a new password')).mode).to.equal('done')
    expect((await h.reset(link, 'another password')).mode).to.equal('invalid')
    expect(await thief.account()).to.equal(undefined)
    await h.isIdle()
    expect(await owner.notMeLink()).to.include('/not-me')
    expect((await owner.signsIn('a new password')).location).to.match(/[?&]code=/)
  })

  it('verify an address in a login, by link and by code', async () => {
    await (await h.blockedLogin()).stillGetsIn()
    const login = await h.blockedLogin()
    await login.comesBack(await login.types())
    expectMode(await login.goesOn(), 200, 'signed_in')
  })

  it('invite an account without a password', async () => {
    const user: Person = await h.addUser({ username: 'invited', passwordHash: undefined })
    const link = await user.isInvited()
    await user.choosesPassword('a first password', link)
    expect((await user.signsIn('a first password')).location).to.match(/[?&]code=/)
  })

  it('name an index that somebody dropped, until the next start makes it anew', async () => {
    const wrong = async () => (await h.store.inspect()).wrongIndexes
    expect(await wrong()).to.deep.equal([])
    await database.pool.query('DROP INDEX password_reset_tokens_live_of, mail_outbox_purge_at')
    expect(await wrong()).to.have.members(['password_reset_tokens_live_of', 'mail_outbox_purge_at'])
    await h.store.start()
    expect(await wrong()).to.deep.equal([])
  })

  it('are told by the doctor that a crash may lose writes, where commits do not wait for the disk', async () => {
    const foundBy = async (each: Harness) =>
      stepOf((await adminOf(each).runDoctor()).checks, 'indexes')
    expect((await foundBy(h)).status).to.equal('ok')
    const advice = 'Set synchronous_commit to on.'
    expect(await foundBy(other)).to.include({ status: 'warning', advice })
  })

  it('start again without a lock that a backup waits for', async () => {
    const client = await database.pool.connect()
    try {
      await client.query('BEGIN')
      await postgresStore(client).start(ALL_KINDS)
      const { rows } = await client.query(
        `SELECT mode FROM pg_locks
         WHERE relation = 'oidc_records'::regclass AND pid = pg_backend_pid()`,
      )
      expect(rows).to.deep.equal([])
    } finally {
      client.release(true)
    }
  })

  it('take a prefix that leaves room for the names of indexes, and no other', () => {
    postgresStore(database.pool, { prefix: 'shop_of_the_year' })
    for (const prefix of ['a'.repeat(17), 'A', 'a-', '$do$', ' '])
      expect(() => postgresStore(database.pool, { prefix }), prefix).to.throw(TypeError, /^prefix/)
  })

  it('follow settings of another process, show events, and forget an account', async () => {
    await adminOf(other).putSettings({ smtp_from: 'other@idp.example' })
    const user = await h.addVerified()
    await eventually('its mails are from there', async () => {
      await user.forgets()
      return h.mail.mails.at(-1)?.mail.from?.value[0]?.address === 'other@idp.example'
    })
    const { events } = await adminOf(other).listAudit({ account_id: user.id })
    expect(events.map(({ type }) => type)).to.include('password_reset_requested')
    await h.store.forget(user.id, new Date(), 'hash')
    expect((await adminOf(other).listAudit({ account_id: user.id })).events).to.deep.equal([])
  })
})
