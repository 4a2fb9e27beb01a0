import { Argument } from 'commander'
import type { MailChoice, MailJob, MailsChanged } from '../../src/admin/client.ts'
import { option, row, timeSince, wholeNumber, type Connection } from '../command.ts'
import { usageError } from '../failure.ts'
import { mailTable, recordText } from '../words.ts'
import { withProgress } from '../output.ts'
import { canAsk } from '../input.ts'

const MAX_MAILS = 1_000

interface Filter {
  state?: MailJob['state']
  account?: string
  since?: string
  limit: number
}

interface Choice {
  id?: string
  allDead?: true
}

/** Options of the commands that change one mail, or all dead letters. */
const CHOICE = {
  argument: new Argument('[id]', 'id of a mail'),
  options: [option('--all-dead', 'all dead letters')],
  changes: true as const,
  check({ id, allDead }: Choice) {
    if ((id === undefined) === (allDead === undefined))
      throw usageError('Which mail? Give its id, or --all-dead.')
  },
}

export const outboxCommands = [
  { name: 'outbox', help: 'Mails that wait, and dead letters.' },
  row({
    name: 'outbox list',
    help: 'Show mails that wait, and dead letters, newest request first.',
    options: [
      option('--state <state>', 'only mails in this state').choices(['waiting', 'dead']),
      option('--account <id>', 'only mails of this account'),
      option('--since <time>', 'only mails requested since then: 2h, or an ISO time', timeSince),
      option('--limit <n>', 'at most this many', wholeNumber(1, MAX_MAILS)).default(50),
    ],
    examples: ['outbox list', 'outbox list --state dead --limit 100'],
    run: listMails,
    text: ({ mails }, { columns }) =>
      mails.length === 0
        ? 'No mail waits, and there are no dead letters.'
        : mailTable(mails, columns),
  }),
  row({
    name: 'outbox show',
    help: 'Show all about one mail: its outcome and each attempt.',
    argument: new Argument('<id>', 'id of a mail'),
    examples: ['outbox show 3f0c'],
    run: ({ id }: { id: string }, { admin }) => admin.showMail({ mail_id: id }),
    text: recordText,
    isRefusal: ({ state }) => state === 'unknown',
  }),
  row({
    ...CHOICE,
    name: 'outbox retry',
    help: 'Send a waiting mail now, or try a dead letter again.',
    examples: ['outbox retry 3f0c', 'outbox retry --all-dead --yes'],
    // No question about one mail: if it is retried, it can still be removed later.
    question: async ({ id }, connection) =>
      id === undefined ? `Ask again for ${await allDead(connection)}` : undefined,
    run: (choice: Choice, connection) => changeMails('retryMails', choice, connection),
    text: ({ changed }) => `${changed} ${changed === 1 ? 'mail' : 'mails'} to be sent now.`,
  }),
  row({
    ...CHOICE,
    name: 'outbox purge',
    help: 'Remove a waiting mail, or dead letters.',
    examples: ['outbox purge 3f0c', 'outbox purge --all-dead --yes'],
    question: async ({ id }, connection) =>
      id === undefined ? `Remove ${await allDead(connection)}` : `Remove the mail ${id}`,
    run: (choice: Choice, connection) => changeMails('purgeMails', choice, connection),
    text: ({ changed }) => `${changed} ${changed === 1 ? 'mail' : 'mails'} removed.`,
  }),
]

async function listMails({ state, account, since, limit }: Filter, { admin, output }: Connection) {
  const query = { state, account_id: account, requested_from: since, limit }
  const answer = await admin.listOutbox(query)
  if (answer.mails.length === limit)
    output.note(`Only the newest ${limit} are shown. For more, use --limit <n>.`)
  return answer
}

/** The number of dead letters, for a question. */
async function allDead({ admin, run }: Connection): Promise<string> {
  if (!canAsk(run.io)) return 'all dead letters'
  const { mails } = await admin.listOutbox({ state: 'dead', limit: MAX_MAILS })
  const count = mails.length < MAX_MAILS ? mails.length : `${MAX_MAILS} or more`
  return `all dead letters (${count})`
}

/** Repeats the request until all chosen mails are done, and answers how many were changed. */
function changeMails(
  operation: 'retryMails' | 'purgeMails',
  { id }: Choice,
  { admin, run }: Connection,
): Promise<MailsChanged> {
  const chosen: MailChoice = id === undefined ? { all_dead: true } : { id }
  return withProgress(run.io, async (tell) => {
    let total = 0
    let asked = chosen
    for (;;) {
      const { changed, more_before: before } = await admin[operation](asked)
      total += changed
      const isEnd = before === undefined || (asked.before !== undefined && before >= asked.before)
      if (isEnd) return { changed: total }
      asked = { ...chosen, before }
      tell(`${total} so far …`)
    }
  })
}
