import { recordAction } from './audit.ts'
import type { AdminAnswer, AdminParts, AdminRequest } from './parts.ts'

/** Without a look at the user, who may be gone; and recorded without the id, which would be the next thing to forget. */
export async function forget(
  parts: AdminParts,
  request: AdminRequest<'forgetUser'>,
): Promise<AdminAnswer<'forgetUser'>> {
  const { id } = request.body
  const accountHash = parts.keyedHash(id)
  await recordAction(parts, request, 'user_forget', { details: { account_hash: accountHash } })
  const forgotten = await parts.store.forget(id, parts.clock.now(), accountHash)
  return {
    answer: {
      mails: forgotten.mails,
      reset_links: forgotten.resetTokens,
      verification_links: forgotten.verificationTokens,
      invitation_links: forgotten.invitationTokens,
      not_me_links: forgotten.notMeTokens,
      waiting_logins: forgotten.pendingLogins,
      client_logouts: forgotten.clientLogouts,
      events: forgotten.events,
      under_way: forgotten.underWay,
    },
  }
}
