/** The links that a host asks for: an invitation to choose a first password (3.4), and a verification after its own sign-up (3.8). */
import { requestMail } from '../jobs/request-mail.ts'
import type { RequestParameters, User } from '../contract/index.ts'
import { NOBODY } from '../contract/parameters.ts'
import { isJsonObject, must } from '../errors.ts'
import { whyNoInvitation, whyNoMail } from './account.ts'
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

/** Looks up no account: one write and one answer for every id. A worker finds out whether there is an address to verify. */
export async function sendVerification(
  parts: FlowParts,
  who: User | string,
  parameters: RequestParameters = {},
): Promise<{ mailId: string }> {
  const asked = askedByHost('sendVerification', who, parameters)
  return { mailId: await requestMail(parts, 'email_verification', asked) }
}

/** An account and parameters as a host names them in its code, in JavaScript perhaps. No browser is behind its call. */
function askedByHost(method: string, who: User | string, parameters: RequestParameters) {
  const { id: accountId }: { id?: unknown } = typeof who === 'string' ? { id: who } : Object(who)
  must(typeof accountId === 'string', `${method}: name a user, or its id`)
  must(isJsonObject(parameters), `${method}: parameters must be an object`)
  for (const [name, value] of Object.entries(parameters))
    must(typeof value === 'string', `${method}: ${name} must be a text`)
  return { accountId, parameters, requester: NOBODY }
}
