export const WEEK_MS = 7 * 24 * 60 * 60 * 1000

/** A week later: until then a record stays, so that a late click can be told why it is too late. */
export function purgeTime(over: Date): Date {
  return new Date(over.getTime() + WEEK_MS)
}
