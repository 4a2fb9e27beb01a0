/** How mails, events and checks read for people. */
import type {
  AccountQuery,
  AuditEvent,
  Check,
  Link,
  MailJob,
  MailOutcome,
  MailRecord,
  UserStatus,
} from '../src/admin/client.ts'
import type { MailFailure, NoMail } from '../src/contract/audit.ts'
import { plain, type Colour, type Output } from './output.ts'
import { factLines, labelOf, linesOf, table, type Fact } from './table.ts'

/** Why a request led to no mail, and what to do. */
const reasons: Partial<Record<MailFailure, string>> & Record<NoMail, string> = {
  unknown: 'no account has this name: check it with `user status`',
  ambiguous: 'several accounts match: name one with --id',
  already_verified: 'the address is verified already: no link is needed',
  not_verified:
    'the address is not verified: see `user status`. If the account has a password, you may change reset_requires_verified_email',
  throttled:
    'the account had too many mails recently: use its last link, or see mails_per_account_per_hour and resend_cooldown',
  other_address:
    'the person typed another address: no other mail leaves until its mailbox is proven',
  superseded: 'a newer request replaced it: see that one with `user status`',
  sent_before: 'it was sent already',
  expired: 'it waited until its link expired: see `doctor`, then ask again',
  account_gone: 'the account was deleted',
  disabled: 'the account is disabled: enable it first',
  no_address: 'the account has no e-mail address: give it one',
  bad_address: 'the address of the account is not valid: correct it',
  no_password: 'the account has no password, and cannot choose one: see `user status`',
  has_password: 'the account has a password: send a reset link with `user send-reset`',
  unexpected_error: 'the server failed: see its log',
  ERR_MAIL_REFUSED: 'the mail server refused it: see its answer with `mail test`',
  ERR_MAIL_FAILED: 'the mail server could not be used: see the reason with `doctor`',
  ERR_MAIL_ADDRESS: 'the mail server does not accept this address: correct it',
}

/** A reason with its words; one that this program does not know stays as it is. */
function reasonText(reason: string | undefined): string {
  if (reason === undefined) return ''
  const words = new Map(Object.entries(reasons)).get(reason)
  return words === undefined ? reason : `${reason}: ${words}`
}

export function mailTable(mails: MailJob[], columns: number | undefined): string {
  return table(
    ['mail', 'kind', 'account', 'state', 'requested', 'next attempt', 'attempts', 'reason'],
    mails.map((mail) => [
      mail.id,
      mail.kind,
      accountText(mail),
      mail.is_held ? `${mail.state}, being sent` : mail.state,
      mail.requested_at ?? '',
      mail.next_attempt_at ?? '',
      String(mail.attempts),
      reasonText(mail.reason),
    ]),
    columns,
  )
}

function accountText({ account_id: id = '', username }: MailJob): string {
  return username === undefined ? id : `${username} (${id})`
}

export function outcomeText({ mail_id: id, state, reason, ...outcome }: MailOutcome): string {
  const { sent_at: sentAt, next_attempt_at: next } = outcome
  const texts: Record<typeof state, string> = {
    sent: `Sent${sentAt === undefined ? '' : ` at ${sentAt}`}.`,
    waiting: `Not sent yet: it still waits (mail ${id}).`,
    ended: 'Not sent.',
    dead: `Not sent, and there will be no other attempt (mail ${id}).`,
    unknown: `There is no record of the mail ${id}.`,
  }
  return linesOf(
    texts[state],
    reason !== undefined && `Reason: ${reasonText(reason)}`,
    next !== undefined && `The next attempt is at ${next}.`,
  )
}

export function recordText({ mail, history, ...outcome }: MailRecord): string {
  const facts = factLines([
    ['account', mail && (accountText(mail) || undefined)],
    ['kind', mail?.kind],
    ['requested', mail?.requested_at],
    ['expires', mail?.expires_at],
    ['attempts', mail && String(mail.attempts)],
    ['Message-ID', outcome.message_id],
    ['queue id', outcome.queue_id],
  ])
  const events = history.length > 0 && linesOf('', 'History', ...history.map(eventText))
  return linesOf(outcomeText(outcome), ...facts, events)
}

