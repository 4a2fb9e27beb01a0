import type { Command } from 'commander'
import {
  accountOf,
  withAccount,
  type AccountOptions,
  withExamples,
  wholeNumber,
} from '../arguments.ts'
import { connect } from '../connection.ts'
import { exitCodes } from '../exit-codes.ts'
import { outputOf } from '../output.ts'
import { confirm } from '../prompt.ts'
import { sendAndWait, type Ask } from '../send-and-wait.ts'
import { userText } from '../words.ts'
import {
  AdminApiError,
  type AccountQuery,
  type AdminClient,
  type ForgottenAccount,
  type UserStatus,
  type Verification,
} from '../../src/admin/client.ts'

const DEFAULT_WAIT_S = 30
const MOST_WAIT_S = 3_600

export function addUser(user: Command): void {
  withExamples(user, 'user status alice', 'user send-reset alice@example.com')

  const status = withAccount(user.command('status'))
    .description('Show an account, and why it may get no mail.')
    .action(showStatus)
  withExamples(status, 'user status alice', 'user status --id 507f1f77bcf86cd799439011')

  addSending(user, 'send-reset', {
    what: 'reset link',
    ask: (admin, account) => admin.sendReset(account),
  })
  addSending(user, 'invite', {
    what: 'link to choose the first password',
    ask: (admin, account) => admin.inviteUser(account),
  })
  addSending(user, 'send-verification', {
    what: 'verification link',
    ask: (admin, account) => admin.sendVerification(account),
  })

  addVerification(user, 'verify', (admin, account) => admin.verifyUser(account))
  addVerification(user, 'unverify', (admin, account) => admin.unverifyUser(account))

  const end = withAccount(user.command('end-sessions'))
    .description('End all sessions, grants and tokens of an account, and void its links.')
    .option('--yes', 'do not ask')
    .action(endSessions)
  withExamples(end, 'user end-sessions alice', 'user end-sessions alice --yes')

  const forget = user
    .command('forget')
    .argument('<id>', 'account id; the user may be deleted already')
    .description('Erase the records about an account: mails, links, waiting logins, events.')
    .option('--yes', 'do not ask')
    .action(forgetUser)
  withExamples(forget, 'user forget 507f1f77bcf86cd799439011')
}

type Change = (admin: AdminClient, account: AccountQuery) => Promise<Verification>

function addVerification(user: Command, name: 'verify' | 'unverify', change: Change) {
  const state = name === 'verify' ? 'verified' : 'unverified'
  const command = withAccount(user.command(name))
    .description(`Make the address of an account ${state}; no mail is sent.`)
    .action(async (user: string | undefined, options: AccountOptions, command: Command) => {
      const account = accountOf(user, options)
      const { admin } = await connect(command)
      outputOf(command).answer(await change(admin, account), ({ email, changed }) =>
        changed ? `${email} is ${state} now.` : `Nothing changed: ${email} was ${state} before.`,
      )
    })
  withExamples(command, `user ${name} alice`)
}

function addSending(user: Command, name: string, { what, ask }: { what: string; ask: Ask }) {
  const command = withAccount(user.command(name))
    .description(`Mail a ${what} to the address of an account, and wait until it is sent.`)
    .option(
      '--wait <seconds>',
      'how long to wait; 0: do not wait',
      wholeNumber(0, MOST_WAIT_S),
      DEFAULT_WAIT_S,
    )
    .action(sendAndWait(ask))
  withExamples(command, `user ${name} alice`, `user ${name} alice --wait 0`)
}

async function showStatus(user: string | undefined, options: AccountOptions, command: Command) {
  const account = accountOf(user, options)
  const output = outputOf(command)
  const { admin } = await connect(command)
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
  user: string | undefined,
  { yes, ...options }: AccountOptions & { yes?: true },
  command: Command,
) {
  const account = accountOf(user, options)
  const output = outputOf(command)
  const { admin, url, run } = await connect(command)
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
  const output = outputOf(command)
  const { admin, url, run } = await connect(command)
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
