import { createHash, timingSafeEqual } from 'node:crypto'

/** Compares a presented token with the one in force, in a time that tells neither its content nor its length. */
export function createBearerCheck(token: string | undefined): (presented: string) => boolean {
  if (token === undefined) return () => false
  const expected = digest(token)
  return (presented) => timingSafeEqual(digest(presented), expected)
}

function digest(token: string): Buffer {
  return createHash('sha256').update(token).digest()
}
