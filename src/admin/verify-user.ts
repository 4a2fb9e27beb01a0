import * as z from 'zod'
import type { User, UserStore } from '../contract/index.ts'
import { refusal } from './operation.ts'
import { object, text } from './schema.ts'

export type Verification = z.infer<typeof Verification>
export const Verification = object('What became of the address of an account.', {
  email: text,
  changed: z.boolean().describe('false: it was in this state before.'),
})

/** A verified account needs none of the links that are under way. A login that waits goes on by its button. */
export async function verify(users: UserStore, { id, email, emailVerified }: User) {
  if (email === undefined) return unchanged('no_address')
  // An address that several accounts have verified names none of them, so no mail would be sent by it.
  const isTaken = async () =>
    (await users.findByVerifiedEmail(email)).some((holder) => holder.id !== id)
  if (!emailVerified && (await isTaken())) return unchanged('address_taken')
  const changed = await users.markEmailVerified(id, email)
  // Another account may have verified it meanwhile. If two do so at once, both give way.
  if (changed && (await isTaken()) && (await users.markEmailUnverified?.(id, email)))
    return unchanged('address_taken')
  const now = changed ? undefined : await users.findById(id)
  const isSo = changed || (now?.emailVerified === true && now.email === email)
  return isSo ? { email, changed } : unchanged('not_verified')
}

export async function unverify(users: UserStore, { id, email }: User) {
  if (!users.markEmailUnverified) return unchanged('unsupported')
  if (email === undefined) return unchanged('no_address')
  return { email, changed: await users.markEmailUnverified(id, email) }
}

const WHY = {
  no_address: 'the account has no e-mail address. Add one in your user store.',
  not_verified:
    'the account is disabled, its address was changed just now, or another account has it. See user status.',
  address_taken:
    'another account has this verified address. With two, no mail could be sent to it. Correct one in your user store.',
  unsupported: 'your user store has no markEmailUnverified. Change it there directly.',
}

const unchanged = (code: keyof typeof WHY) =>
  refusal(409, code, `Nothing was changed: ${WHY[code]}`)
