/** "This wasn't me": the reader of a mail undoes what it may have done (3.6). It takes access away, and never gives any. */
import { hashToken, idOf, isToken, newToken } from '../crypto/token.ts'
import type { ReportOutcome, Requester, User } from '../contract/index.ts'
import { isLinkKind, MAIL_KINDS } from '../contract/mail-kinds.ts'
import { hashOf } from '../contract/users.ts'
import { isLater } from '../store/outbox-record.ts'
import type { NotMeToken, Token } from '../store/index.ts'
import { answerToReset, whyNoMail } from './account.ts'
import { endSessions } from './for-hosts.ts'
import { MAX_MAILED } from './link-state.ts'
import { awaitedOf, withAddresses } from './other-address.ts'
import type { FlowParts } from './parts.ts'
import { voidEverything } from './void-links.ts'

export function createNotMe(parts: FlowParts) {
  const { users, audit, clock } = parts
  const { notMeTokens } = parts.store
  return {
    async open(token: string): Promise<NotMeToken | undefined> {
      const mail = isToken(token) ? await notMeTokens.find(hashToken(token)) : undefined
      return mail && mail.purgeAt > clock.now() ? mail : undefined
    },

    /** Undoes a mail once. The mail is marked as used last, as each step can be repeated. `mayReset`: its mailbox would get a reset link. */
    async report(mail: NotMeToken, by: Requester) {
      const { kind, userId: accountId, mailJobId, attempt } = mail
      const outcome: ReportOutcome | 'under_way' = mail.usedAt
        ? 'done'
        : await undo(parts, mail, by)
      if (outcome === 'under_way') return outcome
      const account = await users.findById(accountId)
      if (account && outcome !== 'done') {
        const password = outcome === 'secured' ? 'blocked' : 'kept'
        const blocked = outcome === 'secured' && { blocked: idOf(account.passwordHash) }
        const details = { mail: kind, password, done: outcome, ...blocked } as const
        const id = `reported:${mailJobId}:${attempt}`
        await audit({ id, type: 'mail_reported', at: clock.now(), accountId, details, ...by })
      }
      if (outcome !== 'later') await notMeTokens.use(mail.id, clock.now())
      const isSame = account?.email === mail.email && whyNoMail(account) === undefined
      const isHelped = kind !== 'email_verification' && outcome !== 'stopped'
      return { outcome, mayReset: isHelped && isSame && mayComeBack(parts, account) }
    },
  }
}

/** Whether the account still has the password that this event blocked. */
export function isBlockedBy(user: User, details: Record<string, unknown> = {}): boolean {
  const hash = hashOf(user)
  return hash !== undefined && details['blocked'] === idOf(hash)
}

const mayComeBack = (parts: FlowParts, user: User): boolean =>
  hashOf(user) !== undefined && answerToReset(user, parts) === 'link'

/** What a mail or its link did. `password`: it set a password, or is the notice of a new one. `under_way`: it is setting one. */
type Effect = 'unused' | 'verified' | 'password' | 'later' | 'under_way'

async function effectOf(parts: FlowParts, mail: NotMeToken): Promise<Effect> {
  const { kind, userId, mailJobId, email, addressId } = mail
  // Each attempt to send has a link of its own, and several may arrive. To its reader, they are one mail.
  const isSame = (token: Token) =>
    addressId === undefined ? token.email === email : token.addressId === addressId
  const isOwn = (token: Token) => token.mailJobId === mailJobId && isSame(token)
  if (MAIL_KINDS[kind].takesBack === 'verification') {
    const tokens = await parts.store.verificationTokens.ofUser(userId, MAX_MAILED)
    return tokens.some((token) => isOwn(token) && token.usedAt) ? 'verified' : 'unused'
  }
  const { resetTokens, invitationTokens } = parts.store
  const found = await Promise.all(
    [resetTokens, invitationTokens].map((tokens) => tokens.ofUser(userId, MAX_MAILED)),
  )
  const decided = found.flat().filter((token) => token.claimedAt && !token.invalidatedAt)
  if (isLinkKind(kind) && !decided.some(isOwn)) return 'unused'
  const others = decided.filter((token) => !isOwn(token) && token.email === email)
  const later = others.filter((token) => isLater(token, mail))
  if (later.some(({ usedAt }) => usedAt)) return 'later'
  const isUnderWay = [...later, ...decided.filter(isOwn)].some(({ usedAt }) => !usedAt)
  return isUnderWay ? 'under_way' : 'password'
}

async function undo(parts: FlowParts, mail: NotMeToken, by: Requester) {
  const { users, store } = parts
  const { kind, userId } = mail
  const user = await users.findById(userId)
  if (!user) return 'stopped'
  const mailbox = await mailedTo(parts, mail)
  let effect = await effectOf(parts, mail)
  if (effect === 'unused') {
    // A reader of the old mailbox must not void mails to the new address.
    const isCurrent = mailbox === ((await awaitedOf(parts, user))?.email ?? user.email)
    if (isLinkKind(kind) && isCurrent) await voidEverything(store, userId, [kind])
    // Looks again: a form may have used the link before it was void.
    effect = await effectOf(parts, mail)
    if (effect === 'unused') return 'stopped'
  }
  if (effect !== 'verified') return replacePassword(parts, mail, by)
  // Ends sessions first, so that a link that verifies meanwhile finds itself void.
  await endSessions(parts, userId)
  await users.markEmailUnverified?.(userId, mailbox)
  const latest = await users.findById(userId)
  return latest?.email === mailbox && !latest.emailVerified ? 'unverified' : 'signed_out'
}

/** Where the mail went. Once a link was used there, only the link says so. `''`: nothing says it any more. */
async function mailedTo(parts: FlowParts, mail: NotMeToken): Promise<string> {
  const { userId, email, addressId } = mail
  if (addressId === undefined) return email
  const { otherEmail } = await withAddresses(parts, mail)
  const links = await parts.store.verificationTokens.ofUser(userId, MAX_MAILED)
  const used = links.find((link) => link.addressId === addressId && link.email !== '')
  return otherEmail ?? used?.email ?? ''
}

const MAX_TRIES = 10

/**
 * Replaces the password by a random one: an account without a password could perhaps not be reset. It replaces only the hash that was
 * read here. So a link that is used at the same time fails, or the next try sees its password.
 */
async function replacePassword(parts: FlowParts, mail: NotMeToken, by: Requester) {
  const { users, store, passwords } = parts
  const { id, userId, email } = mail
  const unusable = await store.notMeTokens.block(id, await passwords.hash(newToken(), by))
  for (let tries = 0; tries < MAX_TRIES; tries += 1) {
    const user = await users.findById(userId)
    const effect = await effectOf(parts, mail)
    if (effect === 'later' || effect === 'under_way') return effect
    // A user who left the mailbox needs support in any case.
    const mayBlock = user && (user.email !== email || mayComeBack(parts, user))
    const current = mayBlock ? hashOf(user) : undefined
    const isToReplace = current !== undefined && current !== unusable
    if (isToReplace && !(await users.replacePasswordHash(userId, current, unusable))) continue
    await endSessions(parts, userId)
    return current === undefined ? 'signed_out' : 'secured'
  }
  return 'under_way'
}
