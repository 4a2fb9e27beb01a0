import { type Command, InvalidArgumentError } from 'commander'
import { usageError } from './exit-codes.ts'
import type { AccountQuery } from '../src/admin/client.ts'

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

export interface AccountOptions {
  id?: string
}

export function withAccount(command: Command): Command {
  return command
    .argument('[user]', 'username, verified e-mail address or account id')
    .option('--id <id>', 'account id, instead of <user>')
}

export function accountOf(user: string | undefined, { id }: AccountOptions): AccountQuery {
  if (user !== undefined && id === undefined) return { user }
  if (id !== undefined && user === undefined) return { id }
  throw usageError('Which account? Give <user> or --id <id>.')
}
