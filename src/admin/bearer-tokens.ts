import { createHash, timingSafeEqual } from 'node:crypto'

/** What a token may do, each apart from the others: `read` looks, `support` acts on an account or a mail, `settings` decides where mails go. */
export const ADMIN_SCOPES = [
  'account-flows:read',
  'account-flows:support',
  'account-flows:settings',
] as const

/** What a token of the admin API may do. Its name is the scope of a JWT too. */
export type AdminScope = (typeof ADMIN_SCOPES)[number]

/** Stands for all three. */
export const ALL_SCOPES = 'account-flows:admin'

/** @param all - the name that stands for all three. */
export function scopesOf(names: readonly string[], all: string = ALL_SCOPES): AdminScope[] {
  return ADMIN_SCOPES.filter((scope) => names.includes(scope) || names.includes(all))
}

export interface ScopedToken {
  token: string
  scopes: readonly AdminScope[]
}

export interface Admin {
  /** For the audit log. */
  actor: string
  scopes: readonly AdminScope[]
}

/**
 * Who presented a token. `wrong_token`: nobody's, or not for us, or not at this time. `keys_unavailable`: the issuer's keys cannot be
 * fetched.
 */
export type Verdict = Admin | 'wrong_token' | 'keys_unavailable'

/** Judges fixed tokens, in a time that tells neither their content nor their length, nor which it is. Without any, nobody is let in. */
export function createTokenCheck(
  tokens: readonly ScopedToken[],
): (presented: string) => Promise<Verdict> {
  const expected = tokens.map(({ token, scopes }) => ({ hash: digest(token), scopes }))
  return async (presented) => {
    const given = digest(presented)
    const [scopes] = expected.flatMap((each) =>
      timingSafeEqual(given, each.hash) ? [each.scopes] : [],
    )
    return scopes ? { actor: actorWith(scopes), scopes } : 'wrong_token'
  }
}

/** Fixed tokens have no names; a lesser one is told by what it may do. */
function actorWith(scopes: readonly AdminScope[]): string {
  if (scopes.length === ADMIN_SCOPES.length) return 'admin_token'
  return `admin_token:${scopes.map((scope) => scope.replace('account-flows:', '')).join('+')}`
}

function digest(token: string): Buffer {
  return createHash('sha256').update(token).digest()
}
