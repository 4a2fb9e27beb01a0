import type { MailFault } from '../errors.ts'
import type { MailJobStatus, RecordedEvent, User } from '../ports/index.ts'
import { MAIL_KINDS, type LinkKind } from '../ports/mail-kinds.ts'
import type { UserStatus } from './description.ts'

export type Diagnosis = Pick<UserStatus, 'cause' | 'summary' | 'advice'>

/**
 * What the event that ended the newest mail, or a request for one, says.
 *
 * @param waiting - the mail, if it is tried again.
 */
export function ofLastMail(
  event: RecordedEvent,
  user: User,
  waiting: MailJobStatus | undefined,
): Diagnosis {
  const kind = event.type.startsWith('password_reset') ? 'password_reset' : 'email_verification'
  const what = kind === 'password_reset' ? 'reset link' : 'verification link'
  if (event.type.endsWith('_mail_sent')) return sent(event, user, what)
  const { reason = 'unknown reason' } = event
  switch (reason) {
    case 'ERR_MAIL_REFUSED':
    case 'ERR_MAIL_FAILED':
      return failed(event, user, what, waiting)
    case 'throttled':
      return {
        cause: 'limited',
        summary: `The last request, at ${timeOf(event)}, got no mail: the account has had too many lately.`,
        advice:
          'Have the person use the newest mail that came, or ask again later (mails_per_account_per_hour, resend_cooldown).',
      }
    case 'not_verified':
      return unverified(user, 'it gets no reset link (reset_requires_verified_email)')
    case 'already_verified':
      return {
        cause: 'verified',
        summary: 'The address is verified already: no verification link is needed.',
        advice: 'Have the person sign in.',
      }
    case 'no_password':
      return {
        cause: 'no_password',
        summary: 'The account has no password: it gets no reset link.',
        advice: 'Have the person sign in the way the account is made for.',
      }
    default:
      return {
        cause: 'ended',
        summary: `The last ${what} was not sent (${reason}, ${timeOf(event)}).`,
        advice: `See what waits with account-flows doctor, then: ${sendLink(user, kind)}`,
      }
  }
}

function sent(event: RecordedEvent, { email = '' }: User, what: string): Diagnosis {
  const { message_id: messageId, queue_id: queueId } = event.details ?? {}
  const ids = [
    ...(messageId === undefined ? [] : [`Message-ID ${String(messageId)}`]),
    ...(queueId === undefined ? [] : [`queue id ${String(queueId)}`]),
  ]
  const find = ids.length > 0 ? ` Whoever runs the mail server finds it by ${ids.join(', ')}.` : ''
  return {
    cause: 'sent',
    summary: `The last ${what} was sent at ${timeOf(event)}: the mail server took it.`,
    advice: `Have the person look into the spam folder of ${email}.${find}`,
  }
}

function failed(
  event: RecordedEvent,
  { id, email = '' }: User,
  what: string,
  waiting: MailJobStatus | undefined,
): Diagnosis {
  const { step, code = 'unknown reason', reply }: Partial<MailFault> = event.details ?? {}
  const at = step && (/^[A-Z]/.test(step) ? ` at ${step}` : ` while ${step}`)
  const fault = `${reply ?? code}${at ?? ''}`
  const isAnswer = /^\d/.test(code) && (step === 'RCPT TO' || step === 'DATA')
  const next = waiting?.nextAttemptAt
  const again = next
    ? `It is tried again at ${next.toISOString()}`
    : `Once that is mended: account-flows outbox list --account ${id}`
  const look = reply === undefined && isAnswer ? 'mail test' : 'doctor'
  const advice = `See account-flows ${look} --to ${email}. ${again}.`
  if (event.reason === 'ERR_MAIL_REFUSED') {
    const summary = `The mail server refused the last ${what} for good: ${fault}.`
    return { cause: 'refused', summary, advice: `Check the address. ${advice}` }
  }
  if (isAnswer) {
    const summary = `The mail server does not take the last ${what} now: ${fault}.`
    return { cause: 'refused', summary, advice }
  }
  const summary = `The mail server could not be used for the last ${what}: ${fault}.`
  return { cause: 'mail_server_down', summary, advice }
}

export function unverified(user: User, because: string): Diagnosis {
  return {
    cause: 'unverified',
    summary: `The address is not verified: ${because}.`,
    advice: `Have the person ask with the username, or verify it: ${sendLink(user, 'email_verification')}`,
  }
}

export const sendLink = ({ id }: User, kind: LinkKind) =>
  `account-flows ${MAIL_KINDS[kind].link.command} --id ${id}`

export const timeOf = ({ at }: RecordedEvent) => at.toISOString()
