/** `oidc-account-flows/contract`: the test suites for what a host implements. Its types are in `oidc-account-flows`. */
export { itIsAnAdapter } from './adapter.ts'
export { itIsARecordStore } from './record-store.ts'
export { itIsAUserStore } from './user-store.ts'
