import { expect } from 'chai'
import { it } from 'mocha'
import type {
  AccountFlowsStore,
  MailJobQuery,
  MailJobStatus,
  NewMailJob,
} from '../../../src/store/index.ts'
import { claimedAgain, jobsIn } from './mail-jobs.ts'
import { after, atOnce, hour, minute, mustExist, statusIn } from './samples.ts'

export function itAdministersMailJobs(port: () => AccountFlowsStore['outbox']): void {
  const { added, claim, taken, resolve, sending, isOvertaken, supersedeEarlier } = jobsIn(port)

  const statusOf = (id: string, at?: number) => statusIn(port(), id, at)

  const idsOf = async (query: Partial<MailJobQuery> = {}, at = 1) =>
    (await port().list({ limit: 100, ...query }, after(at))).map(({ id }) => id)

  async function dead(changes: Partial<NewMailJob> = {}, accountId = 'ann') {
    const job = await sending(changes, accountId)
    expect(await port().giveUp(job, after(2), 'no such mailbox')).to.equal(true)
    return job
  }

  async function deadWithoutAccount() {
    const { id } = await added()
    const job = await taken('resolve')
    expect(await port().giveUp(job, after(2), 'expired')).to.equal(true)
    return id
  }

  const revive = (id: string, at = 3) => port().revive(id, after(at), after(at + hour))

  const discard = (id: string, at = 3) => port().discard({ id }, after(at))

  /** That the refusal changed nothing of the job. */
  async function keeps<T>(id: string, act: () => Promise<T>): Promise<T> {
    const before = await statusOf(id)
    const answer = await act()
    expect(await statusOf(id)).to.deep.equal(before)
    return answer
  }

  it('tells of a request without what was typed', async () => {
    const { id } = await added({ identifier: 'typed by a stranger', notBefore: after(10) })
    const { requestedAt, ...status } = mustExist(await statusOf(id))
    expect(mustExist(requestedAt).getTime()).to.be.closeTo(Date.now(), minute)
    expect(status).to.deep.equal({
      id,
      kind: 'password_reset',
      state: 'waiting',
      accountId: undefined,
      nextAttemptAt: after(10),
      expiresAt: after(hour),
      attempts: 0,
      reason: undefined,
      isHeld: false,
    })
    const answers = [status, await port().list({ limit: 1 }, after(1))]
    expect(JSON.stringify(answers)).to.include(id).and.not.include('typed')
  })

  it('tells who holds a job, what failed, and when it is tried again', async () => {
    const { id } = await added()
    const expected: Partial<MailJobStatus> = { ...mustExist(await statusOf(id)) }
    const job = await taken('resolve')
    const heldBy = { isHeld: true, nextAttemptAt: after(1 + minute) }
    expect(await statusOf(id)).to.deep.equal({ ...expected, ...heldBy })
    const over = { ...expected, ...heldBy, isHeld: false }
    expect(await statusOf(id, minute)).to.deep.equal({ ...over, isHeld: true })
    expect(await statusOf(id, minute + 1)).to.deep.equal(over)
    await resolve(job)
    await port().release(job, after(2))
    const ready = { ...expected, accountId: 'ann', nextAttemptAt: after(2) }
    expect(await statusOf(id)).to.deep.equal(ready)
    const held = await taken('send', 2)
    const sending = { ...ready, isHeld: true, attempts: 1, nextAttemptAt: after(2 + minute) }
    expect(await statusOf(id)).to.deep.equal(sending)
    await port().release(held, after(minute), 'refused for now')
    const failed = { ...sending, isHeld: false, reason: 'refused for now' }
    expect(await statusOf(id)).to.deep.equal({ ...failed, nextAttemptAt: after(minute) })
    const again = await taken('send', minute)
    await port().giveUp(again, after(minute), 'no such mailbox')
    const over2 = { ...failed, attempts: 2, reason: 'no such mailbox', state: 'dead' }
    expect(await statusOf(id)).to.deep.equal({ ...over2, nextAttemptAt: undefined })
    expect(await port().list({ limit: 1 }, after(1))).to.deep.equal([await statusOf(id)])
  })

  it('lists what was requested from a time on, or before it, the newest first', async () => {
    const jobs = [await added(), await added(), await added()].toReversed()
    const ids = jobs.map(({ id }) => id)
    const requestedAt = mustExist((await statusOf(mustExist(ids[1])))?.requestedAt)
    expect(await idsOf({ requestedFrom: requestedAt })).to.deep.equal(ids.slice(0, 2))
    expect(await idsOf({ requestedBefore: requestedAt })).to.deep.equal(ids.slice(2))
  })

  it('counts a superseded job as one that waits', async () => {
    const older = await sending()
    const newer = mustExist(await added({ accountId: 'ann' }))
    const job = await taken('resolve')
    expect(job.id).to.equal(newer.id)
    await port().supersede([older.id], after(1))
    expect(await statusOf(older.id)).to.include({ state: 'waiting', isHeld: false })
    expect(await idsOf({ state: 'waiting' })).to.deep.equal([newer.id, older.id])
    expect(await discard(older.id)).to.equal(1)
  })

  it('makes of a dead letter a request that its account made now', async () => {
    const parameters = { clientId: 'app', state: '' }
    const letter = await dead({ parameters, pendingLoginId: 'pending', sendTo: 'ann@example.com' })
    const { requestedAt, ...before } = mustExist(await statusOf(letter.id))
    expect(await port().revive(letter.id, after(minute), after(2 * hour))).to.equal('revived')
    const { requestedAt: now, ...status } = mustExist(await statusOf(letter.id))
    expect(mustExist(now)).to.be.greaterThan(mustExist(requestedAt))
    expect(status).to.deep.equal({
      ...before,
      state: 'waiting',
      nextAttemptAt: after(minute),
      expiresAt: after(2 * hour),
      reason: undefined,
    })
    expect(await claim('send', 2 * hour)).to.equal(undefined)
    expect(await claim('resolve', minute - 1)).to.equal(undefined)
    const revived = await taken('resolve', minute)
    expect(revived).to.deep.equal({
      ...claimedAgain(letter, revived),
      state: 'requested',
      requestedAt: now,
      expiresAt: after(2 * hour),
      isResolved: false,
    })
  })

  it('counts the attempts on after it was revived, and sends within the new life', async () => {
    const letter = await dead({ expiresAt: after(minute) })
    await revive(letter.id)
    const job = await taken('resolve', 3)
    await resolve(job)
    await port().release(job, after(3))
    expect(await claim('expire', hour)).to.equal(undefined)
    expect(await claim('send', hour)).to.include({ id: letter.id, attempts: 2 })
  })

  it('takes a revived job for the latest request of its account', async () => {
    const letter = await dead()
    const newer = await sending({ expiresAt: after(2 * hour) })
    expect(await isOvertaken(letter)).to.equal(true)
    await revive(letter.id)
    const revived = await taken('resolve', 3)
    expect(revived.id).to.equal(letter.id)
    expect(await isOvertaken(revived)).to.equal(false)
    expect(await isOvertaken(newer)).to.equal(false)
    await supersedeEarlier(revived, 3)
    expect(await isOvertaken(newer)).to.equal(false)
    expect(await resolve(revived)).to.equal(true)
    expect(await isOvertaken(newer)).to.equal(true)
    expect(await claim('resolve', 3)).to.include({ id: newer.id, state: 'superseded' })
  })

  it('revives a dead letter for one of 20 that do so at once', async () => {
    const letter = await dead()
    const answers = await atOnce(() => revive(letter.id))
    expect(answers.filter((answer) => answer === 'revived')).to.have.length(1)
    expect(answers.filter((answer) => answer === 'held')).to.have.length(19)
    const claims = await atOnce(() => claim('resolve', 3))
    expect(claims.filter(Boolean)).to.have.length(1)
  })

  it('lets a job that waits become due at once, and changes nothing else of it', async () => {
    const { id } = await added({ notBefore: after(minute) })
    const before = mustExist(await statusOf(id))
    expect(await revive(id)).to.equal('revived')
    expect(await statusOf(id)).to.deep.equal({ ...before, nextAttemptAt: after(3) })
    expect(await claim('resolve', 3)).to.include({ id, identifier: 'ann' })
  })

  it('lets a mail that waits for its next attempt become due at once', async () => {
    const job = await sending()
    await port().release(job, after(minute), 'refused for now')
    const before = mustExist(await statusOf(job.id))
    const answers = await atOnce(() => revive(job.id))
    expect(answers.filter((answer) => answer === 'revived')).to.have.length(1)
    expect(await statusOf(job.id)).to.deep.equal({ ...before, nextAttemptAt: after(3) })
    expect(await claim('send', 3)).to.include({ id: job.id, attempts: 2 })
  })

  it('leaves a job that is due to the next worker', async () => {
    const { id } = await added()
    expect(await keeps(id, () => revive(id))).to.equal('held')
    const first = await taken('resolve', 3)
    expect(await keeps(id, () => revive(id, 2 * minute))).to.equal('held')
    const second = await taken('resolve', 2 * minute)
    expect(second.id).to.equal(id)
    expect(second.leaseId).not.to.equal(first.leaseId)
  })

  it('discards a dead letter, a job that waits, and one whose lease ran out', async () => {
    const letter = await dead()
    const nobodys = await deadWithoutAccount()
    const lost = await sending()
    const waiting = await added()
    const ids = [letter.id, nobodys, waiting.id]
    for (const id of ids) expect(await discard(id)).to.equal(1)
    expect(await discard(lost.id, minute)).to.equal(0)
    expect(await discard(lost.id, minute + 1)).to.equal(1)
    expect(await idsOf()).to.deep.equal([])
    expect(await port().isHeld(lost)).to.equal(false)
    for (const id of [...ids, lost.id]) expect(await discard(id)).to.equal(0)
    expect(await claim('resolve', hour)).to.equal(undefined)
  })

  it('discards a job for one of 20 that do so at once', async () => {
    const other = await added({ notBefore: after(hour) })
    for (const { id } of [await dead(), await added()]) {
      const answers = await atOnce(() => discard(id))
      expect(answers.filter((answer) => answer === 1)).to.have.length(1)
      expect(answers.filter((answer) => answer === 0)).to.have.length(19)
    }
    expect(await idsOf()).to.deep.equal([other.id])
  })
}
