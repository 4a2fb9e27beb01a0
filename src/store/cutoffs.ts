/** Up to when the sessions of an account are dead (2.4). */
import type { SessionCutoffs, SessionEnd } from '../contract/sessions.ts'
import { defined, holds, kindOf, type RecordOf } from './kind.ts'
import type { Records } from './records.ts'
import { tableOf } from './table.ts'

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
