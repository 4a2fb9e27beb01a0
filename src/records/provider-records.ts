/** Records of oidc-provider, all models in one place: what an account or a grant has is found by one look. */
import { kindOf, type RecordOf } from './kind.ts'
import type { Records } from './records.ts'
import { tableOf } from './table.ts'

/** The id of a record is its model, and the hash of the id that oidc-provider has for it. */
export const PROVIDER_RECORDS = kindOf({
  name: 'oidc_records',
  fields: {
    model: 'text',
    accountId: 'text?',
    grantId: 'text?',
    /** As hashes. */
    uid: 'text?',
    userCode: 'text?',
    /** What admins may read of it. */
    clear: 'json?',
    /** All else. `undefined`: there is nothing else. */
    sealed: 'text?',
    consumedAt: 'time?',
    /** `undefined`: it lasts for ever. */
    expiresAt: 'time?',
  },
  indexes: [['accountId'], ['grantId'], ['uid'], ['userCode']],
  purgedAt: 'expiresAt',
})

export type ProviderRecord = RecordOf<typeof PROVIDER_RECORDS>

/** What a look-up goes by. */
type Field = 'accountId' | 'grantId' | 'uid' | 'userCode'

type Work = (page: ProviderRecord[]) => Promise<unknown>

/** So many are read at a time. */
const PAGE = 1_000

export type ProviderRecords = ReturnType<typeof providerRecords>

/** Reads find no damaged record. A change of one throws. */
export function providerRecords(records: Records) {
  const table = tableOf(records, PROVIDER_RECORDS)

  /** Page by page, in the order of ids, those whose ids begin so. */
  async function walk(equal: { [F in Field]?: string }, beginning: string, work: Work) {
    for (let after = { id: beginning }; ;) {
      const page = await table.findAll({ equal, after, limit: PAGE })
      const wanted = page.filter(({ id }) => id.startsWith(beginning))
      await work(wanted.flatMap(({ record }) => record ?? []))
      const last = wanted.at(-1)
      if (!last || wanted.length < PAGE) return
      after = { id: last.id }
    }
  }

  return {
    find: table.getReadable,

    /** All of any model that have this value, page by page. */
    findBy: (field: Field, value: string, work: Work) => walk({ [field]: value }, '', work),

    /** Those whose id begins so, page by page. */
    findAll: (beginning: string, work: Work) => walk({}, beginning, work),

    /** In place of whatever there is. */
    overwrite: table.overwrite,

    save: table.save,

    /** In place of the record as it was found. Nothing where it is gone by now, or sealed anew. */
    reseal: (found: ProviderRecord, next: ProviderRecord) =>
      table.update(found, (before) => (before.sealed === found.sealed ? next : before)),

    /**
     * Marks it as consumed. Of those who do so at once, one does.
     *
     * @param which - the record, as it was found, saves a look-up.
     */
    consume: (which: string | ProviderRecord, consumedAt: Date): Promise<boolean> =>
      table.update(which, (record) => (record.consumedAt ? record : { ...record, consumedAt })),

    remove: table.remove,

    /** Those of the found ones that still are to go. Answers how many. */
    removeFound: (
      found: readonly ProviderRecord[],
      isToGo: (record: ProviderRecord) => boolean,
    ): Promise<number> => table.updateAll(found, (now) => (isToGo(now) ? undefined : now)),
  }
}
