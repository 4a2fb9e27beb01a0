import { expect } from 'chai'
import type { User } from '../../src/index.ts'
import { addUnverified, mailsTo } from './blocked-login.ts'
import type { Harness } from './harness.ts'
import { isIdle } from './jobs.ts'
import { tokenOf } from './observe.ts'
import { createUserAgent, type Answer } from './user-agent.ts'

/** A user without a password, whose address nobody verified. */
export const addImported = (h: Harness, changes: Partial<User> = {}) =>
  addUnverified(h, { passwordHash: undefined, ...changes })

/** Invites the user, and answers the link of that mail. */
export async function invitationOf(
  h: Harness,
  user: User,
  carried: Parameters<Harness['flows']['invite']>[1] = {},
): Promise<string> {
  const before = mailsTo(h, user)
  expect(await h.flows.invite(user, carried)).to.have.keys('mailId')
  const { link } = await h.mail.mailTo(user.email ?? '', before + 1)
  await isIdle(h)
  return link
}

export async function invitedUser(h: Harness, changes: Partial<User> = {}) {
  const user = await addImported(h, changes)
  return { user, link: await invitationOf(h, user) }
}

export function choose(
  h: Harness,
  link: string,
  password: string,
  confirm = password,
): Promise<Answer> {
  const form = { token: tokenOf(link), password, confirm_password: confirm }
  return createUserAgent().post(`${h.oauthUrl}/accept-invitation`, form)
}
