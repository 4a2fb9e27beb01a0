/** Tests of what a host implements: call them in its own test run. They know only the contract. */
export { itIsAnAdapter } from './adapter.ts'
export { itIsARecordStore } from './record-store.ts'
export { itIsAUserStore } from './user-store.ts'
