/** Everything that the flows store, told once for every record store. */
import type { Clock } from '../clock.ts'
import type { Kind, RecordStore } from './record-store.ts'
import { AUDIT_EVENTS, auditLog } from './audit.ts'
import { CLIENT_LOGOUTS, clientLogouts } from './client-logouts.ts'
import { CUTOFFS, cutoffStore } from './cutoffs.ts'
import { forgetAccount } from './forget.ts'
import { KEY_RINGS, keyRings } from './key-rings.ts'
import { RATE_LIMITS, rateLimits } from './limits.ts'
import { NOT_ME_TOKENS, notMeTokens } from './not-me-tokens.ts'
import { MAIL_OUTBOX } from './outbox-record.ts'
import { mailOutbox } from './outbox.ts'
import { PENDING_LOGINS, pendingLogins } from './logins.ts'
import { PROVIDER_RECORDS, providerRecords } from './provider-records.ts'
import { purge } from './purge.ts'
import { createRecords } from './records.ts'
import { SETTINGS, settingsStore } from './settings.ts'
import { resetTokens, verificationTokens } from './token-stores.ts'
import { KINDS } from './tokens.ts'

/** All kinds, in the order in which they are started. */
export const ALL_KINDS: readonly Kind[] = [
  ...Object.values(KINDS),
  NOT_ME_TOKENS,
  PENDING_LOGINS,
  CUTOFFS,
  CLIENT_LOGOUTS,
  MAIL_OUTBOX,
  AUDIT_EVENTS,
  SETTINGS,
  RATE_LIMITS,
  KEY_RINGS,
  PROVIDER_RECORDS,
]

/** Everything that the flows store, in one store. */
export type AccountFlowsStore = ReturnType<typeof openStore>

const opened = new WeakMap<RecordStore, AccountFlowsStore>()

/** One for each record store, so that all flows of a process on it wait in the same queues. */
export function flowsStore(store: RecordStore, clock: Clock): AccountFlowsStore {
  const known = opened.get(store) ?? openStore(store, clock)
  opened.set(store, known)
  return known
}

function openStore(store: RecordStore, clock: Clock) {
  const records = createRecords(store, clock)
  const now = () => store.now()
  return {
    resetTokens: resetTokens(records, KINDS.resetTokens),
    invitationTokens: resetTokens(records, KINDS.invitationTokens),
    verificationTokens: verificationTokens(records),
    notMeTokens: notMeTokens(records),
    pendingLogins: pendingLogins(records),
    cutoffs: cutoffStore(records),
    clientLogouts: clientLogouts(records),
    outbox: mailOutbox(records, clock, now),
    audit: auditLog(records, clock),
    settings: settingsStore(records),
    limits: rateLimits(records, clock),
    keyRings: keyRings(records, now),
    providerRecords: providerRecords(records),
    /** Creates collections and indexes; idempotent, and safe when several processes start at once. */
    start: () => store.start(ALL_KINDS),
    /** Removes what is over, where the database does not. */
    purge: () => purge(store, ALL_KINDS),
    /** Time of the database. */
    now,
    /** Looks whether everything is as `start` left it. */
    inspect: async () => ({
      wrongIndexes: await store.inspect?.(ALL_KINDS),
      isVolatile: store.isVolatile === true,
      isDurable: (await store.isDurable?.()) ?? true,
    }),
    /**
     * Removes all records about one account, even if there is no user with this id: mails, links, waiting logins,
     * client logouts and events.
     * Three things stay. Cut-offs, so that nothing ended comes back. Everything that is under way `at` that time. Events of type
     * `admin_action`, with `accountHash` as `details.account_hash` in place of the id. Repeated, it removes what came since.
     */
    forget: (accountId: string, at: Date, accountHash: string) =>
      forgetAccount(records, accountId, at, accountHash),
  }
}
