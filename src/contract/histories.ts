import { expect } from 'chai'
import { it } from 'mocha'
import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type {
  AuditEvent,
  AuditLog,
  AuditQuery,
  RecordedEvent,
  ResetTokenStore,
  TokenHistories,
  TokenHistory,
  VerificationTokenStore,
} from '../ports/index.ts'
import {
  after,
  hour,
  minute,
  mustExist,
  oddTexts,
  sampleClaim,
  sampleResetToken,
  sampleVerificationToken,
} from './samples.ts'

type SampleToken = ReturnType<typeof sampleResetToken>

function untouched(token: SampleToken): TokenHistory {
  const { id, userId, email, passwordDigest, carried, mailJobId, createdAt, expiresAt } = token
  return {
    id,
    userId,
    email,
    passwordDigest,
    carried,
    mailJobId,
    createdAt,
    expiresAt,
    usedAt: undefined,
    claimedAt: undefined,
    invalidatedAt: undefined,
    completedAt: undefined,
  }
}

export function itTellsWhatBecameOfResetTokens(port: () => ResetTokenStore): void {
  async function issued(changes: Partial<SampleToken> = {}) {
    const token = sampleResetToken(changes)
    expect(await port().issue(token)).to.equal(true)
    return token
  }

  itTellsTokenHistories(port, issued)

  it('tells of a reset when it was decided, used and completed', async () => {
    const token = await issued()
    const history = () => port().findHistory(token.tokenHash)
    await port().claim(token.tokenHash, sampleClaim({ at: after(1) }))
    const claimed = { ...untouched(token), claimedAt: after(1) }
    expect(await history()).to.deep.equal(claimed)
    await port().markUsed(token.id, after(2))
    expect(await history()).to.deep.equal({ ...claimed, usedAt: after(2) })
    await port().complete(token.id, after(3))
    const completed = { ...claimed, usedAt: after(2), completedAt: after(3) }
    expect(await history()).to.deep.equal(completed)
    for (const late of [after(4), after(5)]) {
      await port().markUsed(token.id, late)
      await port().complete(token.id, late)
      await port().reject(token.id, late)
      await port().revoke({ id: token.id }, late)
    }
    expect(await history()).to.deep.equal(completed)
  })

  it('tells of a rejected reset when it was decided and when it lost', async () => {
    const token = await issued()
    await port().claim(token.tokenHash, sampleClaim({ at: after(1) }))
    await port().reject(token.id, after(2))
    await port().reject(token.id, after(3))
    expect(await port().findHistory(token.tokenHash)).to.deep.equal({
      ...untouched(token),
      claimedAt: after(1),
      invalidatedAt: after(2),
    })
  })

  it('tells when a newer link or a failed mail made it void', async () => {
    const replaced = await issued({ userId: 'replaced' })
    await issued({ userId: 'replaced', createdAt: after(1) })
    const voided = await issued({ userId: 'voided' })
    await port().invalidateLive('voided', { ...voided, attempt: 2 }, after(2))
    for (const [token, invalidatedAt] of [
      [replaced, after(1)],
      [voided, after(2)],
    ] as const) {
      const history = await port().findHistory(token.tokenHash)
      expect(history).to.deep.equal({ ...untouched(token), invalidatedAt })
    }
  })

  it('tells of a revoked link as of one that expired then', async () => {
    const token = await issued()
    await port().revoke({ id: token.id }, after(3))
    const history = await port().findHistory(token.tokenHash)
    expect(history).to.deep.equal({ ...untouched(token), expiresAt: after(3) })
  })

  it('never tells the new password hash', async () => {
    const token = await issued()
    await port().claim(token.tokenHash, sampleClaim({ newHash: 'the new hash' }))
    const answers = [await port().findHistory(token.tokenHash), await port().historiesOf('ann', 1)]
    expect(JSON.stringify(answers)).to.include(token.id).and.not.include('the new hash')
  })

  it('tells the living and the dead of one user, newest first', async () => {
    const tokens: SampleToken[] = []
    for (const at of [0, 1, 2])
      tokens.push(await issued({ createdAt: after(at), requestedAt: after(at) }))
    await issued({ userId: 'bob' })
    const [oldest, older, newest] = tokens.map(untouched)
    expect(await port().historiesOf('ann', 10)).to.deep.equal([
      newest,
      { ...older, invalidatedAt: after(2) },
      { ...oldest, invalidatedAt: after(1) },
    ])
  })
}

