import { InvalidArgumentError } from 'commander'
import { parseDuration } from '../src/settings/kinds.ts'

/** Reads the argument of an option. */
export function wholeNumber(least: number, most: number) {
  return (text: string): number => {
    const number = /^\d{1,9}$/.test(text) ? Number(text) : NaN
    if (number >= least && number <= most) return number
    throw new InvalidArgumentError(`It must be a whole number from ${least} to ${most}.`)
  }
}

/** Reads an option that may be given several times. */
export const collect = (value: string, values: string[] = []) => [...values, value]

/** Reads a time, or how long ago it was: `2h`, `1d12h`, `2026-01-31`, `2026-01-31T08:00:00Z`, `2026-01-31 08:00:00 UTC`. Answers ISO 8601. */
export function timeSince(text: string): string {
  const ms = parseDuration(text)
  const time = ms === undefined ? new Date(text) : new Date(Date.now() - ms)
  const isTime =
    ms !== undefined ||
    (/^\d{4}-\d\d-\d\d(T|$| [\d:]{8} UTC$)/.test(text) && isDay(text.slice(0, 10)))
  if (isTime && !Number.isNaN(time.getTime())) return time.toISOString()
  throw new InvalidArgumentError(
    'It must be a duration such as 2h, or a time such as 2026-01-31T08:00:00Z.',
  )
}

/** `Date` takes the 31st of February for a day in March. */
function isDay(day: string): boolean {
  const date = new Date(day)
  return !Number.isNaN(date.getTime()) && date.toISOString().startsWith(day)
}
