import { createHash, timingSafeEqual } from 'node:crypto'

/**
 * Compares a presented token with each of those in force, in a time that tells neither their content nor their length, nor which it is.
 *
 * @returns what is kept with the tokens that it is; none: it is no token.
 */
export function createBearerCheck<T>(
  tokens: readonly (readonly [token: string, kept: T])[],
): (presented: string) => T[] {
  const expected = tokens.map(([token, kept]) => ({ hash: digest(token), kept }))
  return (presented) => {
    const given = digest(presented)
    return expected.filter(({ hash }) => timingSafeEqual(given, hash)).map(({ kept }) => kept)
  }
}

function digest(token: string): Buffer {
  return createHash('sha256').update(token).digest()
}
