import { passwordDigest } from '../crypto/password.ts'
import { hashToken, newId, newToken } from '../crypto/token.ts'
import { MAIL_KINDS, type MailKind } from '../ports/mail-kinds.ts'
import { attemptOf } from '../ports/request-order.ts'
import type { MailJob } from '../records/index.ts'
import type { Recipient } from './mail-flow.ts'
import type { MailParts } from './parts.ts'

/** The tokens of a kind of mail. `undefined`: its link holds none. */
export function tokensOf({ store }: Pick<MailParts, 'store'>, kind: MailKind) {
  const { link } = MAIL_KINDS[kind]
  return link && store[link.tokens]
}

/** A token for the link of a mail, and what is stored of it. */
export function newLinkToken(
  job: MailJob,
  { user, email }: Recipient,
  lifetimeMs: number,
  createdAt: Date,
) {
  const token = newToken()
  const id = newId()
  const record = {
    id,
    tokenHash: hashToken(token),
    userId: user.id,
    email,
    passwordDigest: passwordDigest(user.passwordHash),
    ...attemptOf(job),
    createdAt,
    expiresAt: new Date(createdAt.getTime() + lifetimeMs),
  }
  return { token, record, told: { id, lifetimeMs } }
}
