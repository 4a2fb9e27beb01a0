import type { MailKind, Requester } from '../contract/index.ts'
import { foldTyped } from '../contract/users.ts'
import type { AccountFlowsStore } from '../store/index.ts'
import type { Settings } from '../settings/table.ts'
import { networkOf } from './requester.ts'

export type ResendCooldown = ReturnType<typeof createResendCooldown>

interface CooldownParts extends Pick<AccountFlowsStore, 'limits'> {
  keyedHash(text: string): string
  settings(): Settings
}

/**
 * For how many milliseconds another mail for the same name would be too soon, whether or not an account has the name. Counted by network.
 * Whether a mail is sent, a worker decides.
 */
export function createResendCooldown({ limits, keyedHash, settings }: CooldownParts) {
  // By network: otherwise the countdown would show a stranger that another person asked for that name lately.
  const keyOf = (kind: MailKind, typed: string, requester: Requester) => {
    const name = foldTyped(typed)
    return `asked:${keyedHash(JSON.stringify([kind, name, networkOf(requester.address)]))}`
  }

  return {
    /** Counts a request that is not too soon. `undefined`: no cooldown is set. */
    async count(...request: Parameters<typeof keyOf>): Promise<number | undefined> {
      const { resendCooldown } = settings()
      if (resendCooldown === 0) return undefined
      const { count, msToEnd } = await limits.hit(keyOf(...request), resendCooldown, 0)
      return count === 1 ? resendCooldown : msToEnd
    },

    /** `undefined`: a mail may be asked for now. */
    async remaining(...request: Parameters<typeof keyOf>): Promise<number | undefined> {
      const { resendCooldown } = settings()
      if (resendCooldown === 0) return undefined
      const { msToEnd } = await limits.peek(keyOf(...request))
      return msToEnd > 0 ? Math.min(msToEnd, resendCooldown) : undefined
    },
  }
}
