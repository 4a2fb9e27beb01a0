/**
 * An account without a password is invited to choose one: section 3.4 of the specification, in code.
 *
 * | state  | trigger                     | here                                      | next        |
 * |--------|-----------------------------|-------------------------------------------|-------------|
 * | (none) | the host or an admin asks   | `invite`; later in a worker, `kinds.ts`   | unused      |
 * | unused | GET accept-invitation       | `open`                                    | unused      |
 * | unused | POST accept-invitation      | `complete`                                | used        |
 * | unused | a newer invitation          | in a worker, `kinds.ts`                   | invalidated |
 * | unused | time passes                 | compared in every look-up                 | expired     |
 * | any    | a new invitation from it    | `renew`; later in a worker, `kinds.ts`    |             |
 */
import { newId } from '../crypto/token.ts'
import { requestMail } from '../jobs/request.ts'
import type { CarriedParameters, Requester, User } from '../contract/index.ts'
import { whyNoInvitation, whyNoMail } from './account.ts'
import { NOBODY, type FlowParts } from './parts.ts'
import { createPasswordLink } from './password-link.ts'

/**
 * `mailId`: the invitation will be mailed, as far as the limits allow; the admin API shows by it what became of it. `refused`: there will
 * be none. `unsupported`: the users of the host have no `setFirstPassword`.
 */
export type Invited = { mailId: string } | { refused: InvitationRefusal }

/** Why an account is not invited. */
export type InvitationRefusal =
  'not_found' | 'disabled' | 'no_address' | 'bad_address' | 'has_password' | 'unsupported'

export type Invitation = ReturnType<typeof createInvitation>

export function createInvitation(parts: FlowParts) {
  const { users, outbox, settings, clock } = parts
  return {
    ...createPasswordLink(parts, 'invitation'),

    /** Asks for an invitation. The account is checked now, when the mail is sent, and when the link is used. */
    async invite(
      who: User | string,
      carried: CarriedParameters = {},
      requester: Requester = NOBODY,
    ): Promise<Invited> {
      for (const [name, value] of Object.entries(carried))
        if (typeof value !== 'string') throw new TypeError(`invite: ${name} must be a text`)
      const accountId = typeof who === 'string' ? who : who.id
      if (!users.setFirstPassword) return { refused: 'unsupported' }
      const user = await users.findById(accountId)
      if (!user) return { refused: 'not_found' }
      const refused = whyNoMail(user) ?? whyNoInvitation(user)
      if (refused) return { refused }
      const id = newId()
      const wanted = { id, kind: 'invitation', accountId, carried, requester } as const
      await requestMail(outbox, wanted, settings(), clock.now())
      return { mailId: id }
    },
  }
}
