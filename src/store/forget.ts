/** What is about one account goes, but for what is under way. */
import { AUDIT_EVENTS } from './audit.ts'
import { CLIENT_LOGOUTS } from './client-logouts.ts'
import type { KindOf } from './kind.ts'
import { NOT_ME_TOKENS } from './not-me-tokens.ts'
import { isHeldAt, MAIL_OUTBOX } from './outbox-record.ts'
import { PENDING_LOGINS } from './logins.ts'
import type { Records } from './records.ts'
import { tableOf } from './table.ts'
import { isUnfinished, KINDS, type TokenRecord } from './tokens.ts'

const PAGE = 500

/** Mails first, which become links, and events last, which tell of all others. Answers how many records were removed, by what they are. */
export async function forgetAccount(
  records: Records,
  accountId: string,
  at: Date,
  accountHash: string,
) {
  let underWay = 0
  /** @param kept - what a record is from now on; one that still names the account is under way. `undefined`: it goes. */
  async function forget<T extends { id: string }>(
    kind: KindOf<T>,
    owner: string,
    kept: (record: T) => T | undefined = () => undefined,
  ): Promise<number> {
    const table = tableOf(records, kind)
    const equal = { [kind.nameOf(owner)]: accountId }
    const seen = new Set<string>()
    let erased = 0
    for (;;) {
      const found = await records.find(kind, { equal, limit: PAGE + seen.size })
      const next = found.filter(({ id }) => !seen.has(id))
      if (next.length === 0) return erased
      for (const stored of next) {
        const { id } = stored
        seen.add(id)
        const left = kind.read(stored)
          ? await table.change(id, (record) => {
              const next = record && kept(record)
              return { next, answer: record ? next : 'gone' }
            })
          : await table.remove(id)
        if (left === undefined) erased += 1
        else if (typeof left === 'object' && Reflect.get(left, owner) === accountId) underWay += 1
      }
    }
  }
  return {
    mails: await forget(MAIL_OUTBOX, 'accountId', (job) => (isHeldAt(job, at) ? job : undefined)),
    notMeTokens: await forget(NOT_ME_TOKENS, 'userId'),
    resetTokens: await forget(KINDS.resetTokens, 'userId', unlessUnfinished),
    verificationTokens: await forget(KINDS.verificationTokens, 'userId'),
    invitationTokens: await forget(KINDS.invitationTokens, 'userId', unlessUnfinished),
    pendingLogins: await forget(PENDING_LOGINS, 'accountId'),
    clientLogouts: await forget(CLIENT_LOGOUTS, 'accountId', (logout) =>
      logout.state === 'waiting' ? { ...logout, isForgotten: true } : undefined,
    ),
    events: await forget(AUDIT_EVENTS, 'accountId', (event) => {
      if (event.type !== 'admin_action') return undefined
      const details = { ...event.details, account_hash: accountHash }
      return { ...event, accountId: undefined, details }
    }),
    /** Resets that are being finished, mails that a worker holds, client logouts that are still to be told: they are still there. */
    underWay,
  }
}

const unlessUnfinished = (token: TokenRecord) => (isUnfinished(token) ? token : undefined)
