import { systemClock } from '../../clock.ts'
import type { AccountFlowsStore } from '../../ports/index.ts'
import { forgetAccount } from '../state/forget-account.ts'
import { type MemoryAuditLog, memoryAudit } from './audit.ts'
import { memoryClientLogouts } from './client-logouts.ts'
import { memoryCutoffs } from './cutoffs.ts'
import { memoryKeyRings } from './key-rings.ts'
import { memoryNotMeTokens } from './not-me-tokens.ts'
import { memoryOutbox } from './outbox.ts'
import { memoryPendingLogins } from './pending-logins.ts'
import { memoryRateLimits } from './rate-limits.ts'
import { memoryResetTokens } from './reset-tokens.ts'
import { memorySettings } from './settings.ts'
import { memoryVerificationTokens } from './verification-tokens.ts'

/**
 * Keeps everything in this process: for a first try and for tests. Nothing survives a restart, and a second process knows
 * nothing of it.
 */
export function memoryStore(clock = systemClock): AccountFlowsStore & { audit: MemoryAuditLog } {
  const ports = {
    resetTokens: memoryResetTokens(),
    verificationTokens: memoryVerificationTokens(),
    invitationTokens: memoryResetTokens(),
    notMeTokens: memoryNotMeTokens(),
    pendingLogins: memoryPendingLogins(),
    cutoffs: memoryCutoffs(),
    clientLogouts: memoryClientLogouts(),
    outbox: memoryOutbox(clock),
    audit: memoryAudit(clock),
    settings: memorySettings(),
    limits: memoryRateLimits(clock),
    keyRings: memoryKeyRings(clock.now),
  }
  return {
    ...ports,
    async start() {},
    forget: (...account) => forgetAccount(ports, ...account),
    now: async () => clock.now(),
    inspect: async () => ({ wrongIndexes: [], isVolatile: true }),
  }
}
