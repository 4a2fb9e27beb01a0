import type { MailFault } from '../errors.ts'
import type { MailJobStatus, RecordedEvent, User } from '../ports/index.ts'
import type { LinkKind } from '../ports/mail-kinds.ts'
import {
  changedSince,
  sendLink,
  timeOf,
  unverified,
  type Diagnosis,
  type Present,
} from './not-mailed.ts'

/** What the event that ended the newest mail, or a request for one, says. */
export function ofLastMail(
  event: RecordedEvent,
  present: Present & { mails: MailJobStatus[] },
): Diagnosis {
  const { user } = present
  const kind = event.type.startsWith('password_reset') ? 'password_reset' : 'email_verification'
  const what = kind === 'password_reset' ? 'reset link' : 'verification link'
  if (event.type.endsWith('_mail_sent')) return sent(event, user, what)
  const { reason = 'unknown reason' } = event
  const past = PAST.get(reason)
  if (past !== undefined) {
    return ofNow(reason, present) ?? changedSince(event, present, past, kind)
  }
  switch (reason) {
    case 'ERR_MAIL_REFUSED':
    case 'ERR_MAIL_FAILED': {
      const job = present.mails.find(({ id }) => event.id.startsWith(`mail_failed:${id}:`))
      return failed(event, { user, what, next: nextOf(job, user, kind) })
    }
    case 'ERR_MAIL_ADDRESS':
      return {
        cause: 'bad_address',
        summary: `The last ${what} was not sent (${timeOf(event)}): no mail can be sent to the address it had.`,
        advice: 'Correct the address where your users are, then have the person ask again.',
      }
    case 'throttled':
      return {
        cause: 'limited',
        summary: `The last request, at ${timeOf(event)}, got no mail: the account has had too many lately.`,
        advice:
          'Have the person use the newest mail that came, or ask again later (mails_per_account_per_hour, resend_cooldown).',
      }
    default:
      return {
        cause: 'ended',
        summary: `The last ${what} was not sent (${reason}, ${timeOf(event)}).`,
        advice: `See what waits with account-flows doctor, then: ${sendLink(user, kind)}`,
      }
  }
}

/** What was so of the account when a request ended for such a reason. */
const PAST = new Map([
  ['not_verified', 'the address was not verified'],
  ['already_verified', 'the address was verified already'],
  ['no_password', 'the account had no password'],
  ['disabled', 'the account was disabled'],
  ['no_address', 'the account had no e-mail address'],
  ['bad_address', 'the address was not one plain e-mail address'],
])

/** What ends a request still; `undefined`: that is so no more. What ends every request was looked at before. */
function ofNow(reason: string, present: Present): Diagnosis | undefined {
  const { user, needsVerified } = present
  if (reason === 'not_verified' && needsVerified && !user.emailVerified) return unverified(present)
  if (reason === 'already_verified' && user.emailVerified) {
    return {
      cause: 'verified',
      summary: 'The address is verified already: no verification link is needed.',
      advice: 'Have the person sign in.',
    }
  }
  if (reason !== 'no_password' || user.passwordHash !== undefined) return undefined
  return {
    cause: 'no_password',
    summary: 'The account has no password: it gets no reset link.',
    advice: 'Have the person sign in the way the account is made for.',
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

/** What becomes of a mail that failed. `undefined`: it is gone. */
function nextOf(job: MailJobStatus | undefined, user: User, kind: LinkKind): string {
  const next = job?.state === 'waiting' ? job.nextAttemptAt : undefined
  if (next) return `It is tried again at ${next.toISOString()}.`
  const again =
    job?.state === 'dead' ? `account-flows outbox retry ${job.id}` : sendLink(user, kind)
  return `Once that is mended: ${again}`
}

function failed(
  event: RecordedEvent,
  { user: { email = '' }, what, next }: { user: User; what: string; next: string },
): Diagnosis {
  const { step, code = 'unknown reason', reply }: Partial<MailFault> = event.details ?? {}
  const at = step && (/^[A-Z]/.test(step) ? ` at ${step}` : ` while ${step}`)
  const said = reply === undefined ? code : `"${reply.replaceAll('"', "'")}"`
  const fault = `${said}${at ?? ''}`
  const isAnswer = /^\d/.test(code) && (step === 'RCPT TO' || step === 'DATA')
  const look = reply === undefined && isAnswer ? 'mail test' : 'doctor'
  const advice = `See account-flows ${look} --to ${email}. ${next}`
  if (event.reason === 'ERR_MAIL_REFUSED') {
    const summary = `The mail server refused the last ${what} for good: ${fault}.`
    // RFC 3463: x.1.x is about an address, all else is not.
    const isOfAddress = !/^\d{3} \d\.(?!1\.)/.test(code)
    const check = isOfAddress ? 'Check the address.' : 'Ask whoever runs the mail server.'
    return { cause: 'refused', summary, advice: `${check} ${advice}` }
  }
  if (isAnswer) {
    const summary = `The mail server does not take the last ${what} now: ${fault}.`
    return { cause: 'refused', summary, advice }
  }
  const summary = `The mail server could not be used for the last ${what}: ${fault}.`
  return { cause: 'mail_server_down', summary, advice }
}
