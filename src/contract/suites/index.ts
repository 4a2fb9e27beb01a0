export { itIsAnAdapter } from './adapter.ts'
export { itIsARecordStore } from './record-store.ts'
export { itIsAUserStore } from './user-store.ts'
