import type { Clock } from '../clock.ts'
import { isInRange, RangeServiceError } from '../passwords/range-service.ts'
import type { Settings } from '../settings/table.ts'
import { ok, warning, type Check } from './checks.ts'

/** Asks the service of `password_blocklist` once, about a password that it must know. `undefined`: none is used. */
export async function rangeCheck(settings: Settings, clock: Clock): Promise<Check | undefined> {
  const step = 'range_service'
  if (settings.passwordBlocklist !== 'pwned') return undefined
  const advice =
    'Check password_range_url, and whether this server may connect to it. Until then the list of the package judges alone.'
  try {
    const isKnown = await isInRange('password', settings.passwordRangeUrl, clock)
    if (isKnown) return ok(step, 'The range service answers, and knows a leaked password.')
    return warning(step, 'The range service does not know the most common password.', advice)
  } catch (error) {
    if (!(error instanceof RangeServiceError)) throw error
    return warning(step, `The range service cannot be asked (${error.message}).`, advice)
  }
}
