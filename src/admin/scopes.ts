/** What a token may do, each apart from the others: `read` looks, `support` acts on an account or a mail, `settings` decides where mails go. */
export const ADMIN_SCOPES = [
  'account-flows:read',
  'account-flows:support',
  'account-flows:settings',
] as const

export type AdminScope = (typeof ADMIN_SCOPES)[number]

/** Stands for all three. */
export const ALL_SCOPES = 'account-flows:admin'

/**
 * The scopes that these names give, whatever else is among them.
 *
 * @param all - the name that stands for all three.
 */
export function scopesOf(names: readonly string[], all: string = ALL_SCOPES): AdminScope[] {
  return ADMIN_SCOPES.filter((scope) => names.includes(scope) || names.includes(all))
}
