import type { AccountQuery, Link, UserStatus } from '../src/admin/client.ts'
import { plain, type Output } from './output.ts'
import { factLines, labelOf, table, type Fact } from './table.ts'
import { eventText, mailTable } from './words.ts'

/** One screen: what is wrong, what to do, and the account. With `isAll` its whole history. */
export function statusText(
  user: UserStatus,
  query: AccountQuery,
  isAll: boolean,
  output: Output,
): string {
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
          section('Mails', mails, () => mailTable(mails, output.columns)),
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

function newestFacts({ links: [link], mails: [mail], events: [event] }: UserStatus): Fact[] {
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

function yesOrNo(is: boolean): string {
  return is ? 'yes' : 'no'
}

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
