import { eventText } from './event-text.ts'
import { mailTable } from './mail-words.ts'
import type { Colour, Output } from './output.ts'
import { factLines, table, type Fact } from './table.ts'
import type { Check, Link, UserStatus } from '../src/admin/client.ts'

const words: Record<Check['status'], [string, Colour]> = {
  ok: ['ok', 'green'],
  advice: ['advice', 'yellow'],
  warning: ['warning', 'yellow'],
  failed: ['FAILED', 'red'],
  skipped: ['skipped', 'grey'],
}

const STATUS_WIDTH = 8

/** One line, with what the other side said and what to do beneath it. */
export function checkText({ step, status, message, reply, advice }: Check, output: Output): string {
  const [word, colour] = words[status]
  return [
    `${output.paint(colour, word.padEnd(STATUS_WIDTH))} ${step}: ${message}`,
    ...(reply === undefined ? [] : [`         Answer: ${reply}`]),
    ...(advice === undefined ? [] : [`         ${output.paint('bold', advice)}`]),
  ].join('\n')
}

export function userText(user: UserStatus, output: Output): string {
  const { links, mails, events, hints } = user
  const facts: Fact[] = [
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
  const sections = [
    output.paint('bold', `${user.summary} ${user.advice}`),
    factLines(facts).join('\n'),
    ...(hints.length === 0 ? [] : [['Hints', ...hints.map((hint) => `- ${hint}`)].join('\n')]),
    section('Links', links, () => linkTable(links, output.columns)),
    section('Mails', mails, () => mailTable(mails, output.columns)),
    section('Events', events, () => events.map(eventText).join('\n')),
  ]
  return sections.join('\n\n')

  function section(title: string, rows: unknown[], text: () => string): string {
    return `${output.paint('bold', title)}\n${rows.length === 0 ? 'none' : text()}`
  }
}

function clientText(clients: UserStatus['clients']): string | undefined {
  if (!clients) return undefined
  const { told, waiting, failed, untold } = clients
  return `${told} told, ${waiting} waiting, ${failed} failed, ${untold} cannot be told`
}

function linkTable(links: Link[], columns: number | undefined): string {
  return table(
    ['kind', 'state', 'made', 'expires', 'used', 'client', 'mail'],
    links.map((link) => [
      link.kind,
      link.state,
      link.created_at,
      link.state === 'void' ? '' : link.expires_at,
      link.used_at ?? '',
      link.client_id ?? '',
      link.mail_id,
    ]),
    columns,
  )
}

function yesOrNo(is: boolean): string {
  return is ? 'yes' : 'no'
}
