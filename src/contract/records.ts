import { expect } from 'chai'
import { it } from 'mocha'
import { randomUUID } from 'node:crypto'
import type { AuditLog, KeyRings, SettingsStore } from '../ports/index.ts'
import { after, atOnce, hour, minute, oddTexts } from './samples.ts'

export function itKeepsAuditEvents(port: () => AuditLog): void {
  it('records an event once, when 20 record it at once (3.3, effect 5)', async () => {
    const event = {
      id: `completed:${randomUUID()}`,
      type: 'admin_action' as const,
      at: after(0),
      accountId: 'ann',
      details: { action: 'a', actor: 'b', count: 2, keys: ['smtp_host'], 'a.b': '$' },
    }
    const answers = await atOnce(() => port().record(event, hour))
    expect(answers.filter(Boolean)).to.have.length(1)
    expect(await port().record({ ...event, accountId: 'bob' }, hour)).to.equal(false)
    expect(await port().has(event.id)).to.equal(true)
    expect(await port().has(randomUUID())).to.equal(false)
  })

  it('records events with other ids, with every field and with the least', async () => {
    const least = { type: 'password_reset_requested', at: after(0) } as const
    const full = {
      ...least,
      accountId: 'ann',
      address: '192.0.2.1',
      userAgent: 'test',
      clientId: 'app',
      reason: 'expired',
      details: { identifier_hash: 'hash' },
    } as const
    for (const event of [least, full])
      expect(await port().record({ id: randomUUID(), ...event }, hour)).to.equal(true)
  })
}

export function itKeepsSettings(port: () => SettingsStore): void {
  it('has no value and version 0 before the first change', async () => {
    expect(await port().read()).to.deep.equal({ version: 0, values: {} })
  })

  it('replaces all values, and counts', async () => {
    expect(await port().write({ smtp_host: 'a', smtp_from: '' }, 0)).to.equal(true)
    expect(await port().write({ smtp_host: 'b' }, 1)).to.equal(true)
    expect(await port().read()).to.deep.equal({ version: 2, values: { smtp_host: 'b' } })
  })

  it('changes nothing where the version is another one', async () => {
    expect(await port().write({ smtp_host: 'a' }, 1)).to.equal(false)
    await port().write({ smtp_host: 'b' }, 0)
    for (const version of [0, 2])
      expect(await port().write({ smtp_host: 'c' }, version)).to.equal(false)
    expect(await port().read()).to.deep.equal({ version: 1, values: { smtp_host: 'b' } })
  })

  it('takes the values of one of 20 that write at once, the first time and later', async () => {
    for (const version of [0, 1]) {
      const answers = await atOnce((caller) => port().write({ smtp_host: `${caller}` }, version))
      expect(answers.filter(Boolean)).to.have.length(1)
      const values = { smtp_host: `${answers.indexOf(true)}` }
      expect(await port().read()).to.deep.equal({ version: version + 1, values })
    }
  })
}

export function itKeepsKeyRings(port: () => KeyRings): void {
  it('tells the newest note of each process, in the order of its keys', async () => {
    await port().note('one', ['old'])
    await port().note('one', ['old', 'new'])
    await port().note('two', ['new', 'old'])
    expect(await port().noted(minute)).to.have.deep.members([
      { processId: 'one', keyIds: ['old', 'new'] },
      { processId: 'two', keyIds: ['new', 'old'] },
    ])
  })

  it('forgets the process that notes no keys, and no other', async () => {
    await port().note('one', ['key'])
    await port().note('two', ['key'])
    await port().note('one', [])
    await port().note('none', [])
    expect(await port().noted(minute)).to.deep.equal([{ processId: 'two', keyIds: ['key'] }])
  })

  it('does not count what was noted before', async () => {
    await port().note('one', ['key'])
    expect(await port().noted(0)).to.deep.equal([])
    expect(await port().noted(minute)).to.have.length(1)
  })

  it('takes any text for an id, and reads nothing into it', async () => {
    for (const odd of oddTexts) await port().note(odd, [odd])
    const expected = oddTexts.map((odd) => ({ processId: odd, keyIds: [odd] }))
    expect(await port().noted(minute)).to.have.deep.members(expected)
  })
}
