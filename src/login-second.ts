import type { Clock } from './clock.ts'
import type { SessionCutoffs } from './ports.ts'

/**
 * oidc-provider stamps logins in whole seconds, so a cut-off ends everything of its own second too (D9).
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

/**
 * The second that a login is dated with, which is all that decides what it outlives. Clocks of processes differ: where the
 * password is known that it was checked with, that decides. A password that a reset ended makes a login that is ended; any other
 * one a login that is later than all cut-offs.
 *
 * @param second - when the login arrived, by the clock of its process.
 * @param passwordDigest - `undefined`: nobody knows, and the clock decides.
 */
export function dateOfLogin(
  second: number,
  passwordDigest: string | undefined,
  cutoffs: SessionCutoffs | undefined,
): number {
  if (passwordDigest === undefined || !cutoffs) return second
  const { idpAt, oauthAt, endedPasswords } = cutoffs
  const ends = [idpAt, oauthAt].flatMap((at) => (at ? loginSecond(at) : []))
  return endedPasswords.includes(passwordDigest)
    ? Math.min(second, ...ends)
    : Math.max(second, ...ends.map((end) => end + 1))
}

/** Resolves once a new login is later than a cut-off `at` that time. */
export async function secondAfter({ now, sleep }: Clock, at: Date): Promise<void> {
  const begins = (loginSecond(at) + 1) * 1000
  // A timer may fire a little early; a clock that was set back is not waited for.
  for (let turn = 0; turn < 3 && now().getTime() < begins; turn += 1) {
    await sleep(Math.min(begins - now().getTime(), 1000))
  }
}
