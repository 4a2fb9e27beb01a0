import type { Clock } from '../clock.ts'
import type { SessionCutoffs } from './index.ts'

/**
 * oidc-provider stamps logins in whole seconds, so a cut-off ends everything of its own second too.
 *
 * @returns seconds since the epoch.
 */
export function loginSecond(at: Date): number {
  return Math.floor(at.getTime() / 1000)
}

/** Whether a login of that second is ended by the cut-off. `undefined`: nothing was ever ended. */
export function isEndedBy(cutoff: Date | undefined, second: number): boolean {
  return cutoff !== undefined && second <= loginSecond(cutoff)
}

/** The second of a login that all cut-offs end. */
export function beforeCutoffs(second: number, cutoffs: SessionCutoffs): number {
  return Math.min(second, ...secondsOf(cutoffs))
}

/** The second of a login that no cut-off ends. */
export function afterCutoffs(second: number, cutoffs: SessionCutoffs): number {
  return Math.max(second, ...secondsOf(cutoffs).map((end) => end + 1))
}

function secondsOf({ idpAt, oauthAt }: SessionCutoffs): number[] {
  return [idpAt, oauthAt].flatMap((at) => (at ? loginSecond(at) : []))
}

/** Resolves once a new login is later than a cut-off `at` that time. */
export async function secondAfter({ now, sleep }: Clock, at: Date): Promise<void> {
  const begins = (loginSecond(at) + 1) * 1000
  // A timer may fire a little early; a clock that was set back is not waited for.
  for (let turn = 0; turn < 3 && now().getTime() < begins; turn += 1) {
    await sleep(Math.min(begins - now().getTime(), 1000))
  }
}
