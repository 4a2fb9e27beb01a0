import { equalsInAsciiCase } from '../ports/ascii-case.ts'
import type { User, UserStore } from '../ports/index.ts'

/** `ambiguous`: several verified addresses match and none of them byte for byte. */
export type UserMatch = User | 'ambiguous' | 'unknown'

/**
 * Finds the user that an identifier names (4.2.3): a verified address wins over another user's username, so that nobody can
 * take the place of an address by choosing it as a name.
 */
export async function findUser(users: UserStore, identifier: string): Promise<UserMatch> {
  const matches = await users.findByVerifiedEmail(identifier)
  if (matches.length === 0) {
    const named = await users.findByUsername(identifier)
    return named && mayBeMeant(identifier, named) ? named : 'unknown'
  }
  const exact = matches.filter(({ email }) => email === identifier)
  const [match = 'unknown', another] = exact.length > 0 ? exact : matches
  return another ? 'ambiguous' : match
}

// Whoever takes the address of somebody else as a username would learn by a mail that nobody has verified it.
function mayBeMeant(identifier: string, { email = '' }: User): boolean {
  return !identifier.includes('@') || equalsInAsciiCase(identifier, email)
}
