import type * as z from 'zod'
import { newId } from '../crypto/token.ts'
import { requestMail } from '../outbox/request.ts'
import type { User, UserStore } from '../ports/index.ts'
import type { LinkKind } from '../ports/mail-kinds.ts'
import { recordAction } from './audit.ts'
import { AccountQuery, anyEmail, findAccount } from './find-account.ts'
import { byAdmin, invite } from './invitation.ts'
import { operation, type AdminCaller, type AdminParts, type Problem } from './operation.ts'
import { count, object, optional, text } from './schema.ts'
import { statusOf, UserStatus } from './user-status.ts'
import { changing, unverify, Verification, verify } from './verify-user.ts'

export type Accepted = z.infer<typeof Accepted>
export const Accepted = object('A mail was asked for.', {
  mail_id: text.describe('To ask for its outcome.'),
})

export type EndedSessions = z.infer<typeof EndedSessions>
export const EndedSessions = object(
  'How many records were deleted, and which clients are told. A number is left out if the adapter cannot tell it.',
  {
    oauth: optional(count, 'Grants, codes and tokens.'),
    idp: optional(count, 'Sessions and login results.'),
    clients: optional(
      object(
        'Clients that the account was signed in to. Left out if the provider tells no clients.',
        {
          told: count.describe('They are told to sign the person out.'),
          untold: count.describe('They cannot be told. Sign the person out there.'),
        },
      ),
    ),
  },
)

/** What an admin does with one account; the host's users are asked through their port alone. */
export const userOperations = {
  userStatus: operation({
    route: 'POST /users/status',
    scope: 'account-flows:read',
    summary:
      'An account, its links and mails, and why it got no mail. Also by an unverified address, if the user store supports it. Audited.',
    body: AccountQuery,
    answer: UserStatus,
    // Nothing is done to whoever is found, so that an address need not be verified.
    run: forAccount(
      'user_status',
      async (user, _, parts) => ({ answer: await statusOf(parts, user) }),
      anyEmail,
    ),
  }),

  sendReset: operation({
    route: 'POST /users/send-reset',
    scope: 'account-flows:support',
    summary: 'Requests a reset link for the account. Audited.',
    body: AccountQuery,
    answer: Accepted,
    status: 202,
    run: forAccount('send_reset', ask('password_reset')),
  }),

  inviteUser: operation({
    route: 'POST /users/invite',
    scope: 'account-flows:support',
    summary:
      'Asks for an invitation of an account without a password, to its address. Found by an unverified address too, where the host can. Audited.',
    body: AccountQuery,
    answer: Accepted,
    status: 202,
    // The mail goes to the address of the account, and to no other: like those of the status, it need not be verified.
    run: forAccount('user_invite', invite, anyEmail),
  }),

  sendVerification: operation({
    route: 'POST /users/send-verification',
    scope: 'account-flows:support',
    summary: 'Requests a verification link for the account. Audited.',
    body: AccountQuery,
    answer: Accepted,
    status: 202,
    run: forAccount('send_verification', ask('email_verification')),
  }),

  endSessions: operation({
    route: 'POST /users/end-sessions',
    scope: 'account-flows:support',
    summary:
      'Ends all sessions, grants and tokens of the account, and voids every link mailed to it. Audited.',
    body: AccountQuery,
    answer: EndedSessions,
    run: forAccount('end_sessions', async ({ id }, _, { endSessions }) => ({
      answer: await endSessions(id),
    })),
  }),

  verifyUser: operation({
    route: 'POST /users/verify',
    scope: 'account-flows:support',
    summary: 'Makes the address of an account verified, without a mail. Audited.',
    body: AccountQuery,
    answer: Verification,
    run: forAccount('user_verify', changing('user_verified', verify)),
  }),

  unverifyUser: operation({
    route: 'POST /users/unverify',
    scope: 'account-flows:support',
    summary:
      'Makes the address of an account unverified, if the user store supports it. Sessions and links stay. Audited.',
    body: AccountQuery,
    answer: Verification,
    run: forAccount('user_unverify', changing('user_unverified', unverify)),
  }),
}

type Work<Answer> = (user: User, caller: AdminCaller, parts: AdminParts) => Promise<Answer>

/** Finds the account, records who looked, and does the work. */
function forAccount<Answer>(
  action: string,
  work: Work<Answer>,
  withEmail = (users: UserStore) => (email: string) => users.findByVerifiedEmail(email),
) {
  return async (
    request: AdminCaller & { body: AccountQuery },
    parts: AdminParts,
  ): Promise<Answer | Problem> => {
    const { users } = parts
    const found = await findAccount(users, request.body, withEmail(users))
    if ('code' in found) return found
    await recordAction(parts, request, action, { accountId: found.id })
    return work(found, request, parts)
  }
}

function ask(kind: LinkKind): Work<{ answer: Accepted }> {
  return async ({ id: accountId }, { requester }, { outbox, settings, clock }) => {
    const id = newId()
    const request = { id, kind, accountId, carried: {}, requester: byAdmin(requester) }
    await requestMail(outbox, request, settings.current(), clock.now())
    return { answer: { mail_id: id } }
  }
}
