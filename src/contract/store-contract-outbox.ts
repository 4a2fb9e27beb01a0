import { expect } from 'chai'
import { it } from 'mocha'
import { setTimeout as delay } from 'node:timers/promises'
import type { MailOutbox, NewMailJob } from '../ports.ts'
import {
  after,
  atOnce,
  hour,
  idOf,
  minute,
  mustExist,
  sampleMailJob,
} from './store-contract-samples.ts'

export function itKeepsMailJobs(port: () => MailOutbox): void {
  async function added(changes: Partial<NewMailJob> = {}) {
    const job = sampleMailJob(changes)
    await port().add(job)
    // The time of the database counts milliseconds.
    await delay(3)
    return job
  }

  async function claimed(leaseId = 'lease') {
    await added()
    return mustExist(await port().claim(leaseId, after(1), after(minute)))
  }

  it('gives a job out as it was added, with the time of the database', async () => {
    const jobs = [
      await added(),
      await added({
        kind: 'email_verification',
        identifier: undefined,
        accountId: 'ann',
        pendingLoginId: 'pending',
        carried: { clientId: 'app', redirectUri: 'x:/', scope: 'openid', state: '$a.b' },
        requester: { address: undefined, userAgent: 'test' },
      }),
    ]
    for (const job of jobs) {
      const { requestedAt, ...rest } = mustExist(await port().claim('lease', after(1), after(hour)))
      expect(rest).to.deep.equal({ ...job, attempts: 1, leaseId: 'lease' })
      expect(requestedAt.getTime()).to.be.closeTo(Date.now(), minute)
    }
  })

  it('gives no job out before its time', async () => {
    const { id } = await added({ notBefore: after(10) })
    expect(await port().claim('lease', after(9), after(minute))).to.equal(undefined)
    expect(idOf(await port().claim('lease', after(10), after(minute)))).to.equal(id)
  })

  it('gives out the oldest job that is due', async () => {
    const late = await added({ notBefore: after(10) })
    const [first, second] = [await added(), await added()]
    expect(idOf(await port().claim('one', after(1), after(minute)))).to.equal(first.id)
    expect(idOf(await port().claim('two', after(10), after(minute)))).to.equal(late.id)
    expect(idOf(await port().claim('three', after(10), after(minute)))).to.equal(second.id)
    expect(await port().claim('four', after(10), after(minute))).to.equal(undefined)
  })

  it('gives each of 20 jobs to one of 20 workers that claim at once', async () => {
    const jobs = await atOnce(() => added())
    const claims = await atOnce(async (worker) => {
      const mine: (string | undefined)[] = []
      for (;;) {
        const job = await port().claim(`worker ${worker}`, after(1), after(minute))
        if (!job) return mine
        mine.push(job.id)
      }
    })
    expect(claims.flat()).to.have.members(jobs.map(({ id }) => id))
  })

  it('gives a job out again once its lease ran out, and counts the attempts', async () => {
    await claimed('first')
    expect(await port().claim('second', after(minute - 1), after(hour))).to.equal(undefined)
    const again = await port().claim('second', after(minute), after(hour))
    expect(again).to.include({ attempts: 2, leaseId: 'second' })
  })

  it('keeps the account and erases the typed identifier', async () => {
    const job = await claimed()
    expect(await port().resolve(job, 'ann')).to.equal(true)
    const again = await port().claim('second', after(minute), after(hour))
    expect(again).to.include({ accountId: 'ann', identifier: undefined })
  })

  it('changes nothing for the holder of an earlier lease', async () => {
    const lost = await claimed('first')
    const held = mustExist(await port().claim('second', after(minute), after(2 * minute)))
    expect(await port().resolve(lost, 'eve')).to.equal(false)
    await port().retry(lost, after(1), 'lost')
    await port().giveUp(lost, after(1), 'lost')
    await port().remove(lost)
    expect(await port().claim('third', after(minute), after(hour))).to.equal(undefined)
    const again = await port().claim('third', after(2 * minute), after(hour))
    expect(again).to.deep.equal({ ...held, attempts: 3, leaseId: 'third' })
  })

  it('is gone once it is removed', async () => {
    const job = await claimed()
    await port().remove(job)
    expect(await port().resolve(job, 'ann')).to.equal(false)
    expect(await port().claim('second', after(hour), after(2 * hour))).to.equal(undefined)
  })

  it('waits for the next attempt, and belongs to nobody until then', async () => {
    const job = await claimed()
    await port().retry(job, after(10), 'refused for now')
    expect(await port().resolve(job, 'ann')).to.equal(false)
    expect(await port().claim('second', after(9), after(minute))).to.equal(undefined)
    expect(await port().claim('second', after(10), after(minute))).to.include({ attempts: 2 })
  })

  it('is never given out again once nobody will try again', async () => {
    const job = await claimed()
    await port().giveUp(job, after(2), 'no such mailbox')
    expect(await port().resolve(job, 'ann')).to.equal(false)
    await port().retry(job, after(3), 'too late')
    expect(await port().claim('second', after(hour), after(2 * hour))).to.equal(undefined)
  })
}
