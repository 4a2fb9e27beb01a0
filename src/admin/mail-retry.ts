import type { Clock } from '../clock.ts'
import type { MailJobStatus } from '../store/index.ts'
import { isLinkKind, MAIL_KINDS, tokensOf } from '../contract/mail-kinds.ts'
import type { AdminParts } from './operation.ts'

/** `superseded`: the account asked again since, and a mail for this request would end the newer link. */
export type RetryOutcome = 'revived' | 'superseded' | 'held' | 'no_account' | 'not_found'

const LIFE_MS = 24 * 3_600_000
const MOST_AT_ONCE = 300
/** Of one account; it has few. */
const MOST_OF_ACCOUNT = 100

type RetryParts = Pick<AdminParts, 'store' | 'wake'> & { clock: Pick<Clock, 'now'> }

export async function retryMail(parts: RetryParts, job: MailJobStatus): Promise<RetryOutcome> {
  if (await isSuperseded(parts, job)) return 'superseded'
  const at = parts.clock.now()
  const outcome = await parts.store.outbox.revive(job.id, at, new Date(at.getTime() + LIFE_MS))
  if (outcome === 'revived') parts.wake(at)
  return outcome
}

// Of some kinds only the newest link works (3.1); others live side by side.
async function isSuperseded(
  { store, clock }: RetryParts,
  { id, kind, state, accountId, requestedAt }: MailJobStatus,
) {
  if (state !== 'dead' || !isLinkKind(kind) || !MAIL_KINDS[kind].newestOnly) return false
  if (accountId === undefined || requestedAt === undefined) return false
  const tokens = await tokensOf(store, kind).ofUser(accountId, MOST_OF_ACCOUNT)
  if (tokens.some((token) => token.mailJobId !== id && token.createdAt > requestedAt)) return true
  const others = await store.outbox.list({ accountId, limit: MOST_OF_ACCOUNT }, clock.now())
  return others.some((job) => job.kind === kind && (job.requestedAt ?? 0) > requestedAt)
}

/**
 * Of each account and kind the newest dead letter; so many at once that a request is answered in time.
 *
 * @param requestedBefore - only what was requested earlier.
 * @returns `moreBefore`: there may be further ones, from before this time.
 */
export async function retryAllDead(parts: RetryParts, requestedBefore?: Date) {
  const asked = { state: 'dead', requestedBefore, limit: MOST_AT_ONCE } as const
  const letters = await parts.store.outbox.list(asked, parts.clock.now())
  const settled = new Set<string>()
  let changed = 0
  for (const letter of letters) {
    const whose = JSON.stringify([letter.accountId ?? letter.id, letter.kind])
    const outcome = settled.has(whose) ? 'superseded' : await retryMail(parts, letter)
    if (outcome !== 'superseded') settled.add(whose)
    if (outcome === 'revived') changed += 1
  }
  const oldest = letters.length === MOST_AT_ONCE ? letters.at(-1)?.requestedAt : undefined
  return { changed, moreBefore: oldest }
}
