/** Mails that an admin asks for again: one that waits, a dead letter, or all dead letters. */
import { isLinkKind, MAIL_KINDS, tokensOf } from '../contract/mail-kinds.ts'
import type { FlowParts } from '../flows/parts.ts'
import { NOTICE_LIFE_MS } from '../flows/request-mail.ts'
import type { AccountFlowsStore, MailJobStatus } from '../store/index.ts'
import { MAX_LINKS } from './limits.ts'

/** More would take longer than a client waits for one answer. */
const MAX_AT_ONCE = 300

type RetryParts = Pick<FlowParts, 'store' | 'clock'>

export async function retryMail({ store, clock }: RetryParts, job: MailJobStatus) {
  if (await isSuperseded(store, job)) return 'superseded'
  const at = clock.now()
  return store.outbox.revive(job.id, at, new Date(at.getTime() + NOTICE_LIFE_MS))
}

// Of some kinds only the newest link works (3.1); others live side by side.
async function isSuperseded(store: AccountFlowsStore, job: MailJobStatus) {
  const { id, kind, state, accountId, requestedAt } = job
  if (state !== 'dead' || accountId === undefined) return false
  if (!isLinkKind(kind) || !MAIL_KINDS[kind].link.newestOnly) return false
  const tokens = await tokensOf(store, kind).ofUser(accountId, MAX_LINKS)
  if (tokens.some((token) => token.mailJobId !== id && token.createdAt > requestedAt)) return true
  const requests = await store.outbox.requestsOf(accountId, kind)
  return requests.some((other) => other.requestedAt > requestedAt)
}

/** Retries each notice, and the newest dead letter of each account and kind of link. `moreBefore`: there may be more, requested before this time. */
export async function retryAllDead(parts: RetryParts, requestedBefore?: Date) {
  const asked = { state: 'dead', requestedBefore, limit: MAX_AT_ONCE } as const
  const letters = await parts.store.outbox.list(asked, parts.clock.now())
  const settled = new Set<string>()
  let changed = 0
  for (const letter of letters) {
    const whose = JSON.stringify([letter.accountId ?? letter.id, letter.kind])
    const outcome = settled.has(whose) ? 'superseded' : await retryMail(parts, letter)
    if (outcome !== 'superseded' && isLinkKind(letter.kind)) settled.add(whose)
    if (outcome === 'revived') changed += 1
  }
  const oldest = letters.length === MAX_AT_ONCE ? letters.at(-1)?.requestedAt : undefined
  return { changed, moreBefore: oldest }
}
