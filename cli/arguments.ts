import { type Command, InvalidArgumentError } from 'commander'

export function withExamples(command: Command, ...lines: string[]): Command {
  const shown = lines.map((line) => `  $ account-flows ${line}`.trimEnd())
  return command.addHelpText('after', ['', 'Example:', ...shown].join('\n'))
}

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
