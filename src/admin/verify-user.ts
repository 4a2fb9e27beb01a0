import * as z from 'zod'
import type { User, UserStore } from '../ports/index.ts'
import { recordAction } from './audit.ts'
import { refusal, type AdminCaller, type AdminParts, type Problem } from './operation.ts'
import { object, text } from './schema.ts'

export type Verification = z.infer<typeof Verification>
export const Verification = object('What became of the address of an account.', {
  email: text,
  changed: z.boolean().describe('false: it was in this state before.'),
})

type Outcome = { answer: Verification } | Problem

/** A verified account has no use for the links that are under way; a login that waits goes on by its button. */
export async function verify(
  users: UserStore,
  { id, email, emailVerified }: User,
): Promise<Outcome> {
  if (email === undefined) return NO_ADDRESS
  // What several have verified names none of them: nobody would get a mail by it.
  const isTaken = async () =>
    (await users.findByVerifiedEmail(email)).some((holder) => holder.id !== id)
  if (!emailVerified && (await isTaken())) return TAKEN
  const changed = await users.markEmailVerified(id, email)
  // Somebody may have verified it for another account since. Of two at once, both give way.
  if (changed && (await isTaken()) && (await users.markEmailUnverified?.(id, email))) return TAKEN
  const isSo = changed || (await hasVerified(users, id, email))
  return isSo ? { answer: { email, changed } } : UNCHANGED
}

export async function unverify(users: UserStore, { id, email }: User): Promise<Outcome> {
  if (!users.markEmailUnverified) return UNSUPPORTED
  if (email === undefined) return NO_ADDRESS
  return { answer: { email, changed: await users.markEmailUnverified(id, email) } }
}

/**
 * Changes an account, and records that something was changed: what was asked for was recorded before. A failure to record does not
 * make the request fail.
 */
export function changing(
  action: string,
  change: (users: UserStore, user: User) => Promise<Outcome>,
) {
  return async (user: User, caller: AdminCaller, parts: AdminParts): Promise<Outcome> => {
    const outcome = await change(parts.users, user)
    if (!('answer' in outcome) || !outcome.answer.changed) return outcome
    try {
      const details = { changed: 'true' }
      await recordAction(parts, caller, action, { accountId: user.id, details })
    } catch (error) {
      const about = { action, error: String(error) }
      parts.log('error', 'a change of an account was not recorded', about)
    }
    return outcome
  }
}

async function hasVerified(users: UserStore, id: string, email: string): Promise<boolean> {
  const user = await users.findById(id)
  return user?.emailVerified === true && user.email === email
}

const unchanged = (code: string, why: string) => refusal(409, code, `Nothing was changed: ${why}`)

const NO_ADDRESS = unchanged(
  'no_address',
  'the account has no e-mail address. Add one in your user store.',
)

const UNCHANGED = unchanged(
  'not_verified',
  'the account is disabled, its address was changed just now, or another account has it. See user status.',
)

const TAKEN = unchanged(
  'address_taken',
  'another account has this verified address. With two, no mail could be sent to it. Correct one in your user store.',
)

const UNSUPPORTED = unchanged(
  'unsupported',
  'your user store has no markEmailUnverified. Change it there directly.',
)
