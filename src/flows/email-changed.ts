/** What follows when the host changed the address of an account (3.8). */
import type { User } from '../contract/index.ts'
import { NOBODY } from '../contract/parameters.ts'
import { newId } from '../crypto/token.ts'
import { must } from '../errors.ts'
import { requestMail, requestNotice } from '../jobs/request-mail.ts'
import { isMailAddress } from '../settings/addresses.ts'
import { whyNoMail } from './account.ts'
import type { FlowParts } from './parts.ts'
import { voidLinks } from './void-links.ts'

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

/** Voids what is for other addresses than the present one, and mails the present one and the one before. */
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
  // It stays void if the account gets such an address back. A waiting mail needs none of it: its address is looked up when it is sent.
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
