import type { Requester } from '../contract/index.ts'
import type { Token } from '../store/index.ts'
import { defined } from '../store/kind.ts'
import { isTaken } from './account.ts'
import { eventBy } from './audit.ts'
import { MAX_MAILED } from './link-state.ts'
import { replaceEmail, type Mailed } from './other-address.ts'
import type { FlowParts } from './parts.ts'
import { wasVoided } from './void-links.ts'

/**
 * Verifies the address of a proof: of a link, or of the code of a login. `taken`: another account has the other address, which only the owner
 * of its mailbox is told. `changed`: another request verified the address, or its links were voided just now.
 */
export async function verifyAddress(
  parts: FlowParts,
  proof: Mailed<Pick<Token, 'id' | 'userId' | 'email' | 'addressId' | 'parameters'>>,
  by: Requester,
  goesOn: string | undefined,
): Promise<'verified' | 'taken' | 'changed'> {
  const { users, store, audit, clock, log } = parts
  const { verificationTokens, pendingLogins } = store
  const { id, userId, email, addressId, otherEmail } = proof
  const endOthers = () =>
    pendingLogins.change({ accountId: userId, except: goesOn }, { isVoid: true })
  // The link, or all links of the login with the code. By their mark, "This wasn't me" finds that they verified.
  const isOurs = (token: Token) =>
    token.id === id || (token.pendingLoginId === id && token.addressId === addressId)
  const ours = async () => (await verificationTokens.ofUser(userId, MAX_MAILED)).filter(isOurs)
  const isEnded = async () => (await ours()).some(wasVoided)
  if (otherEmail !== undefined) {
    if (await isTaken(users, userId, otherEmail)) return 'taken'
    // A replaced address cannot be taken back.
    if (await isEnded()) return 'changed'
  }
  // Ends the others first, because each could go on once the address is verified; and again, for those that began meanwhile.
  await endOthers()
  const outcome =
    otherEmail === undefined
      ? await users.markEmailVerified(userId, email)
      : await replaceEmail(parts, userId, email, otherEmail)
  if (!outcome || outcome === 'taken') return outcome || 'changed'
  for (const token of await ours()) await verificationTokens.use(token, clock.now(), otherEmail)
  // Its page still goes on: the account has this address by now.
  if (goesOn && otherEmail) await pendingLogins.change({ id: goesOn }, { email: otherEmail })
  await endOthers()
  // This marks links as used, then looks for void ones. "This wasn't me" voids, then looks for used ones. So one of them sees the other.
  if (await isEnded()) {
    await users.markEmailUnverified?.(userId, otherEmail ?? email)
    return 'changed'
  }
  const details = otherEmail === undefined ? undefined : ({ address: 'replaced' } as const)
  const event = { ...eventBy(clock, proof, by, `verified:${id}`), ...defined({ details }) }
  // If this fails, the login still finishes, because the link is used up.
  await audit({ ...event, type: 'email_verification_completed' }).catch((error: unknown) =>
    log('error', 'a verification was not recorded', { error: String(error) }),
  )
  return 'verified'
}
