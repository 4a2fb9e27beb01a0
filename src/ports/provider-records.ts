/** A record of oidc-provider, in `oidc_records`. */
export interface ProviderRecord {
  /** Its model, and the hash of the id that oidc-provider has for it. */
  id: string
  model: string
  accountId: string | undefined
  grantId: string | undefined
  /** As hashes. */
  uid: string | undefined
  userCode: string | undefined
  /** What admins may read of it. */
  clear: object | undefined
  /** All else. `undefined`: there is nothing else. */
  sealed: string | undefined
  consumedAt: Date | undefined
  /** `undefined`: it lasts for ever. */
  expiresAt: Date | undefined
}

/** What a look-up goes by. */
export type ProviderRecordField = 'accountId' | 'grantId' | 'uid' | 'userCode'

/** Keeps the records of oidc-provider. One that is damaged is none. */
export interface ProviderRecords {
  find(id: string): Promise<ProviderRecord | undefined>
  /** All of any model that have this value, page by page. */
  findBy(
    field: ProviderRecordField,
    value: string,
    page: (records: ProviderRecord[]) => Promise<unknown>,
  ): Promise<void>
  /** Those whose id begins so, page by page. */
  findAll(beginning: string, page: (records: ProviderRecord[]) => Promise<unknown>): Promise<void>
  /** In place of whatever there is. */
  overwrite(record: ProviderRecord): Promise<void>
  /** If there is one already, only where `mayReplace` says so. Answers whether it was saved; of those who save at once, one is. */
  save(record: ProviderRecord, mayReplace: (before: ProviderRecord) => boolean): Promise<boolean>
  /** In place of the record as it was found. Nothing where it is gone by now, or sealed anew. */
  reseal(found: ProviderRecord, next: ProviderRecord): Promise<void>
  /**
   * Marks it as consumed. Of those who do so at once, one does.
   *
   * @param which - the record, as it was found, saves a look-up.
   */
  consume(which: string | ProviderRecord, at: Date): Promise<boolean>
  remove(id: string): Promise<void>
  /** Those of the found ones that still are to go. Answers how many. */
  removeFound(
    found: readonly ProviderRecord[],
    isToGo: (record: ProviderRecord) => boolean,
  ): Promise<number>
}
