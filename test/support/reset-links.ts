import type { Person } from './person.ts'
import { expect } from 'chai'
import type { User } from '../../src/index.ts'
import type { Harness } from './harness.ts'
import { isIdle, later } from './jobs.ts'
import { addVerified } from './person.ts'

/** What a host may write into the record of a user that was not reset by us. */
export const OTHER_HASH = '$2b$04$CCCCCCCCCCCCCCCCCCCCC.E7iYKmz3HnBJeEDbgBwEjVHZJRxEVVu'

export interface UserWithLink {
  user: Person
  link: string
}

/** A user that no other test has, and the reset link in their mail. */
export async function userWithLink(
  h: Harness,
  changes: Partial<User> = {},
  carried: Record<string, string> = {},
): Promise<UserWithLink> {
  const user = await addVerified(h, changes)
  await h.forgot(user.username, carried)
  const { link } = await h.mail.mailTo(user.email ?? '')
  await isIdle(h)
  return { user, link }
}

/** The same, an hour later. */
export async function userWithExpiredLink(
  h: Harness,
  carried: Record<string, string> = {},
): Promise<UserWithLink> {
  const both = await userWithLink(h, {}, carried)
  await later(h, 3_600_000)
  return both
}

/** A new link of that user works. */
export async function isMendedBy(h: Harness, user: Person): Promise<void> {
  const link = await user.forgets()
  expect((await h.reset(link, 'an honest password')).mode).to.equal('done')
  expect(await user.hasPassword('an honest password')).to.equal(true)
}
