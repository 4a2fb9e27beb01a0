import type { User, UserStore } from '../ports/index.ts'
import { recordAction } from './audit.ts'
import type { AdminParts, AdminRefusal, AdminRequest } from './parts.ts'

type Outcome = { answer: { email: string; changed: boolean } } | AdminRefusal

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

/** Records that something was changed: what was asked for was recorded before. A failure of this does not make the request fail. */
export async function recordChange(
  parts: AdminParts,
  request: Pick<AdminRequest, 'actor' | 'requester'>,
  { user, action }: { user: User; action: string },
  changing: Promise<Outcome>,
): Promise<Outcome> {
  const outcome = await changing
  if (!('answer' in outcome) || !outcome.answer.changed) return outcome
  try {
    await recordAction(parts, request, action, { accountId: user.id, details: { changed: 'true' } })
  } catch (error) {
    parts.log('error', 'a change of an account was not recorded', { action, error: String(error) })
  }
  return outcome
}

async function hasVerified(users: UserStore, id: string, email: string): Promise<boolean> {
  const user = await users.findById(id)
  return user?.emailVerified === true && user.email === email
}

const refusal = (code: string, why: string): AdminRefusal => ({
  status: 409,
  code,
  title: `Nothing was changed: ${why}`,
})

const NO_ADDRESS = refusal(
  'no_address',
  'the account has no e-mail address. Add one in your user store.',
)

const UNCHANGED = refusal(
  'not_verified',
  'the account is disabled, its address was changed just now, or another account has it. See user status.',
)

const TAKEN = refusal(
  'address_taken',
  'another account has this verified address. With two, no mail could be sent to it. Correct one in your user store.',
)

const UNSUPPORTED = refusal(
  'unsupported',
  'your user store has no markEmailUnverified. Change it there directly.',
)
