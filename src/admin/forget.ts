import type * as z from 'zod'
import { recordAction } from './audit.ts'
import { operation } from './operation.ts'
import { count, given, object, wireOf } from './schema.ts'

export type AccountId = z.infer<typeof AccountId>
export const AccountId = object('One account by its id. The user may be deleted already.', {
  id: given,
})

export type ForgottenAccount = z.infer<typeof ForgottenAccount>
export const ForgottenAccount = object('How many records of the account were removed.', {
  mails: count,
  reset_links: count,
  verification_links: count,
  invitation_links: count,
  not_me_links: count,
  waiting_logins: count,
  client_logouts: count,
  events: count,
  under_way: count.describe(
    'Running resets, mails that are being sent, and clients that are still to be told: not removed yet. Try again in a minute; clients may take a day.',
  ),
})

export const forgetOperations = {
  forgetUser: operation({
    route: 'POST /users/forget',
    scope: 'account-flows:support',
    summary:
      'Erases the records about an account: mails, links, waiting logins, events. Actions of admins stay, without the id. Audited, without the id.',
    body: AccountId,
    answer: ForgottenAccount,
    // Without a look at the user, who may be gone; and recorded without the id, which would be the next thing to forget.
    async run(request, parts) {
      const { id } = request.body
      const accountHash = parts.keyedHash(id)
      await recordAction(parts, request, 'user_forget', { details: { account_hash: accountHash } })
      const forgotten = await parts.store.forget(id, parts.clock.now(), accountHash)
      return wireOf(ForgottenAccount, {
        ...forgotten,
        resetLinks: forgotten.resetTokens,
        verificationLinks: forgotten.verificationTokens,
        invitationLinks: forgotten.invitationTokens,
        notMeLinks: forgotten.notMeTokens,
        waitingLogins: forgotten.pendingLogins,
      })
    },
  }),
}