export function itTellsWhatBecameOfVerificationTokens(port: () => VerificationTokenStore): void {
  async function issued(changes: Partial<SampleToken> = {}) {
    const token = sampleVerificationToken(changes)
    await port().issue(token)
    return token
  }

  itTellsTokenHistories(port, issued)

  it('tells when a link verified the address, and that the others expired with it', async () => {
    const used = await issued()
    const other = await issued({ createdAt: after(1) })
    await port().markUsed(used, after(2))
    await port().markUsed(used, after(3))
    expect(await port().historiesOf('ann', 10)).to.deep.equal([
      { ...untouched(other), expiresAt: after(2) },
      { ...untouched(used), usedAt: after(2) },
    ])
  })

  it('tells of a link without a pending login, and of one that was revoked', async () => {
    const token = await issued()
    const without = sampleVerificationToken({ userId: 'bob', pendingLoginId: undefined })
    await port().issue(without)
    await port().revoke({ id: token.id }, after(1))
    expect(await port().findHistory(without.tokenHash)).to.deep.equal(untouched(without))
    expect(await port().findHistory(token.tokenHash)).to.deep.equal({
      ...untouched(token),
      expiresAt: after(1),
    })
  })
}

function itTellsTokenHistories(
  port: () => TokenHistories & Pick<ResetTokenStore, 'findUsable'>,
  issue: (changes: Partial<SampleToken>) => Promise<SampleToken>,
): void {
  it('tells of a link that nobody used, and leaves it usable', async () => {
    const token = await issue({ carried: { clientId: 'app', state: '' } })
    const expected = untouched(token)
    expect(await port().findHistory(token.tokenHash)).to.deep.equal(expected)
    expect(await port().historiesOf('ann', 1)).to.deep.equal([expected])
    expect(await port().findUsable(token.tokenHash, after(1))).to.include({ id: token.id })
  })

  it('tells of a link that expired', async () => {
    const token = await issue({ createdAt: after(-minute), expiresAt: after(-1) })
    expect(await port().findUsable(token.tokenHash, after(0))).to.equal(undefined)
    expect(await port().findHistory(token.tokenHash)).to.deep.equal(untouched(token))
    expect(await port().historiesOf('ann', 1)).to.deep.equal([untouched(token)])
  })

  it('knows no link by another hash, and none of another user', async () => {
    const token = await issue({})
    for (const each of [...oddTexts, '0'.repeat(64), token.id, token.tokenHash.toUpperCase()])
      expect(await port().findHistory(each), each).to.equal(undefined)
    for (const each of [...oddTexts, 'bob', 'an', 'Ann'])
      expect(await port().historiesOf(each, 10), each).to.deep.equal([])
    expect(await port().findHistory(token.tokenHash)).to.include({ id: token.id })
  })

  it('takes any text for an id of a user', async () => {
    for (const userId of oddTexts) await issue({ userId })
    for (const userId of oddTexts) {
      const histories = await port().historiesOf(userId, 10)
      expect(histories.map((history) => history.userId)).to.deep.equal([userId])
    }
  })

  it('tells at most as many links as were asked for, the newest', async () => {
    for (const at of [1, 2, 3, 4]) await issue({ createdAt: after(at), requestedAt: after(at) })
    for (const [limit, expected] of [
      [1, [4]],
      [3, [4, 3, 2]],
      [10, [4, 3, 2, 1]],
    ] as const) {
      const histories = await port().historiesOf('ann', limit)
      expect(histories.map(({ createdAt }) => createdAt)).to.deep.equal(expected.map(after))
    }
  })

  it('tells the newest link first, whatever order they were saved in', async () => {
    for (const at of [2, 1, 3]) await issue({ createdAt: after(at) })
    const histories = await port().historiesOf('ann', 10)
    expect(histories.map(({ createdAt }) => createdAt)).to.deep.equal([3, 2, 1].map(after))
  })

  it('never tells the hash of a token', async () => {
    const token = await issue({})
    const answers = [await port().findHistory(token.tokenHash), await port().historiesOf('ann', 10)]
    expect(JSON.stringify(answers)).to.include(token.id).and.not.include(token.tokenHash)
  })

  it('gives answers that change nothing when they are changed', async () => {
    const token = await issue({})
    const [history] = await port().historiesOf('ann', 1)
    mustExist(history).carried.state = 'changed'
    mustExist(history).expiresAt.setTime(0)
    expect(await port().findHistory(token.tokenHash)).to.deep.equal(untouched(token))
  })
}

