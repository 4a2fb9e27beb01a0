import type { FlowParts } from '../flows/parts.ts'
import type { MailKind, Requester } from '../ports/index.ts'
import { foldTyped } from '../ports/users.ts'
import { networkOf } from './requester.ts'

export type ResendCooldown = ReturnType<typeof createResendCooldown>

/**
 * For how many milliseconds another mail for the same name would be too soon. It knows no account: the same name, known or not,
 * asked for from the same network counts alike. Whether a mail is sent, a worker judges.
 */
export function createResendCooldown(parts: Pick<FlowParts, 'limits' | 'keyedHash' | 'settings'>) {
  const { limits, keyedHash, settings } = parts

  // By network: otherwise a stranger would learn from the countdown that somebody else asked for that name lately.
  // In whatever case and with whatever blanks: that mostly is the same account.
  const keyOf = (kind: MailKind, typed: string, requester: Requester) => {
    const name = foldTyped(typed)
    return `asked:${keyedHash(JSON.stringify([kind, name, networkOf(requester.address)]))}`
  }

  return {
    /** Counts a request. `undefined`: no cooldown is set, and nothing was counted. */
    async count(...wish: Parameters<typeof keyOf>): Promise<number | undefined> {
      const { resendCooldown } = settings()
      if (resendCooldown === 0) return undefined
      const { count, msToEnd } = await limits.hit(keyOf(...wish), resendCooldown, 1)
      return count === 1 ? resendCooldown : msToEnd
    },

    /** What is left of it. `undefined`: nothing, or no cooldown is set. */
    async left(...wish: Parameters<typeof keyOf>): Promise<number | undefined> {
      const { resendCooldown } = settings()
      if (resendCooldown === 0) return undefined
      const { msToEnd } = await limits.peek(keyOf(...wish))
      return msToEnd > 0 ? Math.min(msToEnd, resendCooldown) : undefined
    },
  }
}
