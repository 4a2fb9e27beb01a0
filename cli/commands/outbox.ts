import { Option, type Command } from 'commander'
import type { MailChoice, MailJob } from '../../src/admin/client.ts'
import { confirm } from '../confirm.ts'
import { connect } from '../connection.ts'
import { withExamples } from '../examples.ts'
import { CliError, exitCodes, usageError } from '../exit-codes.ts'
import { reasonText } from '../mail-reasons.ts'
import { outputOf } from '../output.ts'
import { table } from '../table.ts'
import { wholeNumber } from '../whole-number.ts'

interface Choice {
  allDead?: true
  yes?: true
}

export function addOutbox(program: Command): void {
  const outbox = program.command('outbox').description('Mails that wait, and dead letters.')
  withExamples(outbox, 'outbox list --state dead', 'outbox retry --all-dead')

  const list = outbox
    .command('list')
    .description('Show mails that wait, and dead letters, newest request first.')
    .addOption(new Option('--state <state>', 'only these').choices(['waiting', 'dead']))
    .option('--account <id>', 'only those of one account')
    .option('--limit <n>', 'at most so many (50 by default)', wholeNumber(1, 1000))
    .action(listMails)
  withExamples(list, 'outbox list', 'outbox list --state dead --limit 100')

  const retry = outbox
    .command('retry')
    .description('Send a waiting mail now, or ask again for what became a dead letter.')
    .argument('[id]', 'id of a mail')
    .option('--all-dead', 'all dead letters')
    .action(retryMails)
  withExamples(retry, 'outbox retry 3f0c', 'outbox retry --all-dead')

  const purge = outbox
    .command('purge')
    .description('Remove a waiting mail, or dead letters.')
    .argument('[id]', 'id of a mail')
    .option('--all-dead', 'all dead letters')
    .option('--yes', 'do not ask')
    .action(purgeMails)
  withExamples(purge, 'outbox purge 3f0c', 'outbox purge --all-dead --yes')
}

export function mailTable(mails: MailJob[], columns: number | undefined): string {
  return table(
    ['mail', 'kind', 'state', 'requested', 'next attempt', 'attempts', 'reason'],
    mails.map((mail) => [
      mail.id,
      mail.kind,
      mail.is_held ? `${mail.state}, being sent` : mail.state,
      mail.requested_at ?? '',
      mail.next_attempt_at ?? '',
      String(mail.attempts),
      reasonText(mail.reason),
    ]),
    columns,
  )
}

async function listMails(
  { state, account, limit }: { state?: MailJob['state']; account?: string; limit?: number },
  command: Command,
) {
  const output = outputOf(command)
  const { admin } = await connect(command)
  const answer = await admin.listOutbox({
    ...(state !== undefined && { state }),
    ...(account !== undefined && { account_id: account }),
    ...(limit !== undefined && { limit }),
  })
  output.answer(answer, ({ mails }) =>
    mails.length === 0 ? 'No mail waits, and none is dead.' : mailTable(mails, output.columns),
  )
}

async function retryMails(id: string | undefined, options: Choice, command: Command) {
  const choice = choiceOf(id, options)
  const { admin } = await connect(command)
  tell(await admin.retryMails(choice), 'to be sent now', { choice, command })
}

async function purgeMails(id: string | undefined, options: Choice, command: Command) {
  const choice = choiceOf(id, options)
  const { admin, url } = await connect(command)
  const what = id === undefined ? 'all dead letters' : `the mail ${id}`
  await confirm(`Remove ${what} on ${url}?`, options.yes)
  tell(await admin.purgeMails(choice), 'removed', { choice, command })
}

function choiceOf(id: string | undefined, { allDead }: Choice): MailChoice {
  if ((id === undefined) === (allDead === undefined)) {
    throw usageError('Which mail? Give the id of one, or --all-dead.')
  }
  return id === undefined ? { all_dead: true } : { id }
}

function tell(
  answer: { changed: number },
  done: string,
  { choice, command }: { choice: MailChoice; command: Command },
) {
  if (answer.changed === 0 && choice.id !== undefined) {
    throw new CliError(
      exitCodes.refused,
      'unknown_mail',
      'There is no such mail, or it is being sent.',
    )
  }
  outputOf(command).answer(
    answer,
    ({ changed }) => `${changed} ${changed === 1 ? 'mail' : 'mails'} ${done}.`,
  )
}
