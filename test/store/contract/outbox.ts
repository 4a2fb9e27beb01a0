import { expect } from 'chai'
import { it } from 'mocha'
import { setTimeout as delay } from 'node:timers/promises'
import { defined } from '../../../src/store/kind.ts'
import type { AccountFlowsStore, MailJob } from '../../../src/store/index.ts'
import { claimedAgain, jobsIn } from './mail-jobs.ts'
import { after, atOnce, hour, idOf, minute, sampleMailJob } from './samples.ts'

export function itKeepsMailJobs(port: () => AccountFlowsStore['outbox']): void {
  const jobs = jobsIn(port)
  const { added, claim, taken, resolve, claimed, ready, sending } = jobs
  const { isOvertaken, supersedeEarlier } = jobs

  async function changesNothing(job: MailJob) {
    await mayNotWrite(job)
    await port().remove(job)
  }

  async function mayNotWrite(job: MailJob) {
    expect(await resolve(job, 'eve')).to.equal(false)
    expect(await port().isHeld(job)).to.equal(false)
    for (const reason of [undefined, 'lost']) await port().release(job, after(1), reason)
    expect(await port().giveUp(job, after(1), 'lost')).to.equal(false)
  }

  it('gives a job out as it was added, with the time of the database', async () => {
    const jobs = [
      await added(),
      await added({
        kind: 'email_verification',
        identifier: undefined,
        accountId: 'ann',
        pendingLoginId: 'pending',
        sendTo: 'ann@example.com',
        parameters: { clientId: 'app', redirectUri: 'x:/', scope: 'openid', state: '$a.b' },
        requester: {
          address: undefined,
          userAgent: 'test',
          uiLocales: 'de-AT de',
          acceptLanguage: 'fr,en',
          isAdmin: true,
        },
      }),
    ]
    for (const job of jobs) {
      const { requestedAt, leaseId, requester, ...rest } = await taken('resolve')
      expect({ ...defined(rest), requester: defined(requester) }).to.deep.equal({
        ...defined(job),
        requester: defined(job.requester),
        state: 'requested',
        isResolved: false,
        attempts: 0,
        availableAt: after(1 + minute),
      })
      expect(leaseId).to.match(/./)
      expect(requestedAt.getTime()).to.be.closeTo(Date.now(), minute)
    }
  })

  it('adds a job once', async () => {
    const job = await claimed()
    await delay(3)
    await port().add({ ...sampleMailJob({ id: job.id }), identifier: 'another' })
    expect(await claim('resolve', minute)).to.equal(undefined)
    const again = await taken('resolve', 2 * minute)
    expect(again).to.deep.equal(claimedAgain(job, again))
    expect(await claim('resolve', 2 * minute)).to.equal(undefined)
  })

  it('gives out the job that has been due for the longest, the oldest of several', async () => {
    const late = await added({ notBefore: after(10) })
    const [first, second] = [await added(), await added()]
    for (const { id } of [first, second]) expect(idOf(await claim('resolve', 9))).to.equal(id)
    expect(await claim('resolve', 9), 'before its time').to.equal(undefined)
    expect(idOf(await claim('resolve', 10))).to.equal(late.id)
    expect(await claim('resolve', 10)).to.equal(undefined)
  })

  it('gives each of 20 jobs to one of 20 workers that claim at once', async () => {
    const jobs = await Promise.all(Array.from({ length: 20 }, () => added()))
    const claims = await atOnce(async () => {
      const mine: string[] = []
      for (;;) {
        const some = await port().claim('resolve', 3, after(1), after(minute))
        expect(some).to.have.length.within(0, 3)
        if (some.length === 0) return mine
        mine.push(...some.map(({ id }) => id))
      }
    })
    expect(claims.flat()).to.have.members(jobs.map(({ id }) => id))
  })

  it('keeps the account and erases the typed identifier', async () => {
    const job = await claimed()
    expect(await resolve(job)).to.equal(true)
    expect(await claim('send', minute - 1)).to.equal(undefined)
    const again = await claim('send', minute)
    expect(again).to.include({ accountId: 'ann', identifier: undefined, isResolved: true })
    expect(again).to.include({ attempts: 2 })
  })

  it('gives a job out to be sent once it is ready, within its life, and counts the attempts', async () => {
    const { id } = await ready()
    expect(await claim('resolve', hour - 1)).to.equal(undefined)
    expect(await claim('send', 0)).to.equal(undefined)
    expect(await claim('expire')).to.equal(undefined)
    expect(await claim('send')).to.include({ id, accountId: 'ann', attempts: 1 })
    expect(await claim('send', 2)).to.equal(undefined)
    expect(await claim('send', minute + 1)).to.include({ id, attempts: 2 })
  })

  it('gives a job out to be ended once its life is over', async () => {
    const { id } = await ready()
    expect(await claim('expire', hour - 1)).to.equal(undefined)
    expect(await claim('send', hour)).to.equal(undefined)
    expect(idOf(await claim('expire', hour))).to.equal(id)
    expect(await claim('expire', hour)).to.equal(undefined)
  })

  it('gives out together what is to be looked up and what is to be sent, and holds each as long as it is told', async () => {
    const [found, typed] = [await ready(), await added()]
    const both = await port().claim('due', 10, after(1), after(minute), after(2 * minute))
    const held = both.map(({ id, attempts, availableAt }) => [id, attempts, availableAt])
    expect(held).to.have.deep.members([
      [found.id, 1, after(2 * minute)],
      [typed.id, 0, after(minute)],
    ])
    expect(await claim('due', minute - 1)).to.equal(undefined)
    // Of one whose life is over, only the request is ended here.
    expect(idOf(await claim('due', hour))).to.equal(typed.id)
    expect(await claim('due', hour)).to.equal(undefined)
  })

  it('supersedes what the account asked for earlier, of the same kind', async () => {
    const parked = await ready()
    const known = await added({ kind: 'password_reset', accountId: 'ann', notBefore: after(hour) })
    const others = [
      await added({ kind: 'email_verification', accountId: 'ann', notBefore: after(hour) }),
      await added({ accountId: 'bob', notBefore: after(hour) }),
      await added({ notBefore: after(hour) }),
    ]
    const newest = await ready()
    await supersedeEarlier(newest)
    for (const { id } of [parked, known]) {
      const superseded = await taken('resolve')
      expect(superseded).to.include({ id, state: 'superseded' })
      await port().remove(superseded)
    }
    expect(idOf(await claim('send'))).to.equal(newest.id)
    expect(await claim('send')).to.equal(undefined)
    for (const { id } of others) {
      expect(await claim('resolve', hour)).to.include({ id, state: 'requested' })
    }
  })

  it('takes a superseded job from whoever holds it', async () => {
    const held = await sending()
    expect(await port().isHeld(held)).to.equal(true)
    const newest = await ready()
    await supersedeEarlier(newest)
    await mayNotWrite(held)
    expect(await claim('resolve')).to.include({ id: held.id, state: 'superseded' })
    await port().remove(held)
    expect(await claim('resolve', hour)).to.equal(undefined)
  })

  it('knows whether a later request of the account was looked up, also as a dead letter', async () => {
    const older = await ready()
    const newer = await claimed({ accountId: 'ann' })
    expect(await isOvertaken(older)).to.equal(false)
    await resolve(newer)
    expect(await isOvertaken(older)).to.equal(true)
    expect(await isOvertaken({ ...newer, accountId: 'ann' })).to.equal(false)
    expect(await isOvertaken({ ...older, accountId: 'bob' })).to.equal(false)
    expect(await isOvertaken({ ...older, kind: 'email_verification' })).to.equal(false)
    expect(await isOvertaken({ ...older, sendTo: 'ann@example.com' })).to.equal(false)
    expect(await port().giveUp(newer, after(1), 'refused')).to.equal(true)
    expect(await isOvertaken(older)).to.equal(true)
  })

  it('gives a job out again once its lease ran out, and changes nothing for its earlier holder', async () => {
    const lost = await claimed()
    expect(await claim('resolve', minute)).to.equal(undefined)
    const held = await taken('resolve', minute + 1)
    expect(held.leaseId).not.to.equal(lost.leaseId)
    const both = await Promise.all([port().isHeld(lost), port().isHeld(held)])
    expect(both).to.deep.equal([false, true])
    await changesNothing(lost)
    expect(await claim('resolve', 2 * minute)).to.equal(undefined)
    const again = await taken('resolve', 2 * minute + 1)
    expect(again).to.deep.equal(claimedAgain(held, again))
  })

  it('is gone once it is removed', async () => {
    const job = await claimed()
    await port().remove(job)
    await changesNothing(job)
    expect(await claim('resolve', 2 * hour)).to.equal(undefined)
    expect(await port().list({ limit: 9 }, after(1))).to.deep.equal([])
  })

  it('keeps nothing of a job of a form but its id once it is removed, and adds no other under it', async () => {
    const [job, superseded] = [await added({ keepsId: true }), await added({ keepsId: true })]
    const held = await port().claim('resolve', 10, after(1), after(minute))
    expect(held.map(({ keepsId }) => keepsId)).to.deep.equal([true, true])
    await port().supersede([superseded.id], after(1))
    await Promise.all(held.map((each) => port().remove(each)))
    await port().add(job)
    await port().add({ ...superseded, identifier: 'another' })
    expect(await port().list({ limit: 10 }, after(1))).to.deep.equal([])
    expect(await port().list({ state: 'waiting', limit: 10 }, after(1))).to.deep.equal([])
    expect(await port().revive(job.id, after(1), after(hour))).to.equal('not_found')
    expect(await port().discard({ id: job.id }, after(hour))).to.equal(0)
    expect(await port().giveUpUnreadable(after(1))).to.deep.equal([])
    expect(await claim('resolve', hour)).to.equal(undefined)
    const other = await added({ keepsId: true })
    expect(idOf(await claim('resolve'))).to.equal(other.id)
  })

  it('waits for the next attempt, and belongs to nobody until then', async () => {
    const job = await sending()
    await port().release(job, after(10), 'refused for now')
    await changesNothing(job)
    expect(await claim('send', 9)).to.equal(undefined)
    expect(await claim('send', 10)).to.include({ attempts: 2 })
  })

  it('is never given out again once nobody will try again', async () => {
    const job = await sending()
    expect(await port().giveUp(job, after(2), 'no such mailbox')).to.equal(true)
    await changesNothing(job)
    for (const stage of ['resolve', 'send', 'expire'] as const) {
      expect(await claim(stage, 2 * hour)).to.equal(undefined)
    }
    await port().add(sampleMailJob({ id: job.id }))
    expect(await claim('resolve', 2 * hour)).to.equal(undefined)
  })

  it('takes no readable job for an unreadable one', async () => {
    const job = await claimed()
    await ready()
    expect(await port().giveUpUnreadable(after(2))).to.deep.equal([])
    expect(await port().isHeld(job)).to.equal(true)
  })
}
