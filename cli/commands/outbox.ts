import { Option, type Command } from 'commander'
import { timeSince, wholeNumber, withExamples } from '../arguments.ts'
import { connect, type Connection } from '../connection.ts'
import { exitCodes, usageError } from '../exit-codes.ts'
import { withProgress } from '../output.ts'
import { confirm, canAsk } from '../prompt.ts'
import { mailTable, recordText } from '../mail-words.ts'
import type { MailChoice, MailJob } from '../../src/admin/client.ts'

const MOST = 1_000

interface Filter {
  state?: MailJob['state']
  account?: string
  since?: string
  limit?: number
}

interface Choice {
  allDead?: true
  yes?: true
}

export function addOutbox(outbox: Command): void {
  withExamples(outbox, 'outbox list --state dead', 'outbox retry --all-dead')

  const list = outbox
    .command('list')
    .description('Show mails that wait, and dead letters, newest request first.')
    .addOption(
      new Option('--state <state>', 'only mails in this state').choices(['waiting', 'dead']),
    )
    .option('--account <id>', 'only mails of this account')
    .option('--since <time>', 'only mails requested since then: 2h, or an ISO time', timeSince)
    .option('--limit <n>', 'at most this many (default 50)', wholeNumber(1, MOST))
    .action(listMails)
  withExamples(list, 'outbox list', 'outbox list --state dead --limit 100')

  const show = outbox
    .command('show')
    .description('Show all about one mail: its outcome and each attempt.')
    .argument('<id>', 'id of a mail')
    .action(showMail)
  withExamples(show, 'outbox show 3f0c')

  addChange(outbox, 'retry', 'Send a waiting mail now, or try a dead letter again.')
  addChange(outbox, 'purge', 'Remove a waiting mail, or dead letters.')
}

const CHANGES = {
  retry: { call: 'retryMails', verb: 'Ask again for', done: 'to be sent now' },
  purge: { call: 'purgeMails', verb: 'Remove', done: 'removed' },
} as const

type Change = keyof typeof CHANGES

function addChange(outbox: Command, name: Change, description: string) {
  const command = outbox
    .command(name)
    .description(description)
    .argument('[id]', 'id of a mail')
    .option('--all-dead', 'all dead letters')
    .option('--yes', 'do not ask')
    .action(async (id: string | undefined, options: Choice, command: Command) => {
      const choice = choiceOf(id, options)
      const connection = await connect(command)
      await confirmChange(name, id, connection, options)
      await forAll(connection, name, choice)
    })
  withExamples(command, `outbox ${name} 3f0c`, `outbox ${name} --all-dead --yes`)
}

async function listMails({ state, account, since, limit = 50 }: Filter, command: Command) {
  const { admin, output } = await connect(command)
  const query = { state, account_id: account, requested_from: since, limit }
  const answer = await admin.listOutbox(query)
  if (answer.mails.length === limit)
    output.note(`Only the newest ${limit} are shown. For more, use --limit <n>.`)
  output.answer(answer, ({ mails }) =>
    mails.length === 0
      ? 'No mail waits, and there are no dead letters.'
      : mailTable(mails, output.columns),
  )
}

async function showMail(id: string, _: unknown, command: Command) {
  const { admin, output, run } = await connect(command)
  const record = await admin.showMail({ mail_id: id })
  output.answer(record, recordText)
  if (record.state === 'unknown') run.exitCode = exitCodes.refused
}

/** What is tried again can be removed later; so one mail is only asked about before it goes. */
async function confirmChange(
  name: Change,
  id: string | undefined,
  { admin, url, run: { io } }: Connection,
  { yes }: Choice,
) {
  if (id !== undefined) {
    if (name === 'purge') await confirm(io, `Remove the mail ${id} on ${url}?`, yes)
    return
  }
  let count = ''
  if (!yes && canAsk(io)) {
    const { mails } = await admin.listOutbox({ state: 'dead', limit: MOST })
    count = mails.length < MOST ? ` (${mails.length})` : ` (${MOST} or more)`
  }
  await confirm(io, `${CHANGES[name].verb} all dead letters${count} on ${url}?`, yes)
}

/** Asks until there are no more, and tells how many mails were changed. */
async function forAll({ admin, run, output }: Connection, name: Change, choice: MailChoice) {
  const { call, done } = CHANGES[name]
  const changed = await withProgress(run.io, async (tell) => {
    let total = 0
    let asked = choice
    for (;;) {
      const { changed, more_before: before } = await admin[call](asked)
      total += changed
      const isEnd = before === undefined || (asked.before !== undefined && before >= asked.before)
      if (isEnd) return total
      asked = { ...choice, before }
      tell(`${total} so far …`)
    }
  })
  output.answer(
    { changed },
    ({ changed }) => `${changed} ${changed === 1 ? 'mail' : 'mails'} ${done}.`,
  )
}

function choiceOf(id: string | undefined, { allDead }: Choice): MailChoice {
  if ((id === undefined) === (allDead === undefined)) {
    throw usageError('Which mail? Give its id, or --all-dead.')
  }
  return id === undefined ? { all_dead: true } : { id }
}
