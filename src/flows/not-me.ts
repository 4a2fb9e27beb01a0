/**
 * "This wasn't me": whoever was sent a mail takes back what it may have done. It can only take away (3.6).
 *
 * @module
 */
import type { DisownedMail, NotMeTokens } from '../crypto/not-me-token.ts'
import { passwordDigest } from '../crypto/password.ts'
import { newToken } from '../crypto/token.ts'
import { mute } from '../outbox/mute.ts'
import type { EndedSessions, Requester, User } from '../ports/index.ts'
import { isLinkKind, MAIL_KINDS } from '../ports/mail-kinds.ts'
import type { VoidLinks } from './account.ts'
import type { FlowParts } from './parts.ts'

/**
 * `stopped`: links of this kind are void, and no more are mailed for a day. `secured`: a password was changed by the mail, or had been before
 * it; all sessions are ended. `under_way`: a password is being changed just now, so ask again in a moment.
 */
export type Disowned = 'stopped' | 'secured' | 'under_way'

export type NotMe = ReturnType<typeof createNotMe>

export interface NotMeParts extends FlowParts {
  notMeTokens: NotMeTokens
  voidEverything: VoidLinks
  endSessions(accountId: string): Promise<EndedSessions>
}

export function createNotMe(parts: NotMeParts) {
  const { notMeTokens, users, limits, audit, clock } = parts
  return {
    /** `undefined`: it is no token of such a mail, or too old. */
    open: (token: string) => notMeTokens.open(token, clock.now()),

    /** Once for each mail. Whoever dies on the way leaves steps that can all be repeated, and the mark comes last. */
    async disown(mail: DisownedMail, by: Requester): Promise<Disowned> {
      const { kind, accountId, id, msLeft } = mail
      const isRepeated = (await limits.msToEnd(markOf(mail))) > 0
      const user = isRepeated ? undefined : await users.findById(accountId)
      if (user && !(await changeBy(parts, mail))) await stop(parts, mail, user)
      // A form may have used the link while it was voided.
      const change = await changeBy(parts, mail)
      if (change === 'under_way') return change
      if (user) {
        const password = change ? await secure(parts, mail, change) : 'kept'
        const event = { id: `disowned:${id}`, type: 'mail_disowned', at: clock.now() } as const
        await audit({ ...event, accountId, details: { mail: kind, password }, ...by })
        await limits.hit(markOf(mail), msLeft)
      }
      return change ? 'secured' : 'stopped'
    },
  }
}

/** To one account, while such a mail is good. Whoever used a link may ask for many more, so that it is not among the newest. */
const MOST_MAILED = 10_000

const markOf = ({ id }: DisownedMail) => `not_me:${id}`

/** What a mail, or the link in it, changed the password to. `undefined`: it changed none. */
async function changeBy(
  parts: NotMeParts,
  { kind, accountId, id, passwordDigest: digest }: DisownedMail,
): Promise<{ digest: string | undefined } | 'under_way' | undefined> {
  if (!isLinkKind(kind)) return { digest }
  const found = await parts[MAIL_KINDS[kind].link.tokens].ofUser(accountId, MOST_MAILED)
  const token = found.find((each) => each.id === id)
  if (!token?.claimedAt || token.invalidatedAt) return undefined
  return token.usedAt ? { digest: token.newDigest } : 'under_way'
}

// Muted first, so that no mail slips in between. A mailbox that the account has left has no say over its mails.
async function stop(parts: NotMeParts, { kind, wentTo }: DisownedMail, user: User) {
  if (!isLinkKind(kind) || !wentTo(user.email)) return
  await mute(parts, kind, user)
  await parts.voidEverything(user.id, [kind])
}

async function secure(
  parts: NotMeParts,
  mail: DisownedMail,
  { digest }: { digest: string | undefined },
): Promise<'blocked' | 'kept'> {
  const isBlocked = await block(parts, mail, digest)
  await parts.endSessions(mail.accountId)
  return isBlocked ? 'blocked' : 'kept'
}

/** Only the very password: one that was set since is its owner's. An account keeps a password, or nobody could reset it. */
async function block(
  { users, limits, hashPassword }: NotMeParts,
  mail: DisownedMail,
  digest: string | undefined,
): Promise<boolean> {
  const begun = `${markOf(mail)}:blocked`
  const current = (await users.findById(mail.accountId))?.passwordHash
  // Whoever repeats it after a death finds another password, and tells the same.
  if (current === undefined || passwordDigest(current) !== digest)
    return (await limits.msToEnd(begun)) > 0
  const unusable = await hashPassword(newToken())
  await limits.hit(begun, mail.msLeft)
  return users.replacePasswordHash(mail.accountId, current, unusable)
}
