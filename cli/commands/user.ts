import type { Command } from 'commander'
import { withExamples, wholeNumber } from '../arguments.ts'
import { connect, type Connection } from '../connection.ts'
import { exitCodes, usageError } from '../exit-codes.ts'
import { confirm } from '../prompt.ts'
import { sendAndWait, type Ask } from '../send-and-wait.ts'
import { userText } from '../words.ts'
import {
  AdminApiError,
  type AccountQuery,
  type ForgottenAccount,
  type UserStatus,
} from '../../src/admin/client.ts'

const DEFAULT_WAIT_S = 30
const MOST_WAIT_S = 3_600

export function addUser(user: Command): void {
  withExamples(user, 'user status alice', 'user send-reset alice@example.com')

  const status = accountCommand(user, 'status', showStatus).description(
    'Show an account, and why it may get no mail.',
  )
  withExamples(status, 'user status alice', 'user status --id 507f1f77bcf86cd799439011')

  addSending(user, 'send-reset', 'sendReset', 'reset link')
  addSending(user, 'invite', 'inviteUser', 'link to choose the first password')
  addSending(user, 'send-verification', 'sendVerification', 'verification link')
  addVerification(user, 'verify')
  addVerification(user, 'unverify')

  const end = accountCommand(user, 'end-sessions', endSessions)
    .description('End all sessions, grants and tokens of an account, and void its links.')
    .option('--yes', 'do not ask')
  withExamples(end, 'user end-sessions alice', 'user end-sessions alice --yes')

  const forget = user
    .command('forget')
    .argument('<id>', 'account id; the user may be deleted already')
    .description('Erase the records about an account: mails, links, waiting logins, events.')
    .option('--yes', 'do not ask')
    .action(forgetUser)
  withExamples(forget, 'user forget 507f1f77bcf86cd799439011')
}

type Work<Options> = (
  account: AccountQuery,
  connection: Connection,
  options: Options,
) => void | Promise<void>

/** A command on one account. */
function accountCommand<Options>(user: Command, name: string, work: Work<Options>): Command {
  return user
    .command(name)
    .argument('[user]', 'username, verified e-mail address or account id')
    .option('--id <id>', 'account id, instead of <user>')
    .action(async (user: string | undefined, options: Options & { id?: string }, command) => {
      const { id } = options
      if ((user === undefined) === (id === undefined))
        throw usageError('Which account? Give <user> or --id <id>.')
      await work({ user, id }, await connect(command), options)
    })
}

function addVerification(user: Command, name: 'verify' | 'unverify') {
  const state = name === 'verify' ? 'verified' : 'unverified'
  const command = accountCommand(user, name, async (account, { admin, output }) =>
    output.answer(await admin[`${name}User`](account), ({ email, changed }) =>
      changed ? `${email} is ${state} now.` : `Nothing changed: ${email} was ${state} before.`,
    ),
  ).description(`Make the address of an account ${state}; no mail is sent.`)
  withExamples(command, `user ${name} alice`)
}

function addSending(user: Command, name: string, ask: Ask, what: string) {
  const send: Work<{ wait: number }> = (account, connection, { wait }) =>
    sendAndWait(ask, account, connection, wait)
  const command = accountCommand(user, name, send)
    .description(`Mail a ${what} to the address of an account, and wait until it is sent.`)
    .option(
      '--wait <seconds>',
      'how long to wait; 0: do not wait',
      wholeNumber(0, MOST_WAIT_S),
      DEFAULT_WAIT_S,
    )
  withExamples(command, `user ${name} alice`, `user ${name} alice --wait 0`)
}

async function showStatus(account: AccountQuery, { admin, output }: Connection) {
  const tell = (status: UserStatus, end = '') =>
    output.answer(status, (status) => userText(status, output) + end)
  try {
    tell(await admin.userStatus(account))
  } catch (error) {
    // A program is told whom it has to choose from; a person all that is known of each.
    const { problem } = error instanceof AdminApiError ? error : {}
    if (output.isJson || problem?.code !== 'ambiguous_account') throw error
    output.answer(problem, ({ title }) => `${title}\n`)
    for (const { id } of problem.candidates ?? []) tell(await admin.userStatus({ id }), '\n')
    throw error
  }
}

async function endSessions(
  account: AccountQuery,
  { admin, output, url, run }: Connection,
  { yes }: { yes?: true },
) {
  const who = account.user ?? account.id ?? ''
  await confirm(run.io, `End all sessions, grants and tokens of ${who} on ${url}?`, yes)
  const ended = await admin.endSessions(account)
  output.answer(ended, ({ oauth, idp, clients }) =>
    [
      'All sessions, grants and tokens are ended.',
      `Grants, codes and tokens deleted: ${oauth ?? 'the adapter cannot tell'}`,
      `Sessions and login results deleted: ${idp ?? 'the adapter cannot tell'}`,
      ...(clients
        ? [
            `Clients that are told to sign the person out: ${clients.told}`,
            `Clients that cannot be told: ${clients.untold}`,
          ]
        : []),
    ].join('\n'),
  )
}

async function forgetUser(id: string, { yes }: { yes?: true }, command: Command) {
  const { admin, output, url, run } = await connect(command)
  await confirm(run.io, `Erase all records about the account ${id} on ${url}?`, yes)
  const forgotten = await admin.forgetUser({ id })
  output.answer(forgotten, forgottenText)
  if (forgotten.under_way > 0) run.exitCode = exitCodes.refused
}

function forgottenText({ under_way: underWay, ...erased }: ForgottenAccount): string {
  return [
    `Mails erased: ${erased.mails}`,
    `Reset links erased: ${erased.reset_links}`,
    `Verification links erased: ${erased.verification_links}`,
    `Invitations erased: ${erased.invitation_links}`,
    `Links of "This wasn't me" erased: ${erased.not_me_links}`,
    `Waiting logins erased: ${erased.waiting_logins}`,
    `Client logouts erased: ${erased.client_logouts}`,
    `Events erased: ${erased.events}`,
    ...(underWay === 0
      ? []
      : [`Not erased, because still in progress: ${underWay}. Do this again in a minute.`]),
  ].join('\n')
}
