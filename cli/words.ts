import type { Colour, Output } from './output.ts'
import { table } from './table.ts'
import type { AuditEvent, Check, Link, MailJob, UserStatus } from '../src/admin/client.ts'
import type { MailFailure, NoMail } from '../src/ports/audit.ts'

const words: Record<Check['status'], [string, Colour]> = {
  ok: ['ok', 'green'],
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
    ...(reply === undefined ? [] : [`         It said: ${reply}`]),
    ...(advice === undefined ? [] : [`         ${output.paint('bold', advice)}`]),
  ].join('\n')
}

/** One event in one line. */
export function eventText({ at, type, ...event }: AuditEvent): string {
  const { account_id, username, client_id, address, reason, user_agent, details = {} } = event
  // No detail can pass for what the event is about.
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
  const told = Object.entries(known).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}=${valueText(value)}`],
  )
  return [at, type, ...told].join('  ')
}

function valueText(value: unknown): string {
  return typeof value === 'string' && /^[^\s"=]+$/.test(value) ? value : JSON.stringify(value)
}

/** Why a request came to no mail, and what to do. */
const reasons: Partial<Record<MailFailure, string>> & Record<NoMail, string> = {
  unknown: 'no account is known by that name: check it with `user status`',
  ambiguous: 'several accounts could be meant: name one with --id',
  already_verified: 'the address is verified already: no link is needed',
  not_verified:
    'the address is not verified: send a verification link, or change reset_requires_verified_email',
  throttled:
    'the account has had too many mails lately: use the link that it has, or see mails_per_account_per_hour and resend_cooldown',
  superseded: 'a newer request took its place: look at that one with `user status`',
  sent_before: 'it was sent already',
  expired: 'it waited for so long that its link has expired: see `doctor`, and ask again',
  account_gone: 'the account is gone',
  disabled: 'the account is disabled: enable it first',
  no_address: 'the account has no e-mail address: give it one',
  bad_address: 'the address of the account is not one: correct it',
  no_password: 'the account has no password, and signs in another way',
  unexpected_error: 'the server failed: see its log',
  ERR_MAIL_REFUSED: 'the mail server refused it: see what it says with `mail test`',
  ERR_MAIL_FAILED: 'the mail server could not be used: see why with `doctor`',
  ERR_MAIL_ADDRESS: 'the mail server does not take mails to this address: correct it',
}

/** A reason with its words; one that this program does not know stays as it is. */
export function reasonText(reason: string | undefined): string {
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

export function userText(user: UserStatus, output: Output): string {
  const { links, mails, events, hints } = user
  const facts: [string, string][] = [
    ['id', user.id],
    ['username', user.username],
    ['e-mail', user.email ?? 'none'],
    ['verified', yesOrNo(user.email_verified)],
    ['disabled', yesOrNo(user.disabled)],
    ['password', yesOrNo(user.has_password)],
    ['grants, codes and tokens ended', user.oauth_sessions_ended_at ?? 'never'],
    ['sessions ended', user.idp_sessions_ended_at ?? 'never'],
  ]
  const nameWidth = Math.max(...facts.map(([name]) => name.length))
  const sections = [
    `${output.paint('bold', user.summary)} ${user.advice}`,
    facts.map(([name, value]) => `${name.padEnd(nameWidth)}  ${value}`).join('\n'),
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
