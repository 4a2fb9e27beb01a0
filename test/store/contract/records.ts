import { expect } from 'chai'
import { it } from 'mocha'
import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { AuditEvent, RecordedEvent } from '../../../src/contract/index.ts'
import type { AccountFlowsStore, AuditLog, AuditQuery, KeyRings } from '../../../src/store/index.ts'
import { after, atOnce, eventIn, hour, minute, mustExist } from './samples.ts'

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
    expect(await eventIn(port(), event.id)).to.deep.include({ id: event.id, accountId: 'ann' })
  })
  let count = 0

  function another() {
    count += 1
    return { id: `event ${count} ${randomUUID()}`, at: after(0) }
  }

  async function recorded<Event extends AuditEvent>(event: Event) {
    expect(await port().record(event, hour)).to.equal(true)
    // The time of recording counts milliseconds.
    await delay(3)
    return event
  }

  const type = 'password_reset_requested' as const
  const requested = (about: Pick<RecordedEvent, 'accountId'> = {}) =>
    recorded({ ...another(), type, ...about })

  const idsOf = async (query: Partial<AuditQuery> = {}) =>
    (await port().list({ limit: 100, ...query })).map(({ id }) => id)

  const full = {
    type,
    accountId: 'ann',
    address: '192.0.2.1',
    userAgent: 'test',
    clientId: 'ü$.',
    reason: 'expired',
    details: { identifier_hash: '' },
  } as const
  const lists: Record<string, string[]> = { keys: ['smtp_host', ''], none: [] }
  const odd = {
    type: 'admin_action',
    details: { action: '', actor: 'b', ...lists, count: 2, part: -0.5, 'a.b': '$', $c: '' },
  } as const
  const ended = { type: 'sessions_ended', accountId: 'bob', details: { oauth: 1, idp: 2 } } as const

  it('tells an event as it was recorded, with every field and with the least', async () => {
    for (const about of [full, odd, ended, { type }, { type, accountId: '' }]) {
      const event = await recorded<AuditEvent>({ ...another(), ...about })
      const found = mustExist(await eventIn(port(), event.id))
      const { recordedAt, ...rest } = found
      expect(rest).to.deep.equal(event)
      expect(recordedAt.getTime()).to.be.closeTo(Date.now(), minute)
      expect(await port().list({ limit: 1 })).to.deep.equal([found])
    }
  })

  it('tells the events of one account, of one identifier and of some types', async () => {
    const hash = 'identifier'
    const ofAnn = await requested({ accountId: 'ann' })
    const ofBob = await recorded({ ...another(), ...ended })
    const ofAnnToo = await recorded({ ...another(), ...ended, accountId: 'ann' })
    const ofNobody = await recorded({ ...another(), type, details: { identifier_hash: hash } })
    const details = { identifier_hash: 'another', keys: [hash] }
    const ofAnother = await recorded({ ...another(), type, details })
    const all = [ofAnother, ofNobody, ofAnnToo, ofBob, ofAnn]
    for (const [query, expected] of [
      [{}, all],
      [{ accountId: 'ann' }, [ofAnnToo, ofAnn]],
      [{ accountId: 'ann', limit: 1 }, [ofAnnToo]],
      [{ accountId: 'ann', types: ['sessions_ended'] }, [ofAnnToo]],
      [{ types: ['sessions_ended'] }, [ofAnnToo, ofBob]],
      [{ types: ['sessions_ended', 'password_reset_requested'] }, all],
      [{ types: ['email_login_blocked'] }, []],
      [{ types: [] }, []],
      [{ identifierHash: hash }, [ofNobody]],
      [{ identifierHash: hash, types: ['password_reset_requested'] }, [ofNobody]],
      [{ identifierHash: hash, accountId: 'ann' }, []],
    ] as [Partial<AuditQuery>, AuditEvent[]][]) {
      expect(await idsOf(query), JSON.stringify(query)).to.deep.equal(expected.map(({ id }) => id))
    }
  })
}

export function itKeepsSettings(port: () => AccountFlowsStore['settings']): void {
  it('replaces all values, and counts', async () => {
    expect(await port().write({ smtp_host: 'a', smtp_from: '' }, 0)).to.equal(true)
    expect(await port().write({ smtp_host: 'b' }, 1)).to.equal(true)
    expect(await port().read()).to.deep.equal({ version: 2, values: { smtp_host: 'b' } })
  })

  it('keeps the history that comes with the values, and that alone', async () => {
    const first = { version: 1, secrets: [], values: { smtp_host: 'a' } }
    const full = { version: 2, at: after(0), actor: 'ann', secrets: ['smtp_password'], values: {} }
    for (const [index, history] of [[first], [first, full], [full]].entries()) {
      expect(await port().write({ smtp_host: 'b' }, index, history)).to.equal(true)
      expect(await port().write({ smtp_host: 'c' }, index, [])).to.equal(false)
      const expected = { version: index + 1, values: { smtp_host: 'b' }, history }
      expect(await port().read()).to.deep.equal(expected)
    }
    expect(await port().write({}, 3)).to.equal(true)
    expect(await port().read()).to.deep.equal({ version: 4, values: {}, history: [full] })
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
    const noted = (await port().noted(minute)).map(({ id, keyIds }) => ({ id, keyIds }))
    expect(noted).to.have.deep.members([
      { id: 'one', keyIds: ['old', 'new'] },
      { id: 'two', keyIds: ['new', 'old'] },
    ])
  })
}
