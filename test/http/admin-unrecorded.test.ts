import { expect } from 'chai'
import { createAdminClient, memoryStore, type AuditEvent } from '../../src/index.ts'
import { ADMIN_TOKEN, startHarness, type Harness } from '../support/harness.ts'

describe('What an admin does and the audit log cannot record (D33)', () => {
  const store = memoryStore()
  let mayRecord: (event: AuditEvent) => boolean
  let h: Harness

  before(async () => {
    const audit = {
      ...store.audit,
      async record(event: AuditEvent) {
        if (!mayRecord(event)) throw new Error('no room in the audit log')
        return store.audit.record(event)
      },
    }
    mayRecord = () => true
    h = await startHarness({ flows: { store: { ...store, audit } }, mayLogErrors: true })
  })
  beforeEach(() => {
    mayRecord = () => true
  })
  after(() => h.close())

  const admin = () => createAdminClient(h.baseUrl, ADMIN_TOKEN)
  const statusOf = async (work: Promise<unknown>) =>
    Reflect.get(Object(await work.catch((error: unknown) => error)), 'status')

  it('is not done: settings stay, no mail is asked for, no session ends', async () => {
    const ann = await h.addUser({
      username: 'ann',
      email: 'ann@users.example',
      emailVerified: true,
    })
    const before = [await store.settings.read(), store.audit.events()]
    mayRecord = () => false
    expect(await statusOf(admin().putSettings({ smtp_host: 'unaudited.example' }))).to.equal(500)
    expect(await statusOf(admin().unsetSettings(['smtp_from']))).to.equal(500)
    expect(await statusOf(admin().sendReset({ id: ann.id }))).to.equal(500)
    expect(await statusOf(admin().endSessions({ id: ann.id }))).to.equal(500)
    expect(await statusOf(admin().rotateKeys())).to.equal(500)
    expect(await store.outbox.list({ limit: 10 }, new Date())).to.deep.equal([])
    expect(await store.cutoffs.read(ann.id)).to.equal(undefined)
    expect([await store.settings.read(), store.audit.events()]).to.deep.equal(before)
    mayRecord = () => true
    await admin().putSettings({ smtp_host: 'localhost' })
    expect((await admin().getSettings()).answer).to.include({ smtp_host: 'localhost' })
  })

  it('is told as done, with a warning, where it was announced and only its end was not recorded', async () => {
    mayRecord = ({ type }) => type !== 'settings_changed'
    const { answer } = await admin().putSettings({ resend_cooldown: '30s' })
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
    const next = await admin().putSettings({ resend_cooldown: '31s' })
    expect(next.answer.warnings).to.equal(undefined)
  })

  it('is announced only where it changes something', async () => {
    const before = store.audit.events()
    await admin().putSettings({ resend_cooldown: '40s' }, { dryRun: true })
    await admin().putSettings({ resend_cooldown: '31s' })
    expect(await statusOf(admin().putSettings({ resend_cooldown: 'x' }))).to.equal(400)
    expect(
      await statusOf(admin().putSettings({ resend_cooldown: '41s' }, { ifMatch: '"x"' })),
    ).to.equal(412)
    expect(store.audit.events()).to.deep.equal(before)
  })
})
