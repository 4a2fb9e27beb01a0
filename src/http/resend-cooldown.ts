import type { MailKind, RateLimits, Requester } from '../ports.ts'
import type { Settings } from '../settings/table.ts'
import { networkOf } from './network.ts'

/**
 * Counts a request for a mail, and answers for how many milliseconds another one for the same name would be too soon. It knows no
 * account: the same name, known or not, asked for from the same network counts alike. Whether a mail is sent, a worker judges (D21).
 * `undefined`: no cooldown is set, and nothing was counted.
 */
export type ResendCooldown = (
  kind: MailKind,
  typed: string,
  requester: Requester,
) => Promise<number | undefined>

export interface ResendCooldownParts {
  limits: RateLimits
  /** Stands for what was typed. */
  keyedHash(text: string): string
  settings(): Settings
}

export function createResendCooldown(parts: ResendCooldownParts): ResendCooldown {
  const { limits, keyedHash, settings } = parts
  return async (kind, typed, { address }) => {
    const { resendCooldown } = settings()
    if (resendCooldown === 0) return undefined
    // By network: otherwise a stranger would learn from the countdown that somebody else asked for that name lately.
    const key = keyedHash(JSON.stringify([kind, typed, networkOf(address)]))
    const { count, msToEnd } = await limits.hit(`asked:${key}`, resendCooldown)
    return count === 1 ? resendCooldown : msToEnd
  }
}
