/**
 * What a host calls: to invite (3.4), or to end sessions, also after it replaced a password (3.5). Also after its own sign-up, and after it
 * changed an address (3.8). After a link, `new-password.ts` ends the sessions (3.3).
 */
import { newId } from '../crypto/token.ts'
import { isMailAddress } from '../settings/addresses.ts'
import type { EndedAccount, EndedSessions, RequestParameters, User } from '../contract/index.ts'
import { NOBODY } from '../contract/parameters.ts'
import { isJsonObject, must } from '../errors.ts'
import { isNotified } from '../store/client-logouts.ts'
import { secondAfter, type SessionEnd } from '../store/cutoffs.ts'
import { whyNoInvitation, whyNoMail } from './account.ts'
import type { Browser, FlowParts } from './parts.ts'
import { BY_HOST, requestMail, requestNotice, requestPasswordNotice } from './request-mail.ts'
import { voidEverything, voidLinks } from './void-links.ts'

/**
 * `mailId`: a worker mails the invitation, if the limits allow it. By this id, the admin API shows what became of the mail. `refused`: no
 * invitation is mailed. `unsupported`: the users of the host have no `setFirstPassword`.
 */
export type Invited = { mailId: string } | { refused: InvitationRefusal }

export type InvitationRefusal =
  'not_found' | 'disabled' | 'no_address' | 'bad_address' | 'has_password' | 'unsupported'

/** Asks for an invitation. The account is checked now, when the mail is sent, and when the link is used. */
export async function invite(
  parts: FlowParts,
  who: User | string,
  parameters: RequestParameters = {},
  requester = NOBODY,
): Promise<Invited> {
  const asked = askedByHost('invite', who, parameters)
  if (!parts.users.setFirstPassword) return { refused: 'unsupported' }
  const user = await parts.users.findById(asked.accountId)
  if (!user) return { refused: 'not_found' }
  const refused = whyNoMail(user) ?? whyNoInvitation(user)
  if (refused) return { refused }
  return { mailId: await requestMail(parts, 'invitation', { ...asked, requester }) }
}

/** Looks up no account: one write and one answer for every id. A worker finds out whether there is an address to verify. */
export async function sendVerification(
  parts: FlowParts,
  who: User | string,
  parameters: RequestParameters = {},
): Promise<{ mailId: string }> {
  const asked = askedByHost('sendVerification', who, parameters)
  return { mailId: await requestMail(parts, 'email_verification', asked) }
}

/**
 * The mails that `emailChanged` asked for. Without an id, no such mail is due. By its id, the admin API shows what became of a mail. A
 * notice that waited for its limit, and was replaced by a later one, leaves no outcome.
 */
export interface ChangedEmail {
  /** Of the verification mail to the new address. */
  mailId?: string
  /** Of the notice to the old one. */
  noticeId?: string
}

/** Voids the links to earlier addresses, mails a link to the new address, and a notice to the one before. */
export async function emailChanged(
  parts: FlowParts,
  accountId: string,
  before?: Pick<User, 'email' | 'emailVerified'>,
): Promise<ChangedEmail> {
  const { users, store, audit, clock } = parts
  const { email: from, emailVerified }: { [Name in keyof User]?: unknown } = Object(before)
  must(typeof accountId === 'string', 'emailChanged: name the account by its id')
  const isUser = before === undefined || typeof emailVerified === 'boolean'
  must(isUser, 'emailChanged: before must be the user as it was, with email and emailVerified')
  const user = await users.findById(accountId)
  const mails: ChangedEmail = {}
  if (!user) return mails
  // It stays void if the account gets such an address back. Mails that have not left need no voiding: their address is looked up shortly before.
  await voidLinks(store, user.id, user.email)
  const asked = { accountId, parameters: {}, requester: NOBODY }
  // Also if only its letter case changed, or if another change has brought it back unverified.
  const wasChanged = from !== user.email || !user.emailVerified
  // An unverified address may be a stranger's.
  if (emailVerified && typeof from === 'string' && isMailAddress(from) && wasChanged) {
    mails.noticeId = newId()
    const notice = { id: mails.noticeId, sendTo: from, isUnverified: false, ...asked }
    await requestNotice(parts, { ...notice, kind: 'email_changed' })
  }
  if (!user.emailVerified && whyNoMail(user) === undefined) {
    mails.mailId = await requestMail(parts, 'email_verification', asked)
  }
  await audit({ id: newId(), type: 'email_changed', at: clock.now(), accountId })
  return mails
}

/** Ends everything after the host replaced a password (3.5). One browser gets a new session, and the owner gets a mail. */
export async function passwordChanged(parts: FlowParts, accountId: string, browser?: Browser) {
  const { users, audit, settings } = parts
  const session = browser && (await parts.sessions.liveOf(browser, accountId))
  const requester = browser ? parts.requesterOf(browser.req) : NOBODY
  const id = `${BY_HOST}${newId()}`
  const ended = await endAll(parts, accountId, { id, idpAt: session?.endsAt }, async (ended) => {
    const user = settings().passwordChangedEmail ? await users.findById(accountId) : undefined
    if (user?.email !== undefined && whyNoMail(user) === undefined) {
      const isUnverified = !user.emailVerified
      const change = { id, accountId, sendTo: user.email, isUnverified, parameters: {}, requester }
      await requestPasswordNotice(parts, change)
    }
    await audit({ ...ended, type: 'password_changed', ...requester })
  })
  // Last, so that earlier answers to this browser have set their cookies.
  await session?.renew()
  return ended
}

/** Ends all sessions and tokens of an account, and voids the links that were mailed to it. */
export const endSessions = (parts: FlowParts, accountId: string) =>
  endAll(parts, accountId, { id: newId() }, (ended) =>
    parts.audit({ ...ended, type: 'sessions_ended' }),
  )

async function endAll(
  { store, sessions, notifications, clock }: FlowParts,
  accountId: string,
  { id, idpAt }: Pick<SessionEnd, 'id' | 'idpAt'>,
  record: (ended: SessionEnd & { accountId: string; details: EndedSessions }) => Promise<void>,
): Promise<EndedAccount> {
  const at = clock.now()
  await voidEverything(store, accountId)
  const details = await sessions.end(accountId, { id, at, idpAt })
  const signedOut = await notifications.clientsOf(accountId, id)
  await record({ id, at, accountId, details })
  await secondAfter(clock, at)
  if (!signedOut) return details
  const notified = signedOut.filter(isNotified).length
  return { ...details, clients: { notified, notNotified: signedOut.length - notified } }
}

/** An account and parameters as a host names them in its code, in JavaScript perhaps. No browser is behind its call. */
function askedByHost(method: string, who: User | string, parameters: RequestParameters) {
  const { id: accountId }: { id?: unknown } = typeof who === 'string' ? { id: who } : Object(who)
  must(typeof accountId === 'string', `${method}: name a user, or its id`)
  must(isJsonObject(parameters), `${method}: parameters must be an object`)
  for (const [name, value] of Object.entries(parameters))
    must(typeof value === 'string', `${method}: ${name} must be a text`)
  return { accountId, parameters, requester: NOBODY }
}
