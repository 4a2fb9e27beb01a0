import type { Db } from 'mongodb'
import { systemClock } from '../clock.ts'
import type { AccountFlowsStore } from '../ports.ts'
import { forgetAccount } from './forget-account.ts'
import { mongoAudit } from './mongodb-audit.ts'
import { mongoCutoffs } from './mongodb-cutoffs.ts'
import { mongoKeyRings } from './mongodb-key-rings.ts'
import { mongoOutbox } from './mongodb-outbox.ts'
import { mongoPendingLogins } from './mongodb-pending-logins.ts'
import { mongoRateLimits } from './mongodb-rate-limits.ts'
import { mongoResetTokens } from './mongodb-reset-tokens.ts'
import { mongoSettings } from './mongodb-settings.ts'
import { withUnavailable } from './mongodb-unavailable.ts'
import { mongoVerificationTokens } from './mongodb-verification-tokens.ts'

/** Keeps everything in one MongoDB database; a standalone server is enough, several processes may share it. */
export function mongoStore(db: Db, clock = systemClock): AccountFlowsStore {
  const ports = {
    resetTokens: withUnavailable(mongoResetTokens(db)),
    verificationTokens: withUnavailable(mongoVerificationTokens(db)),
    pendingLogins: withUnavailable(mongoPendingLogins(db)),
    cutoffs: withUnavailable(mongoCutoffs(db)),
    outbox: withUnavailable(mongoOutbox(db)),
    audit: withUnavailable(mongoAudit(db, clock)),
    settings: withUnavailable(mongoSettings(db)),
    limits: withUnavailable(mongoRateLimits(db)),
    keyRings: withUnavailable(mongoKeyRings(db)),
  }
  return withUnavailable({
    ...ports,

    async start() {
      for (const port of Object.values(ports)) await port.start()
    },

    async inspect() {
      const wrong = await Promise.all(Object.values(ports).map((port) => port.wrongIndexes()))
      return { wrongIndexes: wrong.flat(), isVolatile: false }
    },

    forget: (accountId, at, hash) => forgetAccount(ports, accountId, at, hash),

    async now() {
      const { localTime } = await db.command({ hello: 1 }, { readPreference: 'primary' })
      if (localTime instanceof Date) return localTime
      throw new Error('MongoDB did not tell its time')
    },
  })
}
