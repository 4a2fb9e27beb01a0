/**
 * Why somebody got no mail, in one sentence, and what to do next in another.
 *
 * @module
 */
import type { AuditEventType, MailJobStatus, RecordedEvent, User } from '../ports/index.ts'
import { MAIL_KINDS, linkKinds } from '../ports/mail-kinds.ts'
import { isMailAddress } from '../settings/mail-address.ts'
import { ofLastMail } from './last-mail.ts'
import {
  changedSince,
  sendLink,
  shared,
  unverified,
  type Diagnosis,
  type Present,
} from './not-mailed.ts'

export interface MailHistory extends Present {
  /** Newest first. */
  mails: MailJobStatus[]
  /** Of the types of `MAIL_EVENTS`, newest first. */
  events: RecordedEvent[]
  /** When somebody asked with the address of the account, and was not found by it. */
  askedByAddress: RecordedEvent | undefined
  /** Whether several accounts have its address verified, so that it names none of them. */
  isShared: boolean
  /** Whether mails can leave under the settings in force. */
  canSend: boolean
}

export const MAIL_EVENTS: AuditEventType[] = linkKinds.flatMap((kind) =>
  (['requested', 'mail_sent', 'mail_failed'] as const).map(
    (what) => `${MAIL_KINDS[kind].flow}_${what}` as const,
  ),
)

export function diagnose(history: MailHistory): Diagnosis {
  const { user, mails, askedByAddress, canSend } = history
  const noMail = ofAccount(user)
  if (noMail) return noMail
  if (!canSend) {
    return {
      cause: 'mail_server_down',
      summary: 'SMTP is not configured: all mails wait.',
      advice: 'Set smtp_host, smtp_port and smtp_from with account-flows settings set.',
    }
  }
  const last = lastOf(history)
  const since = last?.recordedAt ?? new Date(0)
  const asked = askedByAddress && askedByAddress.recordedAt > since ? askedByAddress : undefined
  const known = asked?.recordedAt ?? since
  const waiting = mails.find(
    ({ state, reason, requestedAt = known }) =>
      state === 'waiting' && reason === undefined && requestedAt > known,
  )
  if (waiting?.requestedAt) {
    return {
      cause: 'waiting',
      summary: `A mail that was asked for at ${waiting.requestedAt.toISOString()} waits to be sent.`,
      advice: 'Look again in a minute; if it still waits then, see account-flows doctor.',
    }
  }
  if (asked) return ofAddress(history, asked)
  if (last) return ofLastMail(last, history)
  if (!user.emailVerified) return unverified(history)
  if (history.isShared) return shared()
  return {
    cause: 'not_asked',
    summary: 'Nobody asked for a mail for this account, as far as events are kept.',
    advice: `Have the person ask again, or send a link: ${sendLink(user, 'password_reset')}`,
  }
}

/** What no request can change. */
function ofAccount(user: User): Diagnosis | undefined {
  const again = 'then have the person ask again.'
  if (user.disabled) {
    const summary = 'The account is disabled: it gets no mail.'
    return { cause: 'disabled', summary, advice: `Enable it where your users are, ${again}` }
  }
  if (user.email === undefined) {
    const summary = 'The account has no e-mail address: it gets no mail.'
    return { cause: 'no_address', summary, advice: `Give it one where your users are, ${again}` }
  }
  if (isMailAddress(user.email)) return undefined
  const summary = 'The address is not one plain e-mail address: no mail can be sent to it.'
  return { cause: 'bad_address', summary, advice: `Correct it where your users are, ${again}` }
}

/** Of a request with the address, which named nobody. */
function ofAddress(history: MailHistory, asked: RecordedEvent): Diagnosis {
  if (!history.user.emailVerified) return unverified(history, asked)
  if (history.isShared) return shared(asked)
  return changedSince(asked, history, 'its address named no account')
}

/** What ended the newest request that tells anything. Who asked too often has no mail to use while none came. */
function lastOf({ events, mails }: MailHistory): RecordedEvent | undefined {
  const decisive = events.filter(isDecisive)
  const [newest] = decisive
  const before = decisive.find(({ reason }) => reason !== 'throttled')
  const cameNone =
    before?.type.endsWith('_mail_failed') || mails.some(({ state }) => state === 'waiting')
  return cameNone ? before : newest
}

/** Not so: a request whose end comes later, a notice, and what a newer request took the place of. */
function isDecisive({ type, reason, details }: RecordedEvent): boolean {
  if (details?.['mail'] !== undefined) return false
  return type.endsWith('_requested')
    ? reason !== undefined && reason !== 'superseded'
    : reason !== 'superseded' && reason !== 'sent_before'
}