export function eventText({ at, type, ...event }: AuditEvent): string {
  const { account_id, username, client_id, address, reason, user_agent, details = {} } = event
  // The prefix keeps a detail from passing for a field of the event.
  const prefixed = Object.entries(details).map(([name, value]) => [`details.${name}`, value])
  const known = {
    account: account_id,
    username,
    client: client_id,
    address,
    reason,
    ...Object.fromEntries(prefixed),
    user_agent,
  }
  const told = Object.entries(known)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}=${valueText(value)}`)
  return [at, type, ...told].join('  ')
}

function valueText(value: unknown): string {
  return typeof value === 'string' && /^[^\s"=]+$/.test(value) ? value : JSON.stringify(value)
}

const statusWords: Record<Check['status'], [string, Colour]> = {
  ok: ['ok', 'green'],
  advice: ['advice', 'yellow'],
  warning: ['warning', 'yellow'],
  failed: ['FAILED', 'red'],
  skipped: ['skipped', 'grey'],
}

const STATUS_WIDTH = 8
const BELOW = `\n${' '.repeat(STATUS_WIDTH + 1)}`

/** One line, with what the other side said and what to do beneath it. */
export function checkText({ step, status, message, reply, advice }: Check, output: Output): string {
  // Each sentence is about another setting.
  const sentences = status === 'advice' ? message.replaceAll('. ', `.${BELOW}`) : message
  return [
    `${statusText(status, output)} ${step}: ${sentences}`,
    ...(reply === undefined ? [] : [`Answer: ${reply}`]),
    ...(advice === undefined ? [] : [output.paint('bold', advice)]),
  ].join(BELOW)
}

export function statusText(status: Check['status'], output: Output): string {
  const [word, colour] = statusWords[status]
  return output.paint(colour, word.padEnd(STATUS_WIDTH))
}

/** One screen: what is wrong, what to do, and the account. With `isAll` its whole history. */
export function userText(user: UserStatus, query: AccountQuery, isAll: boolean, output: Output) {
  const { id, summary, advice, hints, links, mails, events } = user
  const name = accountArgument(query, user)
  const steps = withCommandLines(advice).replaceAll(`--id ${id}`, () => name)
  const [subject] = summary.split(':')
  const others = hints.filter((hint) => hint.split(':')[0] !== subject)
  return [
    `${output.paint('bold', summary)} ${steps}`,
    factLines([...accountFacts(user), ...(isAll ? [] : newestFacts(user))]).join('\n'),
    ...(others.length === 0 ? [] : [['Hints', ...others.map((hint) => `- ${hint}`)].join('\n')]),
    ...(isAll
      ? [
          section('Links', links, () => linkTable(links, output.columns)),
          section('Mails in the outbox', mails, () => mailTable(mails, output.columns)),
          section('Events', events, () => events.map(eventText).join('\n')),
        ]
      : [`All links, mails and events:\n  account-flows user status --all ${name}`]),
  ].join('\n\n')

  function section(title: string, rows: unknown[], text: () => string): string {
    return `${output.paint('bold', title)}\n${rows.length === 0 ? 'none' : text()}`
  }
}

function accountFacts(user: UserStatus): Fact[] {
  return [
    ['id', user.id],
    ['username', user.username],
    ['e-mail', user.email ?? 'none'],
    ['verified', yesOrNo(user.email_verified)],
    ['disabled', yesOrNo(user.disabled)],
    ['password', yesOrNo(user.has_password)],
    ['grants, codes and tokens ended', user.oauth_sessions_ended_at ?? 'never'],
    ['sessions ended', user.idp_sessions_ended_at ?? 'never'],
    ['clients of the last end', clientText(user.clients)],
  ]
}

function newestFacts({ links: [link], mails: [mail], events }: UserStatus): Fact[] {
  // Not the question itself, or one like it.
  const event = events.find(({ details }) => details?.['action'] !== 'user_status')
  return [
    ['newest link', link && `${link.kind}, ${link.state}, ${link.created_at}`],
    ['newest mail', mail && `${mail.kind}, ${mail.state}, ${mail.requested_at ?? 'time unknown'}`],
    ['newest event', event && `${event.type}, ${event.at}`],
  ]
}

function clientText(clients: UserStatus['clients']): string | undefined {
  if (!clients) return undefined
  const { notified, waiting, failed, not_notified: others } = clients
  return `${notified} told, ${waiting} waiting, ${failed} failed, ${others} cannot be told`
}

const TIMES = ['created_at', 'expires_at', 'used_at'] as const
const LINK_FIELDS = ['kind', 'state', ...TIMES, 'client_id', 'mail_id'] as const

function linkTable(links: Link[], columns: number | undefined): string {
  const rows = links.map((link) => LINK_FIELDS.map((field) => link[field] ?? ''))
  return table(LINK_FIELDS.map(labelOf), rows, columns)
}

const yesOrNo = (is: boolean) => (is ? 'yes' : 'no')

/** The same text, with each command behind a colon on a line of its own. */
export function withCommandLines(text: string): string {
  return text.replace(/: (account-flows .+?)(?:\. (?=[A-Z])|\.?$)/g, ':\n  $1\n').trimEnd()
}

/** How to name an account on a command line: as the user typed it, if that names it for every command. An unverified address does not. */
function accountArgument({ user: typed }: AccountQuery, user: UserStatus): string {
  const isItsName = user.email_verified || typed === user.username || typed === user.id
  if (typed === undefined || !isItsName || plain(typed) !== typed) return `--id ${quoted(user.id)}`
  return typed.startsWith('-') ? `-- ${quoted(typed)}` : quoted(typed)
}

/** Quotes a text for a shell. */
function quoted(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}
