import { carriedBy } from '../contract/requests.ts'
import type { Requester } from '../contract/index.ts'
import type { PendingLogin, Token } from '../store/index.ts'
import { isVerified, wasVoided } from './account.ts'
import { eventBy, refuse, type LinkRefusal } from './link-refusal.ts'
import { MAX_MAILED } from './link.ts'
import type { FlowParts } from './parts.ts'

/** A genuine, usable link, and its account. Nothing is consumed yet. */
export interface OpenedLink {
  username: string
  token: Token
  /** That the link was mailed for. `undefined`: none, or it is over. */
  login: PendingLogin | undefined
  /** The login of this account that waits in this browser: `login`, or else the newest. Or `login`, if it went on here before. */
  here: PendingLogin | undefined
}

/** unverified → verified, by a link or by a code (3.2). */
export function createConfirm(parts: FlowParts) {
  return {
    /**
     * unverified → verified, unused → used. Ends the waiting logins of the account, except `goesOn`. A refusal: another request was first,
     * or the account changed just now.
     */
    async confirm(
      { token, login }: OpenedLink,
      by: Requester,
      goesOn = login?.id,
    ): Promise<'confirmed' | LinkRefusal> {
      if (await verifyAddress(parts, token, goesOn, ({ id }) => id === token.id)) {
        await recordVerified(parts, token.id, token, by)
        return 'confirmed'
      }
      const state = isVerified(token, await parts.users.findById(token.userId)) ? 'used' : 'changed'
      return refuse(parts, token, state, 'account_changed', by)
    },

    /** The same by the right code, typed where the login waits. `false`: another request was first, or the account changed. */
    async confirmByCode(login: PendingLogin, by: Requester): Promise<boolean> {
      const { id, accountId: userId, email = '', captured } = login
      const isOurs = ({ pendingLoginId }: Token) => pendingLoginId === id
      if (!(await verifyAddress(parts, { userId, email }, id, isOurs))) return false
      await recordVerified(parts, id, { userId, carried: carriedBy(captured) }, by)
      return true
    },
  }
}

/** Once for each link or login. If this fails, the login is finished all the same, because the link is used up. */
async function recordVerified(
  parts: FlowParts,
  id: string,
  whose: Pick<Token, 'userId' | 'carried'>,
  by: Requester,
) {
  const event = { ...eventBy(parts, whose, by), id: `verified:${id}` }
  try {
    await parts.audit({ ...event, type: 'email_verification_completed' })
  } catch (error) {
    parts.log('error', 'a verification was not recorded', { error: String(error) })
  }
}

/**
 * `false`: another request verified the address, or its links were voided just now.
 *
 * @param isOurs - picks the links to mark as used. So "This wasn't me" of their mails finds that they verified.
 */
async function verifyAddress(
  { users, pendingLogins, verificationTokens, clock }: FlowParts,
  { userId, email }: Pick<Token, 'userId' | 'email'>,
  goesOn: string | undefined,
  isOurs: (token: Token) => boolean,
): Promise<boolean> {
  const endOthers = () =>
    pendingLogins.change({ accountId: userId, except: goesOn }, { isVoid: true })
  const ours = async () => (await verificationTokens.ofUser(userId, MAX_MAILED)).filter(isOurs)
  // Before, because each remaining login can go on once the address is verified. And after, for logins that began meanwhile.
  await endOthers()
  if (!(await users.markEmailVerified(userId, email))) return false
  for (const token of await ours()) await verificationTokens.use(token, clock.now())
  await endOthers()
  // This marks links as used, then looks for void ones. "This wasn't me" voids, then looks for used ones. So one sees the other.
  if (!(await ours()).some(wasVoided)) return true
  await users.markEmailUnverified?.(userId, email)
  return false
}
