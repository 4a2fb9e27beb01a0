import type { Db } from 'mongodb'
import { systemClock } from '../../clock.ts'
import type { AccountFlowsStore } from '../../ports/index.ts'
import { forgetAccount } from '../state/forget-account.ts'
import { mongoAudit } from './audit.ts'
import { mongoClientLogouts } from './client-logouts.ts'
import { collectionsOf, type MongoOptions } from './collection.ts'
import { mongoCutoffs } from './cutoffs.ts'
import { mongoKeyRings } from './key-rings.ts'
import { mongoNotMeTokens } from './not-me-tokens.ts'
import { mongoOutbox } from './outbox.ts'
import { mongoPendingLogins } from './pending-logins.ts'
import { mongoRateLimits } from './rate-limits.ts'
import { mongoResetTokens } from './reset-tokens.ts'
import { mongoSettings } from './settings.ts'
import { withUnavailable } from './unavailable.ts'
import { mongoVerificationTokens } from './verification-tokens.ts'

/**
 * Keeps everything in one MongoDB database; a standalone server is enough. Several processes of one issuer may share it; each issuer
 * needs a database or a prefix of its own.
 *
 * @throws TypeError naming the option that is not acceptable.
 */
export function mongoStore(
  db: Db,
  { now = systemClock.now, prefix }: MongoOptions = {},
): AccountFlowsStore {
  const open = collectionsOf(db, prefix)
  const ports = {
    resetTokens: mongoResetTokens(open, 'password_reset_tokens'),
    verificationTokens: mongoVerificationTokens(open),
    invitationTokens: mongoResetTokens(open, 'invitation_tokens'),
    notMeTokens: mongoNotMeTokens(open),
    pendingLogins: mongoPendingLogins(open),
    cutoffs: mongoCutoffs(open),
    clientLogouts: mongoClientLogouts(open),
    outbox: mongoOutbox(open),
    audit: mongoAudit(open, { now }),
    settings: mongoSettings(open),
    limits: mongoRateLimits(open, { now }),
    keyRings: mongoKeyRings(open),
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

    forget: (...account) => forgetAccount(ports, ...account),

    async now() {
      const { localTime } = await db.command({ hello: 1 }, { readPreference: 'primary' })
      if (localTime instanceof Date) return localTime
      throw new Error('MongoDB did not tell its time')
    },
  })
}
