/** `oidc-account-flows/store`: for hosts that write a store for another database. */
export { checkQuery, keptText, storedJson, textOf, storedOf } from './record-checks.ts'
export * from './record-store.ts'
