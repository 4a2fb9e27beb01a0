import { awaitMail } from './await-mail.ts'
import type { Connection } from './connection.ts'
import { exitCodes } from './exit-codes.ts'
import { outcomeText } from './mail-words.ts'
import type { Accepted, AccountQuery } from '../src/admin/client.ts'

export type Ask = 'sendReset' | 'inviteUser' | 'sendVerification'

/**
 * Asks for a mail, and tells what became of it.
 *
 * @param wait - how many seconds.
 */
export async function sendAndWait(
  ask: Ask,
  account: AccountQuery,
  connection: Connection,
  wait: number,
): Promise<void> {
  const { admin, output, run } = connection
  const accepted = await admin[ask](account)
  if (wait === 0) return output.answer(accepted, acceptedText)
  if (!output.isJson) output.note(acceptedText(accepted))
  const outcome = await awaitMail(connection, accepted.mail_id, wait)
  output.answer(outcome, outcomeText)
  if (outcome.state !== 'sent') run.exitCode = exitCodes.refused
}

function acceptedText({ mail_id }: Accepted): string {
  return `The mail was asked for: ${mail_id}`
}
