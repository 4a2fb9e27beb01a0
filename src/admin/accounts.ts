import { newId } from '../crypto/token.ts'
import { requestMail } from '../outbox/request.ts'
import type { User, UserStore } from '../ports/index.ts'
import { equalsInAsciiCase, withoutBlanks } from '../ports/users.ts'
import type { LinkKind } from '../ports/mail-kinds.ts'
import { recordAction } from './audit.ts'
import type { AccountQuery, Candidate } from './description.ts'
import type { AdminEndpoints, AdminParts, AdminRefusal, AdminRequest } from './parts.ts'
import { forget } from './forget.ts'
import { byAdmin, invite } from './invitation.ts'
import { statusOf } from './user-status.ts'
import { recordChange, unverify, verify } from './verify-user.ts'

type AccountRequest = Pick<AdminRequest, 'actor' | 'requester'> & { body: AccountQuery }

/** What an admin does with one account; the host's users are asked through their port alone. */
export function accountOperations(parts: AdminParts) {
  const { users } = parts
  const verifiedEmail = (email: string) => users.findByVerifiedEmail(email)

  /** Finds the account, records who looked, and does the work. */
  function forAccount<Answer>(
    action: string,
    work: (user: User, request: AccountRequest) => Promise<Answer>,
    withEmail = verifiedEmail,
  ) {
    return async (request: AccountRequest): Promise<Answer | AdminRefusal> => {
      const found = await findAccount(users, request.body, withEmail)
      if ('code' in found) return found
      await recordAction(parts, request, action, { accountId: found.id })
      return work(found, request)
    }
  }

  const ask =
    (kind: LinkKind) =>
    async (user: User, { requester }: Pick<AdminRequest, 'requester'>) => {
      const id = newId()
      const request = { id, kind, accountId: user.id, carried: {}, requester: byAdmin(requester) }
      await requestMail(parts.outbox, request, parts.settings.current(), parts.clock.now())
      return { answer: { mail_id: id } }
    }

  return {
    // Nothing is done to whoever is found, so that an address need not be verified.
    userStatus: forAccount(
      'user_status',
      async (user) => ({ answer: await statusOf(parts, user) }),
      anyEmail(users),
    ),

    sendReset: forAccount('send_reset', ask('password_reset')),

    sendVerification: forAccount('send_verification', ask('email_verification')),

    // The mail goes to the address of the account, and to no other: like those of the status, it need not be verified.
    inviteUser: forAccount(
      'user_invite',
      (user, request) => invite(parts, user, request),
      anyEmail(users),
    ),

    endSessions: forAccount('end_sessions', async ({ id }) => {
      const { oauth, idp, clients } = await parts.endSessions(id)
      return { answer: { oauth, idp, clients } }
    }),

    verifyUser: forAccount('user_verify', (user, request) =>
      recordChange(parts, request, { user, action: 'user_verified' }, verify(users, user)),
    ),

    unverifyUser: forAccount('user_unverify', (user, request) =>
      recordChange(parts, request, { user, action: 'user_unverified' }, unverify(users, user)),
    ),

    forgetUser: (request) => forget(parts, request),
  } satisfies Partial<AdminEndpoints>
}

/**
 * Finds the account that an admin means: by its id, or by a text. The text is the username, the verified address or the id, and
 * must match only one account. No kind of match wins over another, unlike in the forms.
 *
 * @param withEmail - finds users by an address.
 */
async function findAccount(
  users: UserStore,
  { id, user }: AccountQuery,
  withEmail: (email: string) => Promise<User[]>,
): Promise<User | AdminRefusal> {
  if (id !== undefined) {
    return user === undefined ? ((await users.findById(id)) ?? unknown(users, [])) : INVALID
  }
  if (user === undefined) return INVALID
  const [only, another, ...others] = await named(users, [user], withEmail)
  if (only && another) return ambiguous([only, another, ...others])
  return only ?? unknown(users, await meant(users, user), user)
}

/** Every user who has one of these texts for a username, an address or an id. */
async function named(
  users: UserStore,
  texts: string[],
  withEmail: (email: string) => Promise<User[]>,
): Promise<User[]> {
  const found = await Promise.all(
    texts.flatMap((text) => [users.findByUsername(text), users.findById(text), withEmail(text)]),
  )
  return onceEach(found.flat().filter((user) => user !== undefined))
}

const onceEach = (users: User[]) => [...new Map(users.map((user) => [user.id, user])).values()]

/**
 * Accounts that a text without a match may mean: with other blanks or another case, by address instead of name, or by an
 * unverified address.
 */
async function meant(users: UserStore, typed: string): Promise<User[]> {
  const text = withoutBlanks(typed)
  const names = [text, text.slice(0, Math.max(text.indexOf('@'), 0))].filter((name) => name !== '')
  const [found, ...inAnyCase] = await Promise.all([
    named(users, names, anyEmail(users)),
    ...names.map((name) => users.findByUsernameInAnyCase?.(name) ?? []),
  ])
  return onceEach([...found, ...inAnyCase.flat()])
}

const anyEmail = (users: UserStore) => (email: string) =>
  users.findByEmail ? users.findByEmail(email) : users.findByVerifiedEmail(email)

const INVALID: AdminRefusal = {
  status: 400,
  code: 'invalid_request',
  title: 'Name one account, by id or by user.',
  errors: [{ key: 'user', expected: 'either id or user', got: 'both or neither' }],
}

function unknown(users: UserStore, candidates: User[], typed = ''): AdminRefusal {
  const refusal = { status: 404, code: 'unknown_account' }
  if (candidates.length > 0) {
    const isAddress = candidates.some(({ email = '' }) => equalsInAsciiCase(email, typed))
    const title = isAddress
      ? 'This address is not verified, so it names no account. Did you mean this one? Give its id or username.'
      : 'There is no account with exactly this name, address or id. Did you mean this one?'
    return { ...refusal, title, candidates: candidates.map(candidateShape) }
  }
  const next = users.findByEmail
    ? 'Ask the person how it is spelled.'
    : 'Ask for the username: an unverified address finds no account here.'
  return {
    ...refusal,
    title: `There is no account with this username, e-mail address or id. ${next}`,
  }
}

function ambiguous(candidates: User[]): AdminRefusal {
  return {
    status: 409,
    code: 'ambiguous_account',
    title: 'Several accounts match. Name one by its id.',
    candidates: candidates.map(candidateShape),
  }
}

const candidateShape = ({ id, username }: User): Candidate => ({ id, username })
