import { randomBytes } from 'node:crypto'
import { expect } from 'chai'
import type { KeysRotation } from '../../src/admin/api-types.ts'
import { settingsOf } from '../support/admin-requests.ts'
import { onBothStores } from '../support/both-stores.ts'
import { eventually } from '../support/eventually.ts'
import { ADMIN_TOKEN, startHarness, type Harness } from '../support/harness.ts'
import { startLoginRecorder, type LoginRecorder } from '../support/login-recorder.ts'
import { dump, eventsOf } from '../support/observe.ts'

const CANARY = 'S3cr3t canary'

onBothStores('Keys of which a new one was put in front (D13)', (technology) => {
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
  async function restartWith(secrets: Buffer[], mayLogErrors = false): Promise<Harness> {
    const { store, users } = first
    // Whoever has the old keys alone follows the settings no more.
    for (const earlier of [first, ...running]) await earlier.flows.stop({ withinMs: 2_000 })
    const h = await startHarness({ flows: { secrets, store, users }, mayLogErrors })
    running.push(h)
    return h
  }

  async function rotate({ baseUrl }: Harness): Promise<KeysRotation> {
    const response = await fetch(`${baseUrl}/admin/api/keys/rotate`, {
      method: 'POST',
      headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
    })
    expect(response.status).to.equal(200)
    return response.json()
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

    expect(await rotate(rotated)).to.deep.equal({
      resealed: ['smtp_password'],
      unreadable: [],
      keys: 2,
    })
    const after = await stored()
    expect(after.values['smtp_password']).not.to.equal(before.values['smtp_password'])
    expect({ ...after.values, smtp_password: '' }).to.deep.equal({
      ...before.values,
      smtp_password: '',
    })

    expect(await rotate(rotated)).to.deep.include({ resealed: [], unreadable: [] })
    expect(await stored()).to.deep.equal(after)

    const alone = await restartWith([newKey])
    expect(await settingsOf(alone).shown()).to.include({ smtp_password: '***' })
    expect(await rotate(alone)).to.deep.equal({ resealed: [], unreadable: [], keys: 1 })
    expect(await stored()).to.deep.equal(after)
    expect(await loginOf(alone)).to.deep.equal(['mailer', CANARY])
  })

  it('open the secrets also before that, and seal new ones with the first', async () => {
    const rotated = await restartWith([newKey, oldKey])
    expect(await settingsOf(rotated).shown()).to.include({ smtp_password: '***' })
    await rotated.put({ smtp_password: `${CANARY} 2` })
    expect((await rotate(rotated)).resealed).to.deep.equal([])
    expect(await settingsOf(await restartWith([newKey])).shown()).to.include({
      smtp_password: '***',
    })
    expect(await loginOf(rotated)).to.deep.equal(['mailer', `${CANARY} 2`])
  })

  it('say which secrets none of them opens, and leave them as they are', async () => {
    const before = await stored()
    const without = await restartWith([newKey, lostKey], true)
    for (let count = 0; count < 2; count += 1) {
      const { resealed, unreadable } = await rotate(without)
      expect({ resealed, unreadable }).to.deep.equal({
        resealed: [],
        unreadable: ['smtp_password'],
      })
    }
    expect(await stored()).to.deep.equal(before)
    expect(await settingsOf(without).shown()).not.to.have.property('smtp_password')
    expect(await settingsOf(first).shown()).to.include({ smtp_password: '***' })

    await without.put({ smtp_password: 'given again' })
    expect((await rotate(without)).unreadable).to.deep.equal([])
    expect(await loginOf(without)).to.deep.equal(['mailer', 'given again'])
  })

  it('let go of a secret that none of them opens, where it is unset', async () => {
    const without = await restartWith([newKey], true)
    expect((await settingsOf(without).unset({ query: 'key=smtp_password' })).status).to.equal(200)
    expect((await stored()).values).not.to.have.property('smtp_password')
    expect(await rotate(without)).to.deep.equal({ resealed: [], unreadable: [], keys: 1 })
  })

  it('are rotated in front of witnesses: by whom is audited, and no value', async () => {
    const rotated = await restartWith([newKey, oldKey])
    await rotate(rotated)
    expect(eventsOf(rotated, 'admin_action').map(({ details }) => details)).to.deep.equal([
      { action: 'keys_rotate', actor: 'admin_token' },
    ])
    expect(await dump(first)).not.to.include('canary')
    expect(JSON.stringify(rotated.events)).not.to.include('canary')
  })

  it('are rotated by two admins and a change at the same time, and none of it is lost', async () => {
    const rotated = await restartWith([newKey, oldKey])
    const [one, two] = await Promise.all([
      rotate(rotated),
      rotate(rotated),
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
    expect((await rotate(rotated)).resealed).to.deep.equal(['smtp_password'])
  })
})
