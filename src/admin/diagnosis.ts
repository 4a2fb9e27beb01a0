/** Finds why somebody got no mail, out of the account, its mails and events. What a cause says is in `causes.ts`. */
import type { AuditEventType, RecordedEvent } from '../ports/index.ts'
import type { MailJobStatus } from '../records/index.ts'
import { isBlockedBy } from '../flows/not-me.ts'
import { MAIL_KINDS, linkKinds } from '../ports/mail-kinds.ts'
import type { Diagnosis, Present } from './causes.ts'
import * as causes from './causes.ts'
import { failed } from './failed-mail.ts'

export interface MailHistory extends Present {
  /** Newest first. */
  mails: MailJobStatus[]
  /** Of the types of `MAIL_EVENTS`, newest first. */
  events: RecordedEvent[]
  /** What "This wasn't me" did, newest first. */
  disowned: RecordedEvent[]
  /** When somebody asked with the address of the account, and was not found by it; or was denied by the host, by whatever name. */
  askedInVain: RecordedEvent | undefined
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
  const { user, mails, askedInVain, canSend, disowned } = history
  const block = disowned.find(({ details }) => isBlockedBy(user, details))
  if (block) return causes.blocked(block, user)
  const [noMail] = causes.noMailAtAll(user)
  if (noMail) return noMail
  if (!canSend) return causes.NOT_CONFIGURED
  const last = lastOf(history)
  const since = last?.recordedAt ?? new Date(0)
  const asked = askedInVain && askedInVain.recordedAt > since ? askedInVain : undefined
  const known = asked?.recordedAt ?? since
  const waiting = mails.find(
    ({ state, reason, requestedAt = known }) =>
      state === 'waiting' && reason === undefined && requestedAt > known,
  )
  if (waiting?.requestedAt) {
    return {
      cause: 'waiting',
      summary: `A mail, requested at ${waiting.requestedAt.toISOString()}, waits to be sent.`,
      advice: 'Look again in a minute. If it still waits, run account-flows doctor.',
    }
  }
  if (asked) return ofVain(history, asked)
  if (last) return ofLastMail(last, history)
  if (user.passwordHash === undefined) return causes.noPassword(user)
  if (!user.emailVerified) return causes.unverified(history)
  if (history.isShared) return causes.shared()
  return {
    cause: 'not_asked',
    summary: 'The audit log has no request for a mail to this account.',
    advice: `Ask the person to try again, or send a link: ${causes.sendLink(user, 'password_reset')}`,
  }
}

/** Of a request that the host denied, or with the address, which named nobody. */
function ofVain(history: MailHistory, asked: RecordedEvent): Diagnosis {
  if (asked.reason === 'denied') {
    const kind = asked.type.startsWith('password_reset') ? 'password_reset' : 'email_verification'
    return {
      cause: 'ended',
      summary: `The last request, at ${causes.timeOf(asked)}, was denied by your own check (beforeForgotPassword).`,
      advice: `Look at this check, or send a link: ${causes.sendLink(history.user, kind)}`,
    }
  }
  if (history.user.passwordHash === undefined) return causes.noPassword(history.user)
  if (!history.user.emailVerified) return causes.unverified(history, asked)
  if (history.isShared) return causes.shared(asked)
  return causes.changedSince(asked, history, 'no account was found by its address')
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

/** What the event that ended the newest mail, or a request for one, says. */
function ofLastMail(event: RecordedEvent, history: MailHistory): Diagnosis {
  const { user, mails } = history
  const kind =
    linkKinds.find((each) => event.type.startsWith(MAIL_KINDS[each].flow)) ?? 'password_reset'
  if (event.type.endsWith('_mail_sent')) {
    // Such an invitation has done its work, or has none left.
    const isOver = kind === 'invitation' && user.passwordHash !== undefined
    return isOver ? causes.hasPassword(user) : causes.sent(event, user, kind)
  }
  const { reason = '' } = event
  const past = PAST.get(reason)
  if (past !== undefined) {
    return ofNow(reason, history) ?? causes.changedSince(event, history, past, kind)
  }
  if (reason === 'throttled') {
    return {
      cause: 'limited',
      summary: `The last request, at ${causes.timeOf(event)}, got no mail: the account had too many mails recently.`,
      advice:
        'Ask the person to use the newest mail, or to try again later (mails_per_account_per_hour, resend_cooldown).',
    }
  }
  if (reason !== 'ERR_MAIL_REFUSED' && reason !== 'ERR_MAIL_FAILED')
    return causes.ended(event, user, kind)
  const job = mails.find(({ id }) => event.id.startsWith(`mail_failed:${id}:`))
  return failed(event, user, kind, job)
}

/** What was so of the account when a request ended for such a reason. */
const PAST = new Map([
  ['not_verified', 'the address was not verified'],
  ['already_verified', 'the address was verified already'],
  ['no_password', 'the account had no password'],
  ['has_password', 'the account had a password'],
  ['disabled', 'the account was disabled'],
  ['no_address', 'the account had no e-mail address'],
  ['bad_address', 'the address was not one plain e-mail address'],
])

/** What ends a request still; `undefined`: that is so no more. What ends every request was looked at before. */
function ofNow(reason: string, present: Present): Diagnosis | undefined {
  const { user, needsVerified } = present
  if (reason === 'not_verified' && needsVerified && !user.emailVerified)
    return causes.unverified(present)
  if (reason === 'already_verified' && user.emailVerified) return causes.VERIFIED
  const hasNone = user.passwordHash === undefined
  if (reason === 'has_password' && !hasNone) return causes.hasPassword(user)
  return reason === 'no_password' && hasNone ? causes.noPassword(user) : undefined
}
