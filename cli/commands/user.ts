import { setTimeout as sleep } from 'node:timers/promises'
import { Argument } from 'commander'
import {
  AdminApiError,
  type Accepted,
  type AccountId,
  type AccountQuery,
  type ChangedAccount,
  type ChangedEmail,
  type EndedSessions,
  type ForgottenAccount,
  type MailOutcome,
  type UserStatus,
} from '../../src/admin/client.ts'
import { option, row, wholeNumber, type Connection } from '../command.ts'
import { exitCodeOf, usageError } from '../failure.ts'
import { exitCodes, withProgress } from '../output.ts'
import { labelOf, linesOf } from '../table.ts'
import { outcomeText, userText } from '../words.ts'

const ID = option('--id <id>', 'account id, instead of <user>')
const WAIT = option('--wait <seconds>', '0: do not wait', wholeNumber(0, 3_600)).default(30)

/** Options of each command on one account. */
const ONE_ACCOUNT = {
  argument: new Argument('[user]', 'username, verified e-mail address or account id'),
  options: [ID],
  check({ user, id }: AccountQuery) {
    if ((user === undefined) === (id === undefined))
      throw usageError('Which account? Give <user> or --id <id>.')
  },
}

export const userCommands = [
  { name: 'user', help: 'Accounts, their links and their mails.' },
  row({
    ...ONE_ACCOUNT,
    name: 'user status',
    help: 'Show an account, and why it may get no mail.',
    options: [ID, option('--all', 'also all its links, mails and events')],
    examples: ['user status alice', 'user status --id 507f1f77bcf86cd799439011'],
    run: showStatus,
  }),
  sending('send-reset', 'sendReset', 'reset link'),
  sending('invite', 'inviteUser', 'link to choose the first password'),
  sending('send-verification', 'sendVerification', 'verification link'),
  making('verify', 'verifyUser', 'verified'),
  making('unverify', 'unverifyUser', 'unverified'),
  row({
    ...ONE_ACCOUNT,
    name: 'user email-changed',
    help: 'After you changed the address of an account: void old links, and mail both addresses.',
    options: [ID, option('--before <address>', 'the verified address before; it gets a notice')],
    examples: ['user email-changed alice --before alice@old.example'],
    changes: true,
    run: (account: ChangedAccount, { admin }) => admin.emailChanged(account),
    text: changedText,
  }),
  row({
    ...ONE_ACCOUNT,
    name: 'user end-sessions',
    help: 'End all sessions, grants and tokens of an account, and void its links.',
    examples: ['user end-sessions alice', 'user end-sessions alice --yes'],
    changes: true,
    question: ({ user, id = '' }) => `End all sessions, grants and tokens of ${user ?? id}`,
    run: (account: AccountQuery, { admin }) => admin.endSessions(account),
    text: endedText,
  }),
  row({
    name: 'user forget',
    help: 'Erase the records about an account: mails, links, waiting logins, events.',
    argument: new Argument('<id>', 'account id; the user may be deleted already'),
    examples: ['user forget 507f1f77bcf86cd799439011'],
    changes: true,
    question: ({ id }) => `Erase all records about the account ${id}`,
    run: (account: AccountId, { admin }) => admin.forgetUser(account),
    text: forgottenText,
    isRefusal: ({ under_way: underWay }) => underWay > 0,
  }),
]

function sending(name: string, ask: Ask, what: string) {
  return row({
    ...ONE_ACCOUNT,
    name: `user ${name}`,
    help: `Mail a ${what} to the address of an account, and wait until it is sent.`,
    options: [ID, WAIT],
    examples: [`user ${name} alice`, `user ${name} alice --wait 0`],
    changes: true,
    run: ({ wait, ...account }: AccountQuery & { wait: number }, connection) =>
      sendAndWait(connection, ask, account, wait),
  })
}

function making(name: string, ask: 'verifyUser' | 'unverifyUser', state: string) {
  return row({
    ...ONE_ACCOUNT,
    name: `user ${name}`,
    help: `Make the address of an account ${state}; no mail is sent.`,
    examples: [`user ${name} alice`],
    changes: true,
    run: (account: AccountQuery, { admin }) => admin[ask](account),
    text: ({ email, changed }) =>
      changed ? `${email} is ${state} now.` : `Nothing changed: ${email} was ${state} before.`,
  })
}

