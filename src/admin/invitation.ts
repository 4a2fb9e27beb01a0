import type { InvitationRefusal } from '../flows/invitation.ts'
import type { Requester, User } from '../ports/index.ts'
import { refusal, type AdminCaller, type AdminParts, type Problem } from './operation.ts'

/** Mails are asked for in the name of an admin: neither language nor browser are those of the reader. */
export const byAdmin = ({ address, userAgent }: Requester): Requester => ({
  address,
  userAgent,
  isAdmin: true,
})

export async function invite(
  { id }: User,
  { requester }: AdminCaller,
  parts: Pick<AdminParts, 'invite'>,
): Promise<{ answer: { mail_id: string } } | Problem> {
  const invited = await parts.invite(id, {}, byAdmin(requester))
  if ('mailId' in invited) return { answer: { mail_id: invited.mailId } }
  const { refused } = invited
  const title = `Nobody was invited: ${WHY[refused]}`
  return refused === 'not_found'
    ? refusal(404, 'unknown_account', title)
    : refusal(409, refused, title)
}

const WHY: Record<InvitationRefusal, string> = {
  not_found: 'the account is gone.',
  disabled: 'the account is disabled. Enable it where your users are.',
  no_address: 'the account has no e-mail address. Give it one where your users are.',
  bad_address: 'the address is not one plain e-mail address. Correct it where your users are.',
  has_password: 'the account has a password. Use user send-reset if it was forgotten.',
  unsupported: 'the users of this host have no setFirstPassword. Add it where your users are.',
}
