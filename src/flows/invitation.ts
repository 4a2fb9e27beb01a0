/** Invites an account without a password to choose one (3.4). The link works like that of a reset. */
import { requestMail } from '../jobs/request-mail.ts'
import type { RequestParameters, User } from '../contract/index.ts'
import { NOBODY } from '../contract/parameters.ts'
import { askedByHost, whyNoInvitation, whyNoMail } from './account.ts'
import type { FlowParts } from './parts.ts'

/**
 * `mailId`: a worker mails the invitation, if the limits allow it. By this id, the admin API shows what became of the mail. `refused`: no
 * invitation is mailed. `unsupported`: the users of the host have no `setFirstPassword`.
 */
export type Invited = { mailId: string } | { refused: InvitationRefusal }

export type InvitationRefusal =
  'not_found' | 'disabled' | 'no_address' | 'bad_address' | 'has_password' | 'unsupported'

/** Asks for an invitation. The account is checked now, when the mail is sent, and when the link is used. */
export async function invite(
  parts: FlowParts,
  who: User | string,
  parameters: RequestParameters = {},
  requester = NOBODY,
): Promise<Invited> {
  const { accountId } = askedByHost('invite', who, parameters)
  if (!parts.users.setFirstPassword) return { refused: 'unsupported' }
  const user = await parts.users.findById(accountId)
  if (!user) return { refused: 'not_found' }
  const refused = whyNoMail(user) ?? whyNoInvitation(user)
  if (refused) return { refused }
  const wanted = { accountId, parameters, requester }
  return { mailId: await requestMail(parts, 'invitation', wanted) }
}
