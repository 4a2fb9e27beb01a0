import type { Clock } from '../clock.ts'
import type { SessionCutoffs } from '../contract/sessions.ts'

/**
 * The cut-offs that were in force when a login was made, in milliseconds since the epoch; 0 where there was none. A cut-off that
 * moves on afterwards ends the login, whatever the clocks say.
 */
export interface SeenCutoffs {
  idp: number
  oauth: number
}

/** A login, as records and results of logins tell it. */
export interface DatedLogin {
  /** As oidc-provider stamps it. `undefined`: any cut-off ends it. */
  second: number | undefined
  /** `undefined`: it was made past the flows, and the clock decides. */
  seen: SeenCutoffs | undefined
}

/**
 * oidc-provider stamps logins in whole seconds, so by the clock a cut-off ends everything of its own second too.
 *
 * @returns seconds since the epoch.
 */
export function loginSecond(at: Date): number {
  return Math.floor(at.getTime() / 1000)
}

/** Whether a login is ended for what is of that kind. */
export function isEnded(
  kind: keyof SeenCutoffs,
  login: DatedLogin,
  cutoffs: SessionCutoffs | undefined,
): boolean {
  // A session whose tokens are ended makes none that lives: it ends with them, so that its person can sign in again.
  if (kind === 'idp' && isEnded('oauth', login, cutoffs)) return true
  const { second = 0, seen } = login
  const end = kind === 'idp' ? cutoffs?.idpAt : cutoffs?.oauthAt
  const isBefore = (at: Date | undefined) => at !== undefined && second <= loginSecond(at)
  if (isBefore(cutoffs?.exactAt)) return true
  if (!seen) return isBefore(end)
  return seen[kind] === NONE
    ? cutoffs !== undefined
    : end !== undefined && end.getTime() > seen[kind]
}

const NONE = -1

/** Of a login that no cut-off so far ends. */
export function seenAll(cutoffs: SessionCutoffs | undefined): SeenCutoffs {
  return { idp: cutoffs?.idpAt?.getTime() ?? 0, oauth: cutoffs?.oauthAt?.getTime() ?? 0 }
}

/** Of a login that every cut-off ends. */
export function seenNone(): SeenCutoffs {
  return { idp: NONE, oauth: NONE }
}

/** Of a login that the cut-offs of later seconds end, and that of its own. */
export function seenBy(
  second: number | undefined,
  cutoffs: SessionCutoffs | undefined,
): SeenCutoffs {
  const all = seenAll(cutoffs)
  const login = { second, seen: undefined }
  return {
    idp: isEnded('idp', login, cutoffs) ? 0 : all.idp,
    oauth: isEnded('oauth', login, cutoffs) ? 0 : all.oauth,
  }
}

/** Resolves once a new login is later than a cut-off `at` that time, also by the clock. */
export async function secondAfter({ now, sleep }: Clock, at: Date): Promise<void> {
  const begins = (loginSecond(at) + 1) * 1000
  // A timer may fire a little early; a clock that was set back is not waited for.
  for (let turn = 0; turn < 3 && now().getTime() < begins; turn += 1) {
    await sleep(Math.min(begins - now().getTime(), 1000))
  }
}
