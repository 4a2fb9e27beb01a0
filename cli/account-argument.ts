import type { Command } from 'commander'
import type { AccountQuery } from '../src/admin/client.ts'
import { usageError } from './exit-codes.ts'

export interface AccountOptions {
  id?: string
}

export function withAccount(command: Command): Command {
  return command
    .argument('[user]', 'username, verified e-mail address or id')
    .option('--id <id>', 'id of the account, in place of <user>')
}

export function accountOf(user: string | undefined, { id }: AccountOptions): AccountQuery {
  if (user !== undefined && id === undefined) return { user }
  if (id !== undefined && user === undefined) return { id }
  throw usageError('Which account? Give <user>, or --id <id>.')
}
