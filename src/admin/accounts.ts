import { newId } from '../crypto/token.ts'
import { requestMail } from '../outbox/request.ts'
import type { User, UserStore } from '../ports/index.ts'
import type { LinkKind } from '../ports/mail-kinds.ts'
import { recordAction } from './audit.ts'
import type { AccountQuery } from './description.ts'
import type {
  AdminAnswer,
  AdminEndpoints,
  AdminParts,
  AdminRefusal,
  AdminRequest,
} from './parts.ts'
import { statusOf } from './user-status.ts'

type AccountOperation = 'userStatus' | 'sendReset' | 'sendVerification' | 'endSessions'
type AccountRequest = AdminRequest<AccountOperation>

/** What an admin does with one account; the host's users are asked through their port alone. */
export function accountOperations(parts: AdminParts) {
  /** Finds the account, records who looked, and does the work. */
  function forAccount<N extends AccountOperation>(
    action: string,
    work: (user: User, request: AccountRequest) => Promise<AdminAnswer<N>>,
  ) {
    return async (request: AccountRequest): Promise<AdminAnswer<N> | AdminRefusal> => {
      const found = await findAccount(parts.users, request.body)
      if ('code' in found) return found
      await recordAction(parts, request, action, { accountId: found.id })
      return work(found, request)
    }
  }

  const ask =
    (kind: LinkKind) =>
    async (user: User, { requester }: Pick<AdminRequest, 'requester'>) => {
      const id = newId()
      const { address, userAgent } = requester
      const by = { address, userAgent, isAdmin: true }
      const request = { id, kind, accountId: user.id, carried: {}, requester: by }
      await requestMail(parts.outbox, request, parts.settings.current(), parts.clock.now())
      return { answer: { mail_id: id } }
    }

  return {
    userStatus: forAccount<'userStatus'>('user_status', async (user) => ({
      answer: await statusOf(parts, user),
    })),

    sendReset: forAccount<'sendReset'>('send_reset', ask('password_reset')),

    sendVerification: forAccount<'sendVerification'>(
      'send_verification',
      ask('email_verification'),
    ),

    endSessions: forAccount<'endSessions'>('end_sessions', async ({ id }) => {
      const { oauth, idp } = await parts.endSessions(id)
      return { answer: { oauth, idp } }
    }),

    // Without a look at the user, who may be gone; and recorded without the id, which would be the next thing to forget.
    async forgetUser(request) {
      const { id } = request.body
      const accountHash = parts.keyedHash(id)
      await recordAction(parts, request, 'user_forget', { details: { account_hash: accountHash } })
      const forgotten = await parts.store.forget(id, parts.clock.now(), accountHash)
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

/**
 * Finds the account that an admin means: by its id, or by a text that is the username, the verified address or the id of one
 * account alone. Unlike what a person types at a form, no meaning wins over another.
 */
async function findAccount(
  users: UserStore,
  { id, user }: AccountQuery,
): Promise<User | AdminRefusal> {
  if (id !== undefined) {
    return user === undefined ? ((await users.findById(id)) ?? UNKNOWN) : INVALID
  }
  if (user === undefined) return INVALID
  const [byName, byId, byEmail] = await Promise.all([
    users.findByUsername(user),
    users.findById(user),
    users.findByVerifiedEmail(user),
  ])
  const found = [byName, byId, ...byEmail].filter((user) => user !== undefined)
  const candidates = [...new Map(found.map((user) => [user.id, user])).values()]
  const [only = UNKNOWN, another] = candidates
  return another ? ambiguous(candidates) : only
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
