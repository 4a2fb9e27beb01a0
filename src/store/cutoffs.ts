/** Up to when the sessions of an account are dead (2.4). */
import { defined, holds, kindOf, type RecordOf } from './kind.ts'
import type { Records } from './records.ts'
import { tableOf } from './table.ts'
import type { Clock } from '../clock.ts'

/** Up to when sessions and tokens of an account are dead. `undefined`: nothing of that kind was ever ended. */
export interface SessionCutoffs {
  /** Sessions and interactions of a login that has not seen this cut-off are dead. */
  idpAt: Date | undefined
  /** The same for grants, codes and tokens, and for the sessions that would make more of them. */
  oauthAt: Date | undefined
  /** All of logins that began at this time or before, by the clock, is dead. Left out: there was no exact end. */
  exactAt?: Date
}

/** Ends what an account has, once. */
export interface SessionEnd {
  /** Different for each end, also for two at the same time. A repeated end has the same id. */
  id: string
  at: Date
  /** For sessions and login results. Left out: `at`. */
  idpAt?: Date
  /** It ends only what began at `at` or before, by the clock. */
  isExact?: boolean
}

/** The id of a record is that of the account. */
export const CUTOFFS = kindOf({
  name: 'session_cutoffs',
  isMostlyNew: true,
  fields: {
    idpAt: 'time?',
    oauthAt: 'time?',
    exactAt: 'time?',
    /** The latest, so that each moves the cut-offs once. */
    ends: holds<string[] | undefined>('json?'),
  },
  // The first end sets both times.
  isWhole: ({ idpAt, oauthAt, ends = [] }) =>
    Array.isArray(ends) && [idpAt, oauthAt].every((at) => (at !== undefined) === ends.length > 0),
})

type CutoffRecord = RecordOf<typeof CUTOFFS>

/** A reset that failed between two effects is repeated within seconds. No account is reset so often meanwhile. */
const ENDS_KEPT = 20

export type SessionCutoffStore = ReturnType<typeof cutoffStore>

/** Reads see every write that was answered before, in any process. */
export function cutoffStore(records: Records) {
  const cutoffs = tableOf(records, CUTOFFS)
  // A damaged one throws: "nothing was ended" would revive ended sessions.
  return {
    /** `undefined`: nothing was ever ended for this account. */
    async read(accountId: string): Promise<SessionCutoffs | undefined> {
      const record = await cutoffs.get(accountId)
      return record && cutoffsOf(record)
    },

    /**
     * Effects 3 and 4, in one atomic step. A cut-off only moves forward, to the time of the end. If it is there already or later, it
     * moves by one millisecond: each end differs from the one before, whatever the clocks say. With `isExact`, the exact cut-off
     * moves instead, to this time at least. The same end once more changes nothing, so that it can be repeated. Answers the cut-offs.
     */
    end: (accountId: string, end: SessionEnd): Promise<SessionCutoffs> =>
      cutoffs.change(accountId, (before) => {
        const next = ended(before ?? { id: accountId }, end)
        return { next, answer: cutoffsOf(next) }
      }),
  }
}

/** Cut-offs move forward alone, and with each end. */
function ended(record: CutoffRecord, { id, at, idpAt = at, isExact }: SessionEnd): CutoffRecord {
  const { ends = [] } = record
  if (isExact) return { ...record, exactAt: later(at, record.exactAt?.getTime()) }
  if (ends.includes(id)) return record
  return {
    ...record,
    oauthAt: later(at, record.oauthAt && record.oauthAt.getTime() + 1),
    idpAt: later(idpAt, record.idpAt && record.idpAt.getTime() + 1),
    ends: [...ends, id].slice(-ENDS_KEPT),
  }
}

const later = (at: Date, ms = -Infinity) => new Date(Math.max(at.getTime(), ms))

const cutoffsOf = ({ idpAt, oauthAt, exactAt }: CutoffRecord): SessionCutoffs => ({
  idpAt,
  oauthAt,
  ...defined({ exactAt }),
})

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
