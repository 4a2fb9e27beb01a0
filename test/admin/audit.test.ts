import { expect } from 'chai'
import type { AuditEvent } from '../../src/index.ts'
import type { AdminClient } from '../../src/admin/client.ts'
import { adminOf, codeOf, suiteAdmin } from '../support/admin.ts'
import { suiteHarness } from '../support/harness.ts'
import { moveTime } from '../support/time.ts'
import { keptInMemory } from '../support/kept.ts'
import { systemClock } from '../../src/clock.ts'

const DAY = 86_400_000

type Query = NonNullable<Parameters<AdminClient['listAudit']>[0]>

describe('The admin API about the audit log (6)', () => {
  const h = suiteHarness()
  const admin = suiteAdmin(h)
  let recorded: string[]

  before(async () => {
    await record({ ...about('first', 'a'), type: 'password_reset_requested' })
    await record({ ...about('second', 'b'), type: 'password_reset_requested' })
    const counts = { oauth: 1, idp: 2 }
    await record({ ...about('third', 'a'), type: 'sessions_ended', details: counts })
    await record({
      ...about('fourth', 'a'),
      type: 'password_reset_mail_failed',
      clientId: 'app',
      reason: 'ERR_MAIL_FAILED',
      details: { mail: 'password_changed' },
    })
    recorded = (await admin.listAudit()).events.map(({ recorded_at }) => recorded_at)
  })

  let happened = 10_000

  /** It happened before the one that is recorded before it. */
  function about(id: string, accountId: string) {
    happened -= 1_000
    return { id, accountId, at: new Date(happened), address: '192.0.2.1', userAgent: 'a browser' }
  }

  async function record(event: AuditEvent) {
    await moveTime(1)
    await h.store.audit.record(event, DAY)
  }

  const idsOf = async (query?: Query) => (await admin.listAudit(query)).events.map(({ id }) => id)

  it('answers events with all that was recorded, the last one first, at most so many; and records nothing about those who only read', async () => {
    const events = h.events.length
    expect(await idsOf()).to.deep.equal(['fourth', 'third', 'second', 'first'])
    expect(recorded).to.deep.equal(recorded.toSorted().toReversed())
    expect(await idsOf({ limit: 3 })).to.deep.equal(['fourth', 'third', 'second'])
    expect(await idsOf({ limit: 1000 })).to.have.length(4)
    const [event, ...others] = (await admin.listAudit({ limit: 1 })).events
    expect(others).to.deep.equal([])
    expect(event).to.deep.include({
      id: 'fourth',
      type: 'password_reset_mail_failed',
      account_id: 'a',
      address: '192.0.2.1',
      user_agent: 'a browser',
      client_id: 'app',
      reason: 'ERR_MAIL_FAILED',
      details: { mail: 'password_changed' },
    })
    expect(new Date(event?.at ?? '').toISOString()).to.equal(event?.at)
    expect(h.events).to.have.length(events)
  })

  it('of one account, of some types, since a time, and of all of these', async () => {
    expect(await idsOf({ account_id: 'a' })).to.deep.equal(['fourth', 'third', 'first'])
    expect(await idsOf({ account_id: 'nobody' })).to.deep.equal([])
    expect(await idsOf({ type: ['sessions_ended'] })).to.deep.equal(['third'])
    const types: Query = { type: ['sessions_ended', 'password_reset_requested'] }
    expect(await idsOf(types)).to.deep.equal(['third', 'second', 'first'])
    const recorded_from = recorded[2] ?? ''
    expect(await idsOf({ recorded_from })).to.deep.equal(['fourth', 'third', 'second'])
    expect(await idsOf({ ...types, recorded_from, account_id: 'a' })).to.deep.equal(['third'])
    expect(await idsOf({ recorded_from: '2999-01-01T00:00:00Z' })).to.deep.equal([])
  })
})

