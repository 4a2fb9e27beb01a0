/** Records of oidc-provider. All models share one kind, so that one query finds all records of an account or a grant. */
import { kindOf, type RecordOf } from './kind.ts'

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
    /** All other data, sealed. */
    sealed: 'text',
    consumedAt: 'time?',
    /** `undefined`: the record lasts for ever. */
    expiresAt: 'time?',
  },
  indexes: [['accountId'], ['grantId'], ['uid'], ['userCode']],
  purgedAt: 'expiresAt',
})

export type ProviderRecord = RecordOf<typeof PROVIDER_RECORDS>
