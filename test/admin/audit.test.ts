import { expect } from 'chai'
import { type AdminClient, type AuditEvent, memoryStore } from '../../src/index.ts'
import { adminOf, refusalOf, suiteAdmin } from '../support/admin-calls.ts'
import { settingsOf } from '../support/admin-requests.ts'
import { onBothStores } from '../support/both-stores.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { moveTime } from '../support/time.ts'

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

  it('answers events, the one that was recorded last first', async () => {
    expect(await idsOf()).to.deep.equal(['fourth', 'third', 'second', 'first'])
    expect(recorded).to.deep.equal(recorded.toSorted().toReversed())
  })

  it('with all that was recorded of each', async () => {
    const [event] = (await admin.listAudit({ limit: 1 })).events
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

  it('at most so many, from 1 to 1000', async () => {
    expect(await idsOf({ limit: 1 })).to.deep.equal(['fourth'])
    expect(await idsOf({ limit: 3 })).to.deep.equal(['fourth', 'third', 'second'])
    expect(await idsOf({ limit: 1000 })).to.have.length(4)
  })

  const refused: Record<string, Record<string, string | string[]>> = {
    'a limit of 0': { limit: '0' },
    'a limit of 1001': { limit: '1001' },
    'a limit below 0': { limit: '-1' },
    'a limit that is text': { limit: 'ten' },
    'a limit with a fraction': { limit: '1.5' },
    'two limits': { limit: ['1', '2'] },
    'a misspelled type': { type: 'password_reset_complete' },
    'a misspelled type beside a right one': { type: ['no_such_type', 'sessions_ended'] },
    'a type that is an operator': { type: '$ne' },
    'a type that every object has': { type: '__proto__' },
    'two accounts': { account_id: ['a', 'b'] },
    'a time that is text': { recorded_from: 'yesterday' },
    'a time without its zone': { recorded_from: '2026-01-01T00:00:00' },
    'a day that does not exist': { recorded_from: '2026-13-01T00:00:00Z' },
    'a parameter that does not exist': { accountId: 'a' },
    'an operator': { 'account_id[$ne]': 'a' },
  }
  for (const [what, query] of Object.entries(refused)) {
    it(`400 for ${what}, naming it`, async () => {
      const problem = await refusalOf(admin.listAudit(query))
      expect([problem.status, problem.code]).to.deep.equal([400, 'invalid_request'])
      expect(problem.errors?.map(({ key }) => key)).to.deep.equal(Object.keys(query))
      expect(await idsOf()).to.have.length(4)
    })
  }

  it('and records nothing about those who only read it', async () => {
    const events = h.events.length
    await idsOf()
    expect(h.events).to.have.length(events)
    expect(await idsOf()).to.have.length(4)
  })
})

onBothStores('The life of an event', (technology) => {
  const h = suiteHarness({ technology })

  const idsOf = async () => (await adminOf(h).listAudit({ limit: 1000 })).events.map(({ id }) => id)

  it('is audit_retention as it was when it was recorded: a shorter one later takes nothing away (LOG-11)', async () => {
    await h.flows.endSessions('ann')
    await h.put({ audit_retention: '7d' })
    const before = await idsOf()
    await h.flows.endSessions('ann')
    const [short] = await idsOf()
    await moveTime(7 * DAY)
    await h.put({ audit_retention: '400d' })
    await h.flows.endSessions('ann')
    const [long] = await idsOf()
    // On MongoDB its own clock sweeps; there, what it sweeps by.
    const ends =
      h.db &&
      (await h.db
        .collection<{ _id: string; purge_at: Date; recorded_at: Date }>('audit_events')
        .find()
        .toArray())
    const lifeOf = (id: string | undefined) => {
      const found = ends?.find(({ _id }) => _id === id)
      return found && (found.purge_at.getTime() - found.recorded_at.getTime()) / DAY
    }
    if (ends) expect([lifeOf(before[2]), lifeOf(short), lifeOf(long)]).to.deep.equal([400, 7, 400])
    else
      expect(await idsOf())
        .to.include.members([...before.slice(1), long])
        .and.not.include(short)
  })

  it('is at least a week, so that nobody removes traces by a setting (LOG-11)', async () => {
    for (const audit_retention of ['6d', '1s', '0s', '3651d', '', 'never']) {
      const refused = await settingsOf(h).put({ body: { audit_retention } })
      expect(refused.status, audit_retention).to.equal(400)
    }
    await h.put({ audit_retention: '3650d' })
    expect((await adminOf(h).getSettings()).answer.audit_retention).to.equal('3650d')
  })
})

describe('What an admin does and the audit log cannot record', () => {
  const store = memoryStore()
  let mayRecord: (event: AuditEvent) => boolean = () => true
  const audit = {
    ...store.audit,
    async record(event: AuditEvent, keepMs: number) {
      if (!mayRecord(event)) throw new Error('no room in the audit log')
      return store.audit.record(event, keepMs)
    },
  }
  const h = suiteHarness({ flows: { store: { ...store, audit } }, mayLogErrors: true })
  const admin = suiteAdmin(h)

  const statusOf = async (work: Promise<unknown>) =>
    Reflect.get(Object(await work.catch((error: unknown) => error)), 'status')

  it('is not done: settings stay, no mail is asked for, no session ends', async () => {
    const ann = await h.addUser({ username: 'ann' })
    const before = [await store.settings.read(), store.audit.events()]
    mayRecord = () => false
    for (const asked of [
      admin.putSettings({ smtp_host: 'unaudited.example' }),
      admin.unsetSettings(['smtp_from']),
      admin.sendReset({ id: ann.id }),
      admin.endSessions({ id: ann.id }),
      admin.rotateKeys(),
    ]) {
      expect(await statusOf(asked)).to.equal(500)
    }
    expect(await store.outbox.list({ limit: 10 }, new Date())).to.deep.equal([])
    expect(await store.cutoffs.read(ann.id)).to.equal(undefined)
    expect([await store.settings.read(), store.audit.events()]).to.deep.equal(before)
    mayRecord = () => true
    await admin.putSettings({ smtp_host: 'localhost' })
    expect((await admin.getSettings()).answer).to.include({ smtp_host: 'localhost' })
  })

  it('is told as done, with a warning, where it was announced and only its end was not recorded', async () => {
    mayRecord = ({ type }) => type !== 'settings_changed'
    const { answer } = await admin.putSettings({ resend_cooldown: '30s' })
    expect(answer).to.include({ resend_cooldown: '30s' })
    expect(answer.warnings?.join()).to.include('missing in the audit log')
    const [last] = store.audit.events().slice(-1)
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
    const before = store.audit.events()
    await admin.putSettings({ resend_cooldown: '40s' }, { dryRun: true })
    await admin.putSettings({ resend_cooldown: '31s' })
    expect(await statusOf(admin.putSettings({ resend_cooldown: 'x' }))).to.equal(400)
    const stale = admin.putSettings({ resend_cooldown: '41s' }, { ifMatch: '"x"' })
    expect(await statusOf(stale)).to.equal(412)
    expect(store.audit.events()).to.deep.equal(before)
  })
})