// What MongoDB sweeps by is in test/store/mongodb-commands.test.ts.
describe('The life of an event', () => {
  const h = suiteHarness()

  const idsOf = async () => (await adminOf(h).listAudit({ limit: 1000 })).events.map(({ id }) => id)
  /** The new one. */
  const recorded = async () => {
    const before = await idsOf()
    await h.flows.endSessions('ann')
    return (await idsOf()).find((id) => !before.includes(id))
  }

  it('is audit_retention as it was when it was recorded: a shorter one later takes nothing away, and none is shorter than a week (LOG-11)', async () => {
    for (const audit_retention of ['6d', '1s']) {
      const refused = await codeOf(adminOf(h).putSettings({ audit_retention }))
      expect(refused, audit_retention).to.deep.equal([400, 'invalid_settings'])
    }
    await h.flows.endSessions('ann')
    const before = await idsOf()
    await h.put({ audit_retention: '7d' })
    const short = await recorded()
    await moveTime(7 * DAY)
    await h.put({ audit_retention: '400d' })
    const long = await recorded()
    const left = await idsOf()
    expect(left).to.include.members([...before, long])
    expect(left).not.to.include(short)
  })
})

describe('What an admin does and the audit log cannot record', () => {
  let mayRecord: (event: AuditEvent) => boolean = () => true
  const store = keptInMemory(systemClock, ({ audit }) => ({
    audit: {
      ...audit,
      async record(event, keepMs) {
        if (!mayRecord(event)) throw new Error('no room in the audit log')
        return audit.record(event, keepMs)
      },
    },
  }))
  const h = suiteHarness({ flows: { store: store.records }, mayLogErrors: true })
  const admin = suiteAdmin(h)

  it('is not done: settings stay, no mail is asked for, no session ends', async () => {
    const ann = await h.addUser({ username: 'ann' })
    const before = [await store.settings.read(), store.recorded()]
    mayRecord = () => false
    for (const work of [
      () => admin.putSettings({ smtp_host: 'unaudited.example' }),
      () => admin.unsetSettings(['smtp_from']),
      () => admin.sendReset({ id: ann.id }),
      () => admin.endSessions({ id: ann.id }),
      () => admin.rotateKeys(),
    ]) {
      expect((await codeOf(work()))[0]).to.equal(500)
    }
    expect(await store.outbox.list({ limit: 10 }, new Date())).to.deep.equal([])
    expect(await store.cutoffs.read(ann.id)).to.equal(undefined)
    expect([await store.settings.read(), store.recorded()]).to.deep.equal(before)
    mayRecord = () => true
    await admin.putSettings({ smtp_host: 'localhost' })
    expect((await admin.getSettings()).answer).to.include({ smtp_host: 'localhost' })
  })

  it('is told as done, with a warning, where it was announced and only its end was not recorded', async () => {
    mayRecord = ({ type }) => type !== 'settings_changed'
    const { answer } = await admin.putSettings({ resend_cooldown: '30s' })
    expect(answer).to.include({ resend_cooldown: '30s' })
    expect(answer.warnings?.join()).to.include('missing in the audit log')
    const [last] = store.recorded().slice(-1)
    expect(last).to.deep.include({ type: 'admin_action' })
    expect(last?.details).to.deep.equal({
      action: 'change_settings',
      actor: 'admin_token',
      keys: ['resend_cooldown'],
    })
    mayRecord = () => true
    const next = await admin.putSettings({ resend_cooldown: '31s' })
    expect(next.answer.warnings).to.equal(undefined)
  })

  it('is announced only where it changes something', async () => {
    const before = store.recorded()
    await admin.putSettings({ resend_cooldown: '40s' }, { dryRun: true })
    await admin.putSettings({ resend_cooldown: '31s' })
    expect((await codeOf(admin.putSettings({ resend_cooldown: 'x' })))[0]).to.equal(400)
    const stale = admin.putSettings({ resend_cooldown: '41s' }, { ifMatch: '"x"' })
    expect((await codeOf(stale))[0]).to.equal(412)
    expect(store.recorded()).to.deep.equal(before)
  })
})
