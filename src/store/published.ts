/** `oidc-account-flows/store`: what a store of one's own is written with. */
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
