import type * as z from 'zod'
import type { User, UserStore } from '../contract/index.ts'
import { equalsInAsciiCase, withoutBlanks } from '../contract/users.ts'
import { invalid, refusal, type AdminParts, type AdminRequest, type Problem } from './operation.ts'
import { given, object, optional } from './schema.ts'

export type AccountQuery = z.infer<typeof AccountQuery>
export const AccountQuery = object(
  'One account: `id`, or `user`. `user` is a username, a verified e-mail address or an id, and must match only one account.',
  { user: optional(given), id: optional(given) },
)

export type Asked = AdminRequest<{}, AccountQuery>
export type Work<Answer> = (user: User, request: Asked, parts: AdminParts) => Promise<Answer>

/** What an operation on one account takes and does: the account is found, and the action is recorded, before its work. */
export function onAccount<Answer>(action: string, work: Work<Answer>, isAny = false) {
  async function run(request: Asked, parts: AdminParts) {
    const found = await findAccount(parts.users, request.body, isAny)
    if (!('user' in found)) return found
    await request.record(action, { accountId: found.user.id })
    return work(found.user, request, parts)
  }
  return { body: AccountQuery, run }
}

/** Unlike in the forms, no kind of match wins over another. `isAny`: an unverified address counts too, if the host can look it up. */
export async function findAccount(
  users: UserStore,
  { id, user: typed }: AccountQuery,
  isAny: boolean,
): Promise<{ user: User } | Problem> {
  if ((id === undefined) === (typed === undefined)) return INVALID
  if (typed === undefined) {
    const user = await users.findById(id ?? '')
    return user ? { user } : unknown(users, [])
  }
  const [user, ...others] = await named(users, [typed], isAny)
  if (!user) return unknown(users, await meant(users, typed), typed)
  if (others.length === 0) return { user }
  const title = 'Several accounts match. Name one by its id.'
  return { ...refusal(409, 'ambiguous_account', title), ...among([user, ...others]) }
}

async function named(users: UserStore, texts: string[], isAny: boolean): Promise<User[]> {
  const byAddress = (text: string) =>
    isAny && users.findByEmail ? users.findByEmail(text) : users.findByVerifiedEmail(text)
  const found = await Promise.all(
    texts.flatMap((text) => [users.findByUsername(text), users.findById(text), byAddress(text)]),
  )
  return onceEach(found.flat().filter((user) => user !== undefined))
}

const onceEach = (users: User[]) => [...new Map(users.map((user) => [user.id, user])).values()]

/** What the admin may have meant: other blanks, another case, an address instead of a name, or an unverified address. */
async function meant(users: UserStore, typed: string): Promise<User[]> {
  const text = withoutBlanks(typed)
  const names = [text, text.slice(0, Math.max(text.indexOf('@'), 0))].filter((name) => name !== '')
  const [found, ...inAnyCase] = await Promise.all([
    named(users, names, true),
    ...names.map((name) => users.findByUsernameInAnyCase?.(name) ?? []),
  ])
  return onceEach([...found, ...inAnyCase.flat()])
}

const INVALID = invalid('Name one account, by id or by user.', {
  key: 'user',
  expected: 'either id or user',
  got: 'both or neither',
})

function unknown(users: UserStore, candidates: User[], typed = ''): Problem {
  const isAddress = candidates.some(({ email = '' }) => equalsInAsciiCase(email, typed))
  if (candidates.length > 0) {
    const title = isAddress
      ? 'This address is not verified, so it names no account. Did you mean this one? Give its id or username.'
      : 'There is no account with exactly this name, address or id. Did you mean this one?'
    return { ...refusal(404, 'unknown_account', title), ...among(candidates) }
  }
  const next = users.findByEmail
    ? 'Ask the person how it is spelled.'
    : 'Ask for the username: an unverified address finds no account here.'
  const title = `There is no account with this username, e-mail address or id. ${next}`
  return refusal(404, 'unknown_account', title)
}

const among = (users: User[]) => ({
  candidates: users.map(({ id, username }) => ({ id, username })),
})
