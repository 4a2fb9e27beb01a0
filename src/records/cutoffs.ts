/** Up to when the sessions of an account are dead (2.4). */
import type { SessionCutoffs, SessionCutoffStore, SessionEnd } from '../ports/index.ts'
import { kindOf } from './kind.ts'
import type { Records } from './records.ts'
import { tableOf } from './table.ts'

interface CutoffRecord {
  /** The account. */
  id: string
  idpAt: Date | undefined
  oauthAt: Date | undefined
  exactAt: Date | undefined
  /** The latest, so that each moves the cut-offs once. */
  ends: string[] | undefined
}

export const CUTOFFS = kindOf<CutoffRecord>({
  name: 'session_cutoffs',
  isMostlyNew: true,
  fields: { idpAt: 'time?', oauthAt: 'time?', exactAt: 'time?', ends: 'json?' },
  // What ended something has a time.
  isWhole: ({ idpAt, oauthAt, ends = [] }) =>
    Array.isArray(ends) && [idpAt, oauthAt].every((at) => (at !== undefined) === ends.length > 0),
})

/** A reset that failed between two effects is repeated within seconds. No account is reset so often meanwhile. */
const ENDS_KEPT = 20

export function cutoffStore(records: Records): SessionCutoffStore {
  const cutoffs = tableOf(records, CUTOFFS)
  // A damaged one throws: "nothing was ended" would revive ended sessions.
  return {
    async read(accountId) {
      const record = await cutoffs.get(accountId)
      return record && cutoffsOf(record)
    },

    end: (accountId, end) =>
      cutoffs.change(accountId, (before) => {
        const next = ended(before ?? none(accountId), end)
        return { next, answer: cutoffsOf(next) }
      }),
  }
}

const none = (id: string): CutoffRecord => ({
  id,
  idpAt: undefined,
  oauthAt: undefined,
  exactAt: undefined,
  ends: undefined,
})

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
  ...(exactAt && { exactAt }),
})
