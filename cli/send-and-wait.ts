import type { Command } from 'commander'
import { accountOf, type AccountOptions } from './arguments.ts'
import { awaitMail } from './await-mail.ts'
import { connect } from './connection.ts'
import { exitCodes } from './exit-codes.ts'
import { outputOf } from './output.ts'
import { reasonText } from './words.ts'
import type { Accepted, AccountQuery, AdminClient, MailOutcome } from '../src/admin/client.ts'

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

function outcomeText({ mail_id: id, state, reason, ...outcome }: MailOutcome): string {
  const { sent_at: sentAt, next_attempt_at: next } = outcome
  const texts: Record<typeof state, string> = {
    sent: `Sent${sentAt === undefined ? '' : ` at ${sentAt}`}.`,
    waiting: `Not sent yet, and it still waits (mail ${id}).`,
    ended: 'Not sent.',
    dead: `Not sent, and nobody will try again (mail ${id}).`,
    unknown: `Nothing is known of the mail ${id}.`,
  }
  return [
    texts[state],
    ...(reason === undefined ? [] : [`Reason: ${reasonText(reason)}`]),
    ...(next === undefined ? [] : [`The next attempt is at ${next}.`]),
  ].join('\n')
}