async function showStatus(
  { all = false, ...account }: AccountQuery & { all?: boolean },
  { admin, output }: Connection,
): Promise<void> {
  const tell = (query: AccountQuery, status: UserStatus, end = '') =>
    output.answer(status, (status) => userText(status, query, all, output) + end)
  try {
    tell(account, await admin.userStatus(account))
  } catch (error) {
    // A program gets the accounts to choose from; a person gets the status of each.
    const { problem } = error instanceof AdminApiError ? error : {}
    if (output.isJson || problem?.code !== 'ambiguous_account') throw error
    output.answer(problem, ({ title }) => `${title}\n`)
    for (const { id } of problem.candidates ?? [])
      tell({ id }, await admin.userStatus({ id }), '\n')
    throw error
  }
}

function changedText({ mail_id: mailId, notice_id: noticeId }: ChangedEmail): string {
  return linesOf(
    'Links and waiting logins of other addresses are void.',
    mailId ? `The verification mail was asked for: ${mailId}` : 'No verification mail is due.',
    noticeId ? `The notice was asked for: ${noticeId}` : 'No notice is due.',
  )
}

function endedText({ oauth, idp, clients }: EndedSessions): string {
  return linesOf(
    'All sessions, grants and tokens are ended.',
    `Grants, codes and tokens deleted: ${oauth ?? 'the adapter cannot tell'}`,
    `Sessions and login results deleted: ${idp ?? 'the adapter cannot tell'}`,
    clients && `Clients that are told to sign the person out: ${clients.notified}`,
    clients && `Clients that cannot be told: ${clients.not_notified}`,
  )
}

function forgottenText({ under_way: underWay, ...erased }: ForgottenAccount): string {
  const lines = Object.entries(erased).map(([name, count]) => {
    const what = labelOf(name)
    return `${what.slice(0, 1).toUpperCase()}${what.slice(1)} erased: ${count}`
  })
  const rest = `Not erased, because still in progress: ${underWay}. Do this again in a minute.`
  return linesOf(...lines, underWay > 0 && rest)
}

const INTERVAL_MS = 500
/** The least time to wait for one answer, even when the time is over. */
const MIN_MS = 5_000

type Ask = 'sendReset' | 'inviteUser' | 'sendVerification'

/** @param wait - how many seconds to wait for the mail to be sent. */
async function sendAndWait(connection: Connection, ask: Ask, account: AccountQuery, wait: number) {
  const { admin, output, run } = connection
  const accepted = await admin[ask](account)
  if (wait === 0) return output.answer(accepted, acceptedText)
  if (!output.isJson) output.note(acceptedText(accepted))
  const outcome = await awaitMail(connection, accepted.mail_id, Date.now() + wait * 1_000)
  output.answer(outcome, outcomeText)
  if (outcome.state !== 'sent') run.exitCode = exitCodes.refused
}

const acceptedText = ({ mail_id }: Accepted) => `The mail was asked for: ${mail_id}`

/** Waits for the final outcome of a mail. At `end`, it answers the outcome so far. A server that is away meanwhile may come back. */
function awaitMail({ admin, run }: Connection, mailId: string, end: number): Promise<MailOutcome> {
  const left = () => Math.max(0, end - Date.now())
  return withProgress(run.io, async (tell) => {
    for (;;) {
      try {
        const signal = AbortSignal.timeout(Math.max(MIN_MS, left()))
        const outcome = await admin.mailOutcome({ mail_id: mailId }, { signal })
        if (outcome.state !== 'waiting' || left() === 0) return outcome
      } catch (error) {
        if (exitCodeOf(error) !== exitCodes.unreachable || left() === 0) throw error
      }
      tell(`The mail waits to be sent (${Math.ceil(left() / 1_000)} s) …`)
      await sleep(Math.min(INTERVAL_MS, left()))
    }
  })
}
