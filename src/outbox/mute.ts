import { passwordDigest } from '../crypto/password.ts'
import type { MailJob, RateLimits, User } from '../ports/index.ts'
import { isLinkKind, type LinkKind } from '../ports/mail-kinds.ts'
import type { OutboxParts } from './parts.ts'

const DAY_MS = 24 * 3_600_000

/** Sends the account no more mails of this kind for a day, except those that an admin asks for. */
export async function mute(
  { limits, keyedHash }: { limits: RateLimits; keyedHash(text: string): string },
  kind: LinkKind,
  user: User,
): Promise<void> {
  await limits.hit(keyOf(keyedHash, kind, user), DAY_MS)
}

/** Whether its reader said of such a mail: this wasn't me. */
export async function isMuted(
  { store, keyedHash }: OutboxParts,
  { kind, requester }: MailJob,
  user: User,
): Promise<boolean> {
  if (!isLinkKind(kind) || requester.isAdmin) return false
  return (await store.limits.msToEnd(keyOf(keyedHash, kind, user))) > 0
}

// Of another password or address it is over: whoever must set a new password needs a link for it.
function keyOf(
  keyedHash: (text: string) => string,
  kind: LinkKind,
  { id, email, passwordHash }: User,
): string {
  return `muted:${kind}:${keyedHash(JSON.stringify([id, email, passwordDigest(passwordHash)]))}`
}
