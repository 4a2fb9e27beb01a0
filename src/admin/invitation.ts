import type { InvitationRefusal } from '../flows/invitation.ts'
import type { AdminRefusal } from './parts.ts'

const WHY: Record<InvitationRefusal, string> = {
  not_found: 'the account is gone.',
  disabled: 'the account is disabled. Enable it where your users are.',
  no_address: 'the account has no e-mail address. Give it one where your users are.',
  bad_address: 'the address is not one plain e-mail address. Correct it where your users are.',
  has_password: 'the account has a password. Use user send-reset if it was forgotten.',
  unsupported: 'the users of this host have no setFirstPassword. Add it where your users are.',
}

/** Why nobody was invited. */
export function refusedInvitation(refused: InvitationRefusal): AdminRefusal {
  const isGone = refused === 'not_found'
  return {
    status: isGone ? 404 : 409,
    code: isGone ? 'unknown_account' : refused,
    title: `Nobody was invited: ${WHY[refused]}`,
  }
}
