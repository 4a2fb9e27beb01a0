import type { Db } from 'mongodb'
import { systemClock } from '../../clock.ts'
import type { AccountFlowsStore } from '../../ports/index.ts'
import { forgetAccount } from '../state/forget-account.ts'
import { mongoAudit } from './audit.ts'
import { mongoCutoffs } from './cutoffs.ts'
import { mongoKeyRings } from './key-rings.ts'
import { mongoOutbox } from './outbox.ts'
import { mongoPendingLogins } from './pending-logins.ts'
import { mongoRateLimits } from './rate-limits.ts'
import { mongoResetTokens } from './reset-tokens.ts'
import { mongoSettings } from './settings.ts'
import { withUnavailable } from './unavailable.ts'
import { mongoVerificationTokens } from './verification-tokens.ts'

/** Keeps everything in one MongoDB database; a standalone server is enough, several processes may share it. */
export function mongoStore(db: Db, clock = systemClock): AccountFlowsStore {
  const ports = {
    resetTokens: withUnavailable(mongoResetTokens(db, 'password_reset_tokens')),
    verificationTokens: withUnavailable(mongoVerificationTokens(db)),
    invitationTokens: withUnavailable(mongoResetTokens(db, 'invitation_tokens')),
    pendingLogins: withUnavailable(mongoPendingLogins(db)),
    cutoffs: withUnavailable(mongoCutoffs(db)),
    outbox: withUnavailable(mongoOutbox(db)),
    audit: withUnavailable(mongoAudit(db, clock)),
    settings: withUnavailable(mongoSettings(db)),
    limits: withUnavailable(mongoRateLimits(db, clock)),
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
