/** Cut-offs: the times up to which the sessions of an account are dead (2.4). */
import { holds, kindOf, type RecordOf } from './kind.ts'
import type { Table } from './table.ts'
import type { Clock } from '../clock.ts'

/** Ends the sessions and tokens of an account, once. */
export interface SessionEnd {
  /** A repeated end has the same id; each other end has another. */
  id: string
  at: Date
  /** The cut-off for sessions and login results. Left out: `at`. */
  idpAt?: Date | undefined
  /** Ends only what began at `at` or before, by the clock. */
  isExact?: boolean
}

/** The id of a record is the account's id. A cut-off is `undefined` until an end sets it. */
export const CUTOFFS = kindOf({
  name: 'session_cutoffs',
  isMostlyNew: true,
  fields: {
    /** Ends the sessions and interactions of each login that has not seen this cut-off (`SeenCutoffs`). */
    idpAt: 'time?',
    /** The same for grants, codes and tokens, and for the sessions that would create more of them. */
    oauthAt: 'time?',
    /** Ends all of logins that began at this time or before, by the clock. */
    exactAt: 'time?',
    /** The ids of the latest ends, so that a repeated end does not move the cut-offs again. */
    ends: holds<string[] | undefined>('json?'),
  },
  // The first end sets both times.
  isWhole: ({ idpAt, oauthAt, ends = [] }) =>
    Array.isArray(ends) && [idpAt, oauthAt].every((at) => (at !== undefined) === ends.length > 0),
})

type CutoffRecord = RecordOf<typeof CUTOFFS>

export type SessionCutoffs = Omit<CutoffRecord, 'id' | 'ends'>

/** A reset that failed between two effects is repeated within seconds. No account has this many ends in that time. */
const ENDS_KEPT = 20

/** Reads see every earlier answered write, in any process. */
export function cutoffStore(cutoffs: Table<CutoffRecord>) {
  return {
    /** `undefined`: nothing was ever ended. A damaged record throws, because that answer would revive ended sessions. */
    read: (accountId: string): Promise<SessionCutoffs | undefined> => cutoffs.get(accountId),

    /**
     * Effects 3 and 4, in one atomic step. A cut-off becomes the time of the end. If it is that late already, it moves on by one
     * millisecond. So each end differs from the one before, whatever the clocks say. With `isExact`, only the exact cut-off moves.
     */
    end: (accountId: string, end: SessionEnd): Promise<SessionCutoffs> =>
      cutoffs.change(accountId, (before = { id: accountId }) => {
        const next = ended(before, end)
        return { next, answer: next }
      }),
  }
}

function ended(record: CutoffRecord, { id, at, idpAt = at, isExact }: SessionEnd): CutoffRecord {
  const { ends = [] } = record
  if (isExact) return { ...record, exactAt: later(at, record.exactAt, 0) }
  if (ends.includes(id)) return record
  return {
    ...record,
    oauthAt: later(at, record.oauthAt, 1),
    idpAt: later(idpAt, record.idpAt, 1),
    ends: [...ends, id].slice(-ENDS_KEPT),
  }
}

const later = (at: Date, before: Date | undefined, ms: number) =>
  before && before.getTime() + ms > at.getTime() ? new Date(before.getTime() + ms) : at

/** The cut-offs in force when a login was made, in milliseconds since the epoch; 0: there was none. Each later move ends the login. */
export type SeenCutoffs = Record<'idp' | 'oauth', number>

/** A login as records and login results describe it. */
export interface DatedLogin {
  /** The time of the login. `undefined`: any cut-off ends it. */
  second: number | undefined
  /** `undefined`: the login was made outside the flows, so the clock decides. */
  seen: SeenCutoffs | undefined
}

/** In seconds since the epoch, as oidc-provider stamps logins. So by the clock a cut-off ends all of its own second too. */
export const loginSecond = (at: Date): number => Math.floor(at.getTime() / 1000)

/** Whether a cut-off ended what a login has of this kind. */
export function isEnded(
  kind: keyof SeenCutoffs,
  login: DatedLogin,
  cutoffs: SessionCutoffs | undefined,
): boolean {
  if (!cutoffs) return false
  // A session could create no valid tokens any more. It ends with them, so that the user can sign in again.
  if (kind === 'idp' && isEnded('oauth', login, cutoffs)) return true
  const { second = 0, seen } = login
  const end = kind === 'idp' ? cutoffs.idpAt : cutoffs.oauthAt
  const isBefore = (at: Date | undefined) => at !== undefined && second <= loginSecond(at)
  if (isBefore(cutoffs.exactAt)) return true
  if (!seen) return isBefore(end)
  return seen[kind] === SEEN_NONE[kind] || (end !== undefined && end.getTime() > seen[kind])
}

/** For a login that no cut-off so far ends. */
export function seenAll(cutoffs: SessionCutoffs | undefined): SeenCutoffs {
  return { idp: cutoffs?.idpAt?.getTime() ?? 0, oauth: cutoffs?.oauthAt?.getTime() ?? 0 }
}

/** For a login that every cut-off ends. */
export const SEEN_NONE: SeenCutoffs = { idp: -1, oauth: -1 }

/** For a login that cut-offs of its own second and of later ones end. */
export function seenBy(second: number | undefined, cutoffs: SessionCutoffs | undefined) {
  const { idp, oauth } = seenAll(cutoffs)
  const login = { second, seen: undefined }
  return {
    idp: isEnded('idp', login, cutoffs) ? 0 : idp,
    oauth: isEnded('oauth', login, cutoffs) ? 0 : oauth,
  }
}

/** Waits until a new login is later than a cut-off at `at`, even by the clock. */
export async function secondAfter({ now, sleep }: Clock, at: Date): Promise<void> {
  const begins = (loginSecond(at) + 1) * 1000
  // A timer may fire early. This does not wait for a clock that was set back.
  for (let turn = 0; turn < 3 && now().getTime() < begins; turn += 1)
    await sleep(Math.min(begins - now().getTime(), 1000))
}
