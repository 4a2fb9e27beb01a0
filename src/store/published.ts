/** `oidc-account-flows/store`: for hosts that write a store for another database. */
export {
  ANY,
  checkQuery,
  keptText,
  storedJson,
  textOf,
  storedOf,
  type Change,
  type Fields,
  type FieldType,
  type Kind,
  type Query,
  type RecordStore,
  type Stored,
  type Value,
} from './record-store.ts'
