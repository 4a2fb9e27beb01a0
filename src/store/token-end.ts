export type TokenEnd =
  /** A newer link was asked for, or the account was signed out everywhere. */
  | 'invalidated'
  /** It was used before. */
  | 'used'
  /** Its time was over. */
  | 'expired'

type Times = { expiresAt: Date } & {
  [N in 'usedAt' | 'claimedAt' | 'invalidatedAt']?: Date | undefined
}

/** What ended a token at that time. `undefined`: nothing did; whether its account is as it was is another question. At exactly `expiresAt` it is over. */
export function endOf(token: Times, at: Date): TokenEnd | undefined {
  const { usedAt, claimedAt, invalidatedAt, expiresAt } = token
  if (invalidatedAt) return 'invalidated'
  if (usedAt || claimedAt) return 'used'
  return expiresAt > at ? undefined : 'expired'
}
