import { InvalidArgumentError } from 'commander'

/** Reads the argument of an option. */
export function wholeNumber(least: number, most: number) {
  return (text: string): number => {
    const number = /^\d{1,9}$/.test(text) ? Number(text) : NaN
    if (number >= least && number <= most) return number
    throw new InvalidArgumentError(`It must be a whole number from ${least} to ${most}.`)
  }
}
