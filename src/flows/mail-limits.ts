import { mailboxOf } from '../mail-address.ts'
import type { MailJob, MailOutbox, RateLimitStore, User } from '../ports.ts'
import type { Settings } from '../settings/table.ts'
import type { MailFlow } from './mail-flow.ts'

const HOUR_MS = 3_600_000

/** How many mails an account, and a mailbox, may ask for (D21). */
export interface MailLimits {
  /**
   * Counts a request for a mail, and tells whether it is one too many: then it must create and invalidate nothing. An account
   * that has nothing to use, neither a link nor a mail on its way, is not refused.
   */
  isTooMany(job: MailJob, user: User, flow: MailFlow): Promise<boolean>
}

export interface MailLimitsPorts {
  limits: RateLimitStore
  outbox: Pick<MailOutbox, 'identify' | 'holdBack' | 'isUnderWay'>
  settings(): Settings
  /** Stands for a mailbox in the store. */
  keyedHash(mailbox: string): string
  now(): Date
}

export function createMailLimits(ports: MailLimitsPorts): MailLimits {
  const { limits, outbox, settings, keyedHash, now } = ports

  const countInHour = async (key: string) => (await limits.count(key, HOUR_MS)).count

  async function isCoolingDown({ kind }: MailJob, { id }: User) {
    const { resendCooldown } = settings()
    if (resendCooldown === 0) return false
    return (await limits.count(`cooldown:${kind}:${id}`, resendCooldown)).count > 1
  }

  return {
    async isTooMany(job, user, flow) {
      // Before it is counted: whoever counts more than the limit sees those that came first (D21).
      await outbox.identify(job, user.id)
      const { mailsPerAccountPerHour: most } = settings()
      const ofAccount = await countInHour(`account:${user.id}`)
      const ofMailbox = await countInHour(`mailbox:${keyedHash(mailboxOf(user.email ?? ''))}`)
      const isCooling = await isCoolingDown(job, user)
      if (ofAccount <= most && ofMailbox <= most && !isCooling) return false

      await outbox.holdBack(job)
      // Whoever registers many accounts with the address of somebody else has proved nothing about it.
      const isOfOthers = ofMailbox > most && ofMailbox > ofAccount && !user.emailVerified
      if (isOfOthers) return true
      // In this order: a mail that leaves between the two looks is seen by the second.
      return (await outbox.isUnderWay(job, user.id, now())) || flow.hasLiveLink(user)
    },
  }
}
