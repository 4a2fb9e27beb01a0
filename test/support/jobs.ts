import { expect } from 'chai'
import type { AccountFlowsStore } from '../../src/store/index.ts'
import { eventually } from './eventually.ts'
import type { MailServer } from './mail-server.ts'
import { moveTime } from './time.ts'

/** Of a harness. */
interface Service {
  store: AccountFlowsStore
  mail: MailServer
}

/** Ids of the jobs that wait for a worker. */
export async function jobs({ store }: Service): Promise<string[]> {
  const all = await store.outbox.list({ limit: 1_000 }, new Date())
  return all.flatMap(({ id, state }) => (state === 'dead' ? [] : [id]))
}

/** Waits until a worker has looked at everything that was asked for, and its mails have left. */
export async function isIdle(h: Service): Promise<void> {
  await eventually('no job is left', async () => (await jobs(h)).length === 0)
}

/** Waits until no worker holds a job: mails that cannot leave were given back, and look at their account again. */
export async function isGivenBack({ store }: Service): Promise<void> {
  await eventually('no job is held', async () => {
    const all = await store.outbox.list({ limit: 1_000 }, new Date())
    return all.every(({ isHeld }) => !isHeld)
  })
}

/** Does something that asks for no mail; nothing is under way before. */
export async function withoutJobs<T>(h: Service, work: () => Promise<T>): Promise<T> {
  await isIdle(h)
  const mails = h.mail.mails.length
  const result = await work()
  expect(await jobs(h)).to.deep.equal([])
  expect(h.mail.mails).to.have.length(mails)
  return result
}

/** So much later; a mail that is still under way would be sent again. */
export async function later(h: Service, ms: number): Promise<void> {
  await isIdle(h)
  await moveTime(ms)
}
