/**
 * For how long a record stays once it is over, so that a late click can be told why it is too late. The id of a form that was sent stays
 * taken for no less: once it is free again, nobody makes it any more.
 */
export const WEEK_MS = 7 * 24 * 60 * 60 * 1000

/** Records of links outlive the mails that were sent before them, of which "This wasn't me" is good for eight days. */
export const eightDaysAfter = (over: Date) => new Date(over.getTime() + (WEEK_MS / 7) * 8)

export function weekAfter(over: Date): Date {
  return new Date(over.getTime() + WEEK_MS)
}
