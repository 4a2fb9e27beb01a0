/** What is about one account goes, but for what is under way. */
import { AUDIT_EVENTS } from './audit.ts'
import type { Changed } from './changes.ts'
import { CLIENT_LOGOUTS } from './client-logouts.ts'
import type { KindOf } from './kind.ts'
import { NOT_ME_TOKENS } from './not-me-tokens.ts'
import { isHeldAt, MAIL_OUTBOX } from './outbox-record.ts'
import { PENDING_LOGINS } from './logins.ts'
import type { Records } from './records.ts'
import { tableOf } from './table.ts'
import { isUnfinished, KINDS, type TokenRecord } from './tokens.ts'

const PAGE = 500

/** `keep`: it stays as that. `undefined`: it goes. */
type Fate<T> = { keep: T; isUnderWay: boolean } | undefined

/** Mails first, which become links, and events last, which tell of all others. Answers how many records were removed, by what they are. */
export async function forgetAccount(
  records: Records,
  accountId: string,
  at: Date,
  accountHash: string,
) {
  let underWay = 0
  async function forget<T extends { id: string }>(
    kind: KindOf<T>,
    owner: string,
    fate: (record: T) => Fate<T> = () => undefined,
  ) {
    const outcomes = await forgetOf(records, kind, { [kind.nameOf(owner)]: accountId }, fate)
    underWay += outcomes.filter((outcome) => outcome === 'left').length
    return outcomes.filter((outcome) => outcome === 'erased').length
  }
  return {
    mails: await forget(MAIL_OUTBOX, 'accountId', (job) =>
      isHeldAt(job, at) ? { keep: job, isUnderWay: true } : undefined,
    ),
    notMeTokens: await forget(NOT_ME_TOKENS, 'userId'),
    resetTokens: await forget(KINDS.resetTokens, 'userId', unlessUnfinished),
    verificationTokens: await forget(KINDS.verificationTokens, 'userId'),
    invitationTokens: await forget(KINDS.invitationTokens, 'userId', unlessUnfinished),
    pendingLogins: await forget(PENDING_LOGINS, 'accountId'),
    clientLogouts: await forget(CLIENT_LOGOUTS, 'accountId', (logout) =>
      logout.state === 'waiting'
        ? { keep: { ...logout, isForgotten: true }, isUnderWay: true }
        : undefined,
    ),
    events: await forget(AUDIT_EVENTS, 'accountId', (event) => {
      if (event.type !== 'admin_action') return undefined
      const details = { ...event.details, account_hash: accountHash }
      return { keep: { ...event, accountId: undefined, details }, isUnderWay: false }
    }),
    /** Resets that are being finished, mails that a worker holds, client logouts that are still to be told: they are still there. */
    underWay,
  }
}

const unlessUnfinished = (token: TokenRecord): Fate<TokenRecord> =>
  isUnfinished(token) ? { keep: token, isUnderWay: true } : undefined

/** What became of each record that has these fields. */
async function forgetOf<T extends { id: string }>(
  records: Records,
  kind: KindOf<T>,
  equal: Record<string, string>,
  fate: (record: T) => Fate<T>,
) {
  const table = tableOf(records, kind)
  const outcomes = new Map<string, 'erased' | 'left' | 'kept'>()
  for (;;) {
    const found = await records.find(kind, { equal, limit: PAGE + outcomes.size })
    const next = found.filter(({ id }) => !outcomes.has(id))
    if (next.length === 0) return [...outcomes.values()]
    for (const stored of next) {
      const { id } = stored
      if (kind.read(stored))
        outcomes.set(id, await table.change(id, (record) => forgotten(record, fate)))
      else await table.remove(id).then(() => outcomes.set(id, 'erased'))
    }
  }
}

function forgotten<T extends { id: string }>(
  record: T | undefined,
  fate: (record: T) => Fate<T>,
): Changed<T, 'erased' | 'left' | 'kept'> {
  const kept = record && fate(record)
  if (!record || kept) return { next: kept?.keep, answer: kept?.isUnderWay ? 'left' : 'kept' }
  return { next: undefined, answer: 'erased' }
}
