/** What is about one account goes, but for what is under way. */
import type { ForgottenAccount } from '../ports/index.ts'
import { AUDIT_EVENTS } from './audit.ts'
import { CLIENT_LOGOUTS } from './client-logouts.ts'
import type { KindOf } from './kind.ts'
import { NOT_ME_TOKENS } from './not-me-tokens.ts'
import { isHeldAt, MAIL_OUTBOX } from './outbox.ts'
import { PENDING_LOGINS } from './pending-logins.ts'
import type { Records } from './records.ts'
import { tableOf } from './table.ts'
import { KINDS } from './token-stores.ts'
import { isUnfinished } from './tokens.ts'

const PAGE = 500

/** `keep`: it stays as that. `undefined`: it goes. */
type Fate<T> = { keep: T; isUnderWay: boolean } | undefined

/** Mails first, which become links, and events last, which tell of all others. */
export async function forgetAccount(
  records: Records,
  accountId: string,
  at: Date,
  accountHash: string,
): Promise<ForgottenAccount> {
  let underWay = 0
  async function forget<T extends { id: string }>(
    kind: KindOf<T>,
    owner: string,
    fate: (record: T) => Fate<T> = () => undefined,
  ) {
    const table = tableOf(records, kind)
    let erased = 0
    const seen = new Set<string>()
    for (;;) {
      const equal = { [kind.nameOf(owner)]: accountId }
      const found = await records.find(kind, { equal, limit: PAGE + seen.size })
      const left = found.filter(({ id }) => !seen.has(id))
      if (left.length === 0) return erased
      for (const { id, fields } of left) {
        seen.add(id)
        if (!fields) {
          await table.remove(id)
          erased += 1
          continue
        }
        const outcome = await table.change(id, (record) => {
          if (!record) return { next: record, answer: 'gone' as const }
          const kept = fate(record)
          if (!kept) return { next: undefined, answer: 'erased' as const }
          return { next: kept.keep, answer: kept.isUnderWay ? 'left' : 'gone' }
        })
        if (outcome === 'erased') erased += 1
        if (outcome === 'left') underWay += 1
      }
    }
  }

  const leave = <T>(isLeft: (record: T) => boolean) => {
    return (record: T): Fate<T> => (isLeft(record) ? { keep: record, isUnderWay: true } : undefined)
  }
  return {
    mails: await forget(
      MAIL_OUTBOX,
      'accountId',
      leave((job) => isHeldAt(job, at)),
    ),
    notMeTokens: await forget(NOT_ME_TOKENS, 'userId'),
    resetTokens: await forget(KINDS.resetTokens, 'userId', leave(isUnfinished)),
    verificationTokens: await forget(KINDS.verificationTokens, 'userId'),
    invitationTokens: await forget(KINDS.invitationTokens, 'userId', leave(isUnfinished)),
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
    underWay,
  }
}
