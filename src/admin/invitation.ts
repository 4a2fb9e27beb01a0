import type { InvitationRefusal } from '../flows/invitation.ts'
import type { Requester, User } from '../ports/index.ts'
import { sendLink, type Diagnosis } from './causes.ts'
import type { AdminAnswer, AdminParts, AdminRefusal, AdminRequest } from './parts.ts'

/** Mails are asked for in the name of an admin: neither language nor browser are those of the reader. */
export const byAdmin = ({ address, userAgent }: Requester): Requester => ({
  address,
  userAgent,
  isAdmin: true,
})

export async function invite(
  parts: Pick<AdminParts, 'invite'>,
  { id }: User,
  { requester }: Pick<AdminRequest, 'requester'>,
): Promise<AdminAnswer<'inviteUser'> | AdminRefusal> {
  const invited = await parts.invite(id, {}, byAdmin(requester))
  if ('mailId' in invited) return { answer: { mail_id: invited.mailId } }
  const { refused } = invited
  const isGone = refused === 'not_found'
  return {
    status: isGone ? 404 : 409,
    code: isGone ? 'unknown_account' : refused,
    title: `Nobody was invited: ${WHY[refused]}`,
  }
}

const WHY: Record<InvitationRefusal, string> = {
  not_found: 'the account is gone.',
  disabled: 'the account is disabled. Enable it where your users are.',
  no_address: 'the account has no e-mail address. Give it one where your users are.',
  bad_address: 'the address is not one plain e-mail address. Correct it where your users are.',
  has_password: 'the account has a password. Use user send-reset if it was forgotten.',
  unsupported: 'the users of this host have no setFirstPassword. Add it where your users are.',
}

export const hasPassword = (user: User): Diagnosis => ({
  cause: 'has_password',
  summary: 'The account has a password: it gets no invitation.',
  advice: `Have the person sign in, or send a reset link: ${sendLink(user, 'password_reset')}`,
})
