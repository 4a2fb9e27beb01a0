/** All the data that the flows keep, in one store. */
import type { Change, Kind, RecordStore } from './record-store.ts'
import { revisionOf } from './record-checks.ts'
import { AUDIT_LOG, auditLog } from './audit.ts'
import { CLIENT_LOGOUTS, clientLogouts } from './client-logouts.ts'
import { snakeCase, type KindOf } from './kind.ts'
import { NOT_ME_TOKENS, notMeTokens } from './not-me-tokens.ts'
import { MAIL_OUTBOX, isHeldAt } from './outbox-record.ts'
import { PENDING_LOGINS, pendingLogins } from './logins.ts'
import { createRecords, type Records } from './records.ts'
import { tableOf } from './table.ts'
import { passwordTokenKind, verificationTokenKind, type TokenRecord } from './tokens.ts'
import type { Clock } from '../clock.ts'
import type { TokenPart } from '../contract/mail-kinds.ts'
import { CUTOFFS, cutoffStore } from './cutoffs.ts'
import { KEY_RINGS, keyRings } from './key-rings.ts'
import { RATE_LIMITS, rateLimits } from './limits.ts'
import { mailOutbox } from './outbox.ts'
import { PROVIDER_RECORDS } from './provider-records.ts'
import { SETTINGS, settingsStore } from './settings.ts'
import { passwordTokens, verificationTokens } from './token-stores.ts'

export type * from './audit.ts'
export type * from './client-logouts.ts'
export type * from './key-rings.ts'
export type * from './limits.ts'
export type * from './logins.ts'
export type * from './not-me-tokens.ts'
export type * from './outbox.ts'
export type * from './outbox-record.ts'
export type * from './settings.ts'
export type * from './token-stores.ts'
export type * from './tokens.ts'

const TOKENS = {
  resetTokens: passwordTokenKind('password_reset_tokens'),
  invitationTokens: passwordTokenKind('invitation_tokens'),
  verificationTokens: verificationTokenKind('email_verification_tokens'),
}

export const ALL_KINDS: readonly Kind[] = [
  ...Object.values(TOKENS),
  NOT_ME_TOKENS,
  PENDING_LOGINS,
  CUTOFFS,
  CLIENT_LOGOUTS,
  MAIL_OUTBOX,
  AUDIT_LOG,
  SETTINGS,
  RATE_LIMITS,
  KEY_RINGS,
  PROVIDER_RECORDS,
]

export type AccountFlowsStore = ReturnType<typeof openStore>

const opened = new WeakMap<RecordStore, AccountFlowsStore>()

/** One instance for each record store, so that all flows of a process share the same queues. */
export function flowsStore(store: RecordStore, clock: Clock): AccountFlowsStore {
  const known = opened.get(store) ?? openStore(store, clock)
  opened.set(store, known)
  return known
}

function openStore(store: RecordStore, clock: Clock) {
  const records = createRecords(store, clock)
  /** The time of the database. */
  const now = () => store.now()
  return {
    resetTokens: passwordTokens(tableOf(records, TOKENS.resetTokens)),
    invitationTokens: passwordTokens(tableOf(records, TOKENS.invitationTokens)),
    verificationTokens: verificationTokens(tableOf(records, TOKENS.verificationTokens)),
    notMeTokens: notMeTokens(tableOf(records, NOT_ME_TOKENS)),
    pendingLogins: pendingLogins(tableOf(records, PENDING_LOGINS)),
    cutoffs: cutoffStore(tableOf(records, CUTOFFS)),
    clientLogouts: clientLogouts(tableOf(records, CLIENT_LOGOUTS)),
    outbox: mailOutbox(tableOf(records, MAIL_OUTBOX), clock, now),
    audit: auditLog(tableOf(records, AUDIT_LOG), clock),
    settings: settingsStore(records),
    limits: rateLimits(tableOf(records, RATE_LIMITS), clock),
    keyRings: keyRings(tableOf(records, KEY_RINGS), now),
    providerRecords: tableOf(records, PROVIDER_RECORDS),
    start: () => store.start(ALL_KINDS),
    purge: () => purge(store, ALL_KINDS),
    now,
    /** Checks whether everything is as `start` left it. */
    inspect: async () => ({
      wrongIndexes: await store.inspect?.(ALL_KINDS),
      isVolatile: store.isVolatile === true,
      isDurable: (await store.isDurable?.()) ?? true,
    }),
    /**
     * Removes all records about one account, even if no user has this id. Three things stay. Cut-offs, so that nothing ended comes back.
     * Everything that is under way `at` that time. Events of type `admin_action`, with `accountHash` in place of the id. A repeated call
     * removes what came since.
     */
    forget: forgetAccount.bind(undefined, records),
  }
}

const PAGE = 500

/** Removes expired records, if the database does not do so itself. A record that changes meanwhile stays. */
export async function purge(store: RecordStore, kinds: readonly Kind[]): Promise<void> {
  if (store.purges) return
  const below = await store.now()
  for (const kind of kinds.filter(({ purgedAt }) => purgedAt !== undefined)) {
    for (let isMore = true; isMore;) {
      const over = await store.find(kind, { by: `${kind.purgedAt}`, below, limit: PAGE })
      const removals = over.map((found): Change => {
        return { id: found.id, revision: revisionOf(found), next: undefined, becomes: '' }
      })
      const done = removals.length > 0 ? await store.swap(kind, removals) : []
      isMore = over.length === PAGE && done.includes(true)
    }
  }
}

/** Removes mails first, because they become links; events last, because they describe the others. Returns the counts by kind. */
async function forgetAccount(records: Records, accountId: string, at: Date, accountHash: string) {
  let underWay = 0
  /** @param kept - returns the record to keep instead; if it still names the account, it is under way. `undefined`: the record goes. */
  async function forget<T extends { id: string }>(
    kind: KindOf<T>,
    owner: string,
    kept: (record: T) => T | undefined = () => undefined,
  ): Promise<number> {
    const table = tableOf(records, kind)
    const equal = { [snakeCase(owner)]: accountId }
    const seen = new Set<string>()
    let erased = 0
    for (;;) {
      const found = await records.find(kind, { equal, limit: PAGE + seen.size })
      const unseen = found.filter(({ id }) => !seen.has(id))
      if (unseen.length === 0) return erased
      for (const stored of unseen) {
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
    notMeLinks: await forget(NOT_ME_TOKENS, 'userId'),
    resetLinks: await forget(TOKENS.resetTokens, 'userId', unlessUnfinished),
    verificationLinks: await forget(TOKENS.verificationTokens, 'userId'),
    invitationLinks: await forget(TOKENS.invitationTokens, 'userId', unlessUnfinished),
    waitingLogins: await forget(PENDING_LOGINS, 'accountId'),
    clientLogouts: await forget(CLIENT_LOGOUTS, 'accountId', (logout) =>
      logout.state === 'waiting' ? { ...logout, isForgotten: true } : undefined,
    ),
    events: await forget(AUDIT_LOG, 'accountId', (event) => {
      if (event.type !== 'admin_action') return undefined
      const details = { ...event.details, account_hash: accountHash }
      return { ...event, accountId: undefined, details }
    }),
    /** Records that remain: unfinished resets, mails that a worker holds, and waiting client logouts. */
    underWay,
  } satisfies Record<ForgottenLinks, number> & Record<string, number>
}

type ForgottenLinks = TokenPart extends `${infer Name}Tokens` ? `${Name}Links` : never

/** Keeps a token whose reset is decided, but not done. */
const unlessUnfinished = (token: TokenRecord) => (token.leaseUntil ? token : undefined)
