/** Records of oidc-provider, all models in one place: what an account or a grant has is found by one look. */
import { kindOf, type RecordOf } from './kind.ts'
import type { Records } from './records.ts'
import { pagesOf, tableOf } from './table.ts'

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

/** So many are read at a time. */
const PAGE = 1_000

/** Reads find no damaged record. A change of one throws. */
export function providerRecords(records: Records) {
  const table = tableOf(records, PROVIDER_RECORDS)

  return {
    find: table.getReadable,

    /** All of any model that have this value, page by page. */
    findBy: (field: Field, value: string) =>
      pagesOf(table, { equal: { [field]: value }, after: { id: '' }, limit: PAGE }),

    /** Those whose id begins so, page by page. */
    async *findAll(beginning: string) {
      for await (const page of pagesOf(table, { after: { id: beginning }, limit: PAGE })) {
        const wanted = page.filter(({ id }) => id.startsWith(beginning))
        yield wanted
        if (wanted.length < page.length) return
      }
    },

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
