import { expect } from 'chai'
import { setTimeout as delay } from 'node:timers/promises'
import { isOtherUnderWay } from '../../../src/mail/limits.ts'
import { earlierThan, isOvertaken } from '../../../src/mail/resolve.ts'
import type { AccountFlowsStore, MailJob, MailStage, NewMailJob } from '../../../src/store/index.ts'
import { after, claimOne, minute, mustExist, sampleMailJob } from './samples.ts'

/** What the suites do with the jobs of an outbox. */
export function jobsIn(port: () => AccountFlowsStore['outbox']) {
  /** Saves a job, later than the one before: the time of the database counts milliseconds. */
  async function added(changes?: Partial<NewMailJob>) {
    const job = sampleMailJob(changes)
    await port().add(job)
    await delay(3)
    return job
  }

  const claim = (stage: MailStage, at = 1) => claimOne(port(), stage, at)

  const taken = async (stage: MailStage, at?: number) => mustExist(await claim(stage, at))

  const resolve = (job: MailJob, accountId = 'ann') => port().resolve(job, accountId, after(minute))

  /** To be looked up. */
  async function claimed(changes?: Partial<NewMailJob>) {
    const { id } = await added(changes)
    const job = await taken('resolve')
    expect(job.id).to.equal(id)
    return job
  }

  /** Looked up, and free to be sent. */
  async function ready(changes?: Partial<NewMailJob>, accountId = 'ann') {
    const job = await claimed(changes)
    expect(await resolve(job, accountId)).to.equal(true)
    await port().release(job, after(1))
    return { ...job, accountId }
  }

  /** Of a worker that then fails to send it. */
  async function sending(changes?: Partial<NewMailJob>, accountId = 'ann') {
    const { id } = await ready(changes, accountId)
    const job = await taken('send')
    expect(job.id).to.equal(id)
    return { ...job, accountId }
  }

  /** "The newest wins", on what an outbox tells of the requests of an account. */
  const others = ({ accountId, kind }: MailJob) => port().requestsOf(accountId ?? '', kind)

  return {
    added,
    claim,
    taken,
    resolve,
    claimed,
    ready,
    sending,
    isOvertaken: async (job: MailJob) => isOvertaken(job, await others(job)),
    isUnderWay: async (job: MailJob, at = 1) => isOtherUnderWay(job, await others(job), after(at)),
    supersedeEarlier: async (job: MailJob, at = 1) =>
      port().supersede(earlierThan(job, await others(job)), after(at)),
  }
}

/** The same job, claimed once more. */
export const claimedAgain = (job: MailJob, { leaseId, availableAt }: MailJob): MailJob => ({
  ...job,
  leaseId,
  availableAt,
})
