/** `oidc-account-flows/store`: for hosts that write a store for another database. */
export { checkQuery, keptText, storedJson, textOf, storedOf } from './record-checks.ts'
export {
  ANY,
  type Change,
  type Fields,
  type FieldType,
  type Kind,
  type Query,
  type RecordStore,
  type Stored,
  type Value,
} from './record-store.ts'
