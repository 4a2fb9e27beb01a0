import type { Command } from 'commander'
import { accountOf, type AccountOptions } from './arguments.ts'
import { awaitMail } from './await-mail.ts'
import { connect } from './connection.ts'
import { exitCodes } from './exit-codes.ts'
import { outputOf } from './output.ts'
import { outcomeText } from './mail-words.ts'
import type { Accepted, AccountQuery, AdminClient } from '../src/admin/client.ts'

export type Ask = (admin: AdminClient, account: AccountQuery) => Promise<Accepted>

/** Asks for a mail, and tells what became of it. */
export function sendAndWait(ask: Ask) {
  return async (
    user: string | undefined,
    { wait, ...options }: AccountOptions & { wait: number },
    command: Command,
  ) => {
    const account = accountOf(user, options)
    const output = outputOf(command)
    const connection = await connect(command)
    const accepted = await ask(connection.admin, account)
    if (wait === 0) {
      output.answer(accepted, acceptedText)
      return
    }
    if (!output.isJson) output.note(acceptedText(accepted))
    const outcome = await awaitMail(connection, accepted.mail_id, wait)
    output.answer(outcome, outcomeText)
    if (outcome.state !== 'sent') connection.run.exitCode = exitCodes.refused
  }
}

function acceptedText({ mail_id }: Accepted): string {
  return `The mail was asked for: ${mail_id}`
}
