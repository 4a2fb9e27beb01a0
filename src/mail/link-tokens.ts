import { passwordDigest } from '../crypto/password.ts'
import { hashToken, newId, newToken } from '../crypto/token.ts'
import { attemptOf } from '../store/outbox-record.ts'
import type { MailJob } from '../store/index.ts'
import type { Recipient } from './mail-flow.ts'

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
