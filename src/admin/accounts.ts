import { newId } from '../crypto/token.ts'
import type { EndedSessions } from '../flows/end-sessions.ts'
import { findAccount, type AccountQuery } from './find-account.ts'
import { requestMail } from '../outbox/request.ts'
import type { UserStatus } from './user-status.ts'
import type { AccountQuery as WireQuery } from './api-types.ts'
import type { ForgottenAccount, MailOutbox, User, UserStore } from '../ports/index.ts'
import type { Settings } from '../settings/table.ts'
import type { AuditAction } from './audit.ts'
import type { AdminAnswer, AdminEndpoints, AdminRefusal, AdminRequest } from './router.ts'
import { toUserStatus } from './shapes.ts'

export interface AdminAccountsParts {
  users: UserStore
  statusOf(user: User): Promise<UserStatus>
  outbox: Pick<MailOutbox, 'add'>
  endSessions(accountId: string): Promise<EndedSessions>
  forget(accountId: string, accountHash: string): Promise<ForgottenAccount>
  /** Stands for an account that is forgotten, in what is kept of it. */
  keyedHash(text: string): string
  auditAction: AuditAction
  settings(): Settings
  now(): Date
}

type AccountOperation = 'userStatus' | 'sendReset' | 'sendVerification' | 'endSessions'

/** What an admin does with one account; the host's users are asked through their port alone. */
export function adminAccounts(parts: AdminAccountsParts) {
  const { users, outbox, auditAction, settings, now } = parts

  /** Finds the account, records who looked, and does the work. */
  function forAccount<N extends AccountOperation>(
    action: string,
    work: (user: User, request: AdminRequest<N>) => Promise<AdminAnswer<N>>,
  ) {
    return async (request: AdminRequest<N>): Promise<AdminAnswer<N> | AdminRefusal> => {
      const query = queryOf(request.body)
      if (!query) return INVALID
      const found = await findAccount(users, query)
      if (found === 'unknown') return UNKNOWN
      if ('candidates' in found) return ambiguous(found.candidates)
      await auditAction(request, action, { accountId: found.id })
      return work(found, request)
    }
  }

  const ask =
    (kind: 'password_reset' | 'email_verification', lifetimeMs: (settings: Settings) => number) =>
    async (user: User, { requester }: Pick<AdminRequest, 'requester'>) => {
      const id = newId()
      const { address, userAgent } = requester
      const by = { address, userAgent, isAdmin: true }
      const request = { id, kind, accountId: user.id, carried: {}, requester: by }
      await requestMail(outbox, request, lifetimeMs(settings()), now())
      return { answer: { mail_id: id } }
    }

  return {
    userStatus: forAccount<'userStatus'>('user_status', async (user) => ({
      answer: toUserStatus(await parts.statusOf(user)),
    })),

    sendReset: forAccount<'sendReset'>(
      'send_reset',
      ask('password_reset', ({ passwordResetExpiration }) => passwordResetExpiration),
    ),

    sendVerification: forAccount<'sendVerification'>(
      'send_verification',
      ask('email_verification', ({ emailVerificationExpiration }) => emailVerificationExpiration),
    ),

    endSessions: forAccount<'endSessions'>('end_sessions', async ({ id }) => {
      const { oauth, idp } = await parts.endSessions(id)
      return {
        answer: { ...(oauth !== undefined && { oauth }), ...(idp !== undefined && { idp }) },
      }
    }),

    // Without a look at the user, who may be gone; and recorded without the id, which would be the next thing to forget.
    async forgetUser(request) {
      const { id } = request.body
      const accountHash = parts.keyedHash(id)
      await auditAction(request, 'user_forget', { details: { account_hash: accountHash } })
      const forgotten = await parts.forget(id, accountHash)
      return {
        answer: {
          mails: forgotten.mails,
          reset_links: forgotten.resetTokens,
          verification_links: forgotten.verificationTokens,
          waiting_logins: forgotten.pendingLogins,
          events: forgotten.events,
          under_way: forgotten.underWay,
        },
      }
    },
  } satisfies Partial<AdminEndpoints>
}

function queryOf({ id, user }: WireQuery): AccountQuery | undefined {
  if (id !== undefined) return user === undefined ? { id } : undefined
  return user === undefined ? undefined : { user }
}

const INVALID: AdminRefusal = {
  status: 400,
  code: 'invalid_request',
  title: 'Name one account, by id or by user.',
  errors: [{ key: 'user', expected: 'either id or user', got: 'both or neither' }],
}

const UNKNOWN: AdminRefusal = {
  status: 404,
  code: 'unknown_account',
  title: 'There is no account with this username, verified e-mail address or id.',
}

function ambiguous(candidates: User[]): AdminRefusal {
  return {
    status: 409,
    code: 'ambiguous_account',
    title: 'Several accounts could be meant. Name one by its id.',
    candidates: candidates.map(({ id, username }) => ({ id, username })),
  }
}
