/** Finds why an account got no mail: from the account, its mails and its events. `causes.ts` says what it means. */
import type { AuditEventType, RecordedEvent, User } from '../contract/index.ts'
import { linkKinds, MAIL_KINDS, type LinkKind } from '../contract/mail-kinds.ts'
import { foldTyped, hashOf } from '../contract/users.ts'
import { answerToReset, findByIdentifier, whyNoInvitation, whyNoMail } from '../flows/account.ts'
import { isBlockedBy } from '../flows/not-me.ts'
import type { AwaitedAddress } from '../flows/other-address.ts'
import { isSmtpConfigured } from '../settings/table.ts'
import { diagnosisOf, hadNoLink, isAnswer, WAS_SO, type Cause, type Facts } from './causes.ts'
import type { AdminParts } from './operation.ts'

const MAX = 20
/** Enough to reach a failure even if the person asks again and again. */
const MAX_MAIL_EVENTS = 200

const MAIL_EVENTS = linkKinds.flatMap(eventsOf)

function eventsOf(kind: LinkKind): AuditEventType[] {
  const ends = ['requested', 'mail_sent', 'mail_failed'] as const
  return ends.map((end) => `${MAIL_KINDS[kind].flow}_${end}` as const)
}

type MailHistory = Awaited<ReturnType<typeof mailHistory>>

/** What a diagnosis is made from; everything newest first. */
export async function mailHistory(parts: AdminParts, user: User) {
  const { store, users, mail, clock } = parts
  const { id: accountId, email } = user
  const [mails, events, reported, askedInVain, named] = await Promise.all([
    store.outbox.list({ accountId, limit: MAX }, clock.now()),
    store.audit.list({ accountId, types: MAIL_EVENTS, limit: MAX_MAIL_EVENTS }),
    store.audit.list({ accountId, types: ['mail_reported'], limit: MAX }),
    lastInVain(parts, user),
    email === undefined ? 'unknown' : findByIdentifier(users, email),
  ])
  return {
    ...currentFacts(parts, user),
    mails,
    events,
    /** What "This wasn't me" did. */
    reported,
    askedInVain,
    /** Whether several accounts have verified its address, so that the address names none of them. */
    isShared: named === 'ambiguous',
    canSend: mail.canSend(),
  }
}

/** Whether mails leave, or wait until they can. `false`: a development mailbox takes them. */
export const isDelivering = ({ options: { transport }, settings }: AdminParts): boolean =>
  !transport?.isStandIn || isSmtpConfigured(settings())

export const currentFacts = (parts: AdminParts, user: User): Facts => ({
  user,
  answer: answerToReset(user, parts),
  needsLogin: parts.settings().emailLinkConfirmation === 'other_browser',
  isDelivered: isDelivering(parts),
})

/** The newest request that named no account by its address, or that the host denied. A denied request may also hold its username. */
async function lastInVain({ store, keyed }: AdminParts, { email, username }: User) {
  const newest = async (typed: string | undefined, reasons: string[]) => {
    if (typed === undefined) return []
    const identifierHash = keyed.keyedHash(foldTyped(typed))
    const asked = await store.audit.list({ identifierHash, limit: 1 })
    return asked.filter(({ reason }) => reasons.includes(reason ?? ''))
  }
  const found = await Promise.all([
    newest(email, ['unknown', 'ambiguous', 'denied']),
    newest(username, ['denied']),
  ])
  const [last] = found.flat().toSorted((a, b) => b.recordedAt.getTime() - a.recordedAt.getTime())
  return last
}

/** @param awaited - the address that the account waits for in place of its own. */
export function diagnose(history: MailHistory, awaited: AwaitedAddress | undefined) {
  const { user, mails, askedInVain, canSend, reported } = history
  const told = (cause: Cause, of?: Partial<Facts>) => diagnosisOf(cause, { ...history, ...of })
  const block = reported.find(({ details }) => isBlockedBy(user, details))
  if (block) return told('blocked', { event: block })
  const refused = whyNoMail(user) ?? (canSend ? undefined : 'mail_server_down')
  if (refused) return told(refused)
  if (awaited) return told('other_address')
  const last = lastOf(history)
  const since = last?.recordedAt ?? new Date(0)
  const event = askedInVain && askedInVain.recordedAt > since ? askedInVain : undefined
  const known = event?.recordedAt ?? since
  const job = mails.find(
    ({ state, reason, requestedAt }) =>
      state === 'waiting' && reason === undefined && requestedAt > known,
  )
  if (job) return told('waiting', { job })
  if (last && !event) return told(...ofLastMail(last, history))
  if (event?.reason === 'denied') return told('ended', { event, kind: kindOf(event) })
  const asked = event && { event }
  if (!asked && !history.isDelivered) return told('mail_server_down')
  if (history.answer === 'no_password') return told('no_password')
  if (!user.emailVerified) return told('unverified', asked)
  if (history.isShared) return told('ambiguous', asked)
  if (asked) return told('changed', asked)
  return told(history.answer === 'elsewhere' ? 'no_password' : 'not_asked')
}

