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
  exactIdpAt: Date | undefined
  exactOauthAt: Date | undefined
  /** The latest ends, so that each moves it once. */
  idpEnds: string[] | undefined
  oauthEnds: string[] | undefined
}

export const CUTOFFS = kindOf<CutoffRecord>({
  name: 'session_cutoffs',
  fields: {
    idpAt: 'time?',
    oauthAt: 'time?',
    exactIdpAt: 'time?',
    exactOauthAt: 'time?',
    idpEnds: 'json?',
    oauthEnds: 'json?',
  },
  // What ended something has a time.
  isWhole: ({ idpAt, idpEnds = [], oauthAt, oauthEnds = [] }) =>
    isListFor(idpAt, idpEnds) && isListFor(oauthAt, oauthEnds),
})

const isListFor = (at: Date | undefined, ends: unknown) =>
  Array.isArray(ends) && (at !== undefined) === ends.length > 0

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

    end: (accountId, kind, end) =>
      cutoffs.change(accountId, (before) => {
        const next = ended(before ?? none(accountId), kind, end)
        return { next, answer: cutoffsOf(next) }
      }),
  }
}

const none = (id: string): CutoffRecord => ({
  id,
  idpAt: undefined,
  oauthAt: undefined,
  exactIdpAt: undefined,
  exactOauthAt: undefined,
  idpEnds: undefined,
  oauthEnds: undefined,
})

/** A cut-off moves forward alone, and with each end. */
function ended(
  record: CutoffRecord,
  kind: 'idp' | 'oauth',
  { id, at, isExact }: SessionEnd,
): CutoffRecord {
  const [last, exact, ends] =
    kind === 'idp'
      ? (['idpAt', 'exactIdpAt', 'idpEnds'] as const)
      : (['oauthAt', 'exactOauthAt', 'oauthEnds'] as const)
  if (isExact) return { ...record, [exact]: later(at, record[exact]?.getTime()) }
  const before = record[ends] ?? []
  if (before.includes(id)) return record
  const previous = record[last]
  return {
    ...record,
    [last]: later(at, previous && previous.getTime() + 1),
    [ends]: [...before, id].slice(-ENDS_KEPT),
  }
}

const later = (at: Date, ms = -Infinity) => new Date(Math.max(at.getTime(), ms))

function cutoffsOf({ idpAt, oauthAt, exactIdpAt, exactOauthAt }: CutoffRecord): SessionCutoffs {
  return {
    idpAt,
    oauthAt,
    ...(exactIdpAt && { exactIdpAt }),
    ...(exactOauthAt && { exactOauthAt }),
  }
}