export function itTellsWhatWasRecorded(port: () => AuditLog): void {
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
  const requested = (about: Pick<RecordedEvent, 'accountId'> & { at?: Date } = {}) =>
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
      const found = mustExist(await port().find(event.id))
      const { recordedAt, ...rest } = found
      expect(rest).to.deep.equal(event)
      expect(recordedAt.getTime()).to.be.closeTo(Date.now(), minute)
      expect(await port().list({ limit: 1 })).to.deep.equal([found])
    }
  })

  it('tells a field without a value like one that is not there', async () => {
    for (const told of [{ oauth: 1 }, {}]) {
      const details = { oauth: undefined, idp: undefined, ...told }
      const event = await recorded({ ...another(), ...ended, clientId: undefined, details })
      const found = mustExist(await port().find(event.id))
      expect(JSON.parse(JSON.stringify(found))).to.deep.equal({
        ...ended,
        id: event.id,
        details: told,
        at: event.at.toJSON(),
        recordedAt: found.recordedAt.toJSON(),
      })
    }
  })

  it('tells the first of two events with the same id', async () => {
    const event = await recorded({ ...another(), ...full })
    expect(await port().record({ ...event, accountId: 'bob' }, hour)).to.equal(false)
    expect(await port().find(event.id)).to.include({ accountId: 'ann' })
    expect(await idsOf()).to.deep.equal([event.id])
  })

  it('knows no event by another id', async () => {
    const { id } = await requested()
    for (const each of [...oddTexts, randomUUID(), id.toUpperCase()])
      expect(await port().find(each), each).to.equal(undefined)
    expect(await port().find(id)).to.include({ id })
  })

  it('tells the event that was recorded last first, whenever it happened', async () => {
    const ids: string[] = []
    for (const at of [2, 3, 1]) ids.unshift((await requested({ at: after(at) })).id)
    expect(await idsOf()).to.deep.equal(ids)
    expect(await idsOf({ limit: 2 })).to.deep.equal(ids.slice(0, 2))
    const times = (await port().list({ limit: 3 })).map(({ recordedAt }) => recordedAt.getTime())
    expect(times).to.deep.equal(times.toSorted((one, other) => other - one))
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
      ...oddTexts.flatMap((each) => [
        [{ accountId: each }, []] as const,
        [{ identifierHash: each }, []] as const,
      ]),
    ] as [Partial<AuditQuery>, AuditEvent[]][]) {
      expect(await idsOf(query), JSON.stringify(query)).to.deep.equal(expected.map(({ id }) => id))
    }
  })

  it('tells what was recorded at a time or later', async () => {
    const ids: string[] = []
    for (const accountId of ['ann', 'bob', 'ann'])
      ids.unshift((await requested({ accountId, at: after(-hour) })).id)
    const [newest, middle, oldest] = await port().list({ limit: 3 })
    const from = (event: RecordedEvent | undefined, later = 0) => ({
      recordedFrom: new Date(mustExist(event).recordedAt.getTime() + later),
    })
    expect(await idsOf(from(oldest))).to.deep.equal(ids)
    expect(await idsOf(from(middle))).to.deep.equal(ids.slice(0, 2))
    expect(await idsOf({ ...from(middle), accountId: 'ann' })).to.deep.equal(ids.slice(0, 1))
    expect(await idsOf({ ...from(oldest, 1), limit: 1 })).to.deep.equal(ids.slice(0, 1))
    expect(await idsOf(from(newest, 1))).to.deep.equal([])
  })

  it('gives answers that change nothing when they are changed', async () => {
    const event = await recorded({ ...another(), ...odd })
    for (const found of [await port().find(event.id), ...(await port().list({ limit: 1 }))]) {
      mustExist(found).at.setTime(0)
      mustExist(mustExist(found).details)['count'] = 3
    }
    expect(await port().find(event.id)).to.deep.include(event)
  })
}
