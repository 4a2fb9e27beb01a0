import { expect } from 'chai'
import { eventually } from './eventually.ts'
import type { Harness } from './harness.ts'
import type { Person } from './person.ts'
import { instead } from './records.ts'
import { moveTime } from './time.ts'
import { expectPage } from './user-agent.ts'

/** They choose their first password, and the process dies just after it is set. Another one does the rest, and records it once. */
export async function choosesAsProcessDies(
  h: Harness,
  user: Person,
  link: string,
  password: string,
  completed: () => unknown[],
): Promise<void> {
  let calls = 0
  const dyingAfter = (set: typeof h.users.setFirstPassword): typeof set => {
    return async (...of) => {
      calls += 1
      await set?.(...of)
      throw new Error('the database hiccups')
    }
  }
  await instead(h.users, 'setFirstPassword', dyingAfter, async () => {
    expectPage(await user.choosesPassword(password, link), 500, 'error', 'error')
    await eventually('another process has finished', async () => {
      await moveTime(1_000)
      return completed().at(0)
    })
  })
  expect(calls).to.equal(1)
  expect(await user.hasPassword(password)).to.equal(true)
  expect(completed()).to.have.length(1)
}
