/** Records of oidc-provider. All models share one kind, so that one query finds all records of an account or a grant. */
import { kindOf, type RecordOf } from './kind.ts'
import type { Records } from './records.ts'
import { pagesOf, tableOf } from './table.ts'

/** The id of a record consists of its model and the hash of the id in oidc-provider. */
export const PROVIDER_RECORDS = kindOf({
  name: 'oidc_records',
  fields: {
    model: 'text',
    accountId: 'text?',
    grantId: 'text?',
    /** Stored as hashes. */
    uid: 'text?',
    userCode: 'text?',
    /** The part that admins may read. */
    clear: 'json?',
    /** All other data, sealed. `undefined`: there is none. */
    sealed: 'text?',
    consumedAt: 'time?',
    /** `undefined`: the record lasts for ever. */
    expiresAt: 'time?',
  },
  indexes: [['accountId'], ['grantId'], ['uid'], ['userCode']],
  purgedAt: 'expiresAt',
})

export type ProviderRecord = RecordOf<typeof PROVIDER_RECORDS>

/** The fields that a look-up can use. */
type Field = 'accountId' | 'grantId' | 'uid' | 'userCode'

/** How many records one page holds. */
const PAGE = 1_000

/** Reads treat a damaged record as absent. Changing one throws. */
export function providerRecords(records: Records) {
  const table = tableOf(records, PROVIDER_RECORDS)

  return {
    find: table.getReadable,

    /** Finds the records of any model with this value, page by page. */
    findBy: (field: Field, value: string) =>
      pagesOf(table, { equal: { [field]: value }, after: { id: '' }, limit: PAGE }),

    /** Finds the records whose id begins with this text, page by page. */
    async *findAll(beginning: string) {
      for await (const page of pagesOf(table, { after: { id: beginning }, limit: PAGE })) {
        const wanted = page.filter(({ id }) => id.startsWith(beginning))
        yield wanted
        if (wanted.length < page.length) return
      }
    },

    /** Writes the record, whatever exists. */
    overwrite: table.overwrite,

    save: table.save,

    /** Replaces the record that was found. If it is gone or was sealed anew, nothing changes. */
    reseal: (found: ProviderRecord, next: ProviderRecord) =>
      table.update(found, (before) => (before.sealed === found.sealed ? next : before)),

    /**
     * Marks a record as consumed. Exactly one of concurrent callers gets `true`.
     *
     * @param which - the id, or the record that was found, which saves a look-up.
     */
    consume: (which: string | ProviderRecord, consumedAt: Date): Promise<boolean> =>
      table.update(which, (record) => (record.consumedAt ? record : { ...record, consumedAt })),

    remove: table.remove,

    /** Removes those of the found records that still match. Returns how many. */
    removeFound: (
      found: readonly ProviderRecord[],
      isToGo: (record: ProviderRecord) => boolean,
    ): Promise<number> => table.updateAll(found, (now) => (isToGo(now) ? undefined : now)),
  }
}