/** What ended the newest decisive request. A throttled request does not count if the mail before it failed, or if a mail waits. */
function lastOf({ events, mails }: MailHistory): RecordedEvent | undefined {
  const decisive = events.filter(isDecisive)
  const [newest] = decisive
  const before = decisive.find(({ reason }) => reason !== 'throttled')
  const cameNone =
    before?.type.endsWith('_mail_failed') || mails.some(({ state }) => state === 'waiting')
  return cameNone ? before : newest
}

/** Whether an event decides. These do not: a request whose end comes later, a notice, and what a newer request replaced. */
function isDecisive({ type, reason, details }: RecordedEvent): boolean {
  if (details?.['mail'] !== undefined) return false
  return type.endsWith('_requested')
    ? reason !== undefined && reason !== 'superseded'
    : reason !== 'superseded' && reason !== 'sent_before'
}

const kindOf = ({ type }: RecordedEvent): LinkKind =>
  linkKinds.find((kind) => eventsOf(kind).includes(type)) ?? 'password_reset'

/** The cause that `event` means. It ended the newest mail, or a request for one. */
function ofLastMail(event: RecordedEvent, history: MailHistory): [Cause, Partial<Facts>?] {
  const kind = kindOf(event)
  const about = { event, kind }
  if (event.type.endsWith('_mail_sent')) {
    const cause = whyNoLink[kind](history)
    // What was mailed is of no use now.
    if (cause && cause !== 'unverified') return [cause]
    if (!history.isDelivered) return ['mail_server_down']
    if (!hadNoLink(event)) return ['sent', about]
    return cause ? [cause] : ['changed', about]
  }
  const { reason = '' } = event
  if (WAS_SO.has(reason)) {
    const isMended = kind === 'password_reset' && history.answer === 'elsewhere'
    const cause = isMended ? undefined : whyNoLink[kind](history)
    return cause ? [cause] : ['changed', about]
  }
  if (reason === 'throttled') return ['limited', about]
  if (reason === 'ERR_MAIL_ADDRESS') return ['bad_address', about]
  if (reason !== 'ERR_MAIL_REFUSED' && reason !== 'ERR_MAIL_FAILED') return ['ended', about]
  const job = history.mails.find(({ id }) => event.id.startsWith(`mail_failed:${id}:`))
  // Otherwise it accepts no mail.
  const isRefused = reason === 'ERR_MAIL_REFUSED' || isAnswer(event.details ?? {})
  return [isRefused ? 'refused' : 'mail_server_down', { ...about, job }]
}

/** Why a request for such a link gets none now. Causes that end every request are checked before. */
export const whyNoLink: Record<LinkKind, (facts: Facts) => Cause | undefined> = {
  invitation: ({ user }) => whyNoInvitation(user),
  email_verification: ({ user }) => (user.emailVerified ? 'verified' : undefined),
  password_reset({ answer }) {
    if (answer === 'not_verified') return 'unverified'
    return answer === 'link' ? undefined : 'no_password'
  },
}

/** All that may keep the account from a mail. */
export function hintsOf(history: MailHistory): string[] {
  const { answer, user } = history
  const { disabled, email } = user
  const isVerified = user.emailVerified ? 'verified' : 'unverified'
  const hasNone = hashOf(user) === undefined && answer !== 'not_verified'
  const causes = [
    history.canSend && history.isDelivered ? undefined : 'mail_server_down',
    disabled ? 'disabled' : undefined,
    whyNoMail({ email, disabled: false }),
    hasNone ? 'no_password' : email === undefined ? undefined : isVerified,
  ] as const
  const hints = causes.flatMap((cause) => (cause ? diagnosisOf(cause, history).summary : []))
  return history.mails.some(({ state }) => state === 'dead')
    ? [...hints, 'There are dead letters. See their reasons, then use account-flows outbox retry.']
    : hints
}
