import type { User } from '../contract/index.ts'
import { folded } from './common.ts'

/** Shorter names are in many good passwords by chance. */
const MIN_LENGTH = 3

/** Names of the account and of the service that strangers may know. */
export function namesOf(
  { username, email }: Pick<User, 'username' | 'email'>,
  service: readonly (string | undefined)[],
): string[] {
  const own = [username, email?.replace(/@[^@]*$/, ''), ...service]
  const words = own.flatMap((name) => name?.split(/[^\p{L}\p{N}]+/u))
  const names = [email, ...own, ...words].map((name) => folded(name ?? ''))
  return [...new Set(names)].filter(Boolean)
}

/** Whether the password consists of such names, repeated or not. Digits and signs between them do not help. Any other letter does. */
export function isMadeOf(password: string, names: readonly string[]): boolean {
  const wanted = folded(password)
  if (wanted === '') return false
  if (names.some((name) => wanted.replaceAll(name, '') === '')) return true
  const known = names.filter((name) => Array.from(name).length >= MIN_LENGTH)
  const rest = known
    .toSorted((one, other) => other.length - one.length)
    .reduce((left, name) => left.replaceAll(name, ' '), wanted)
  return rest !== wanted && !/\p{L}/u.test(rest)
}
