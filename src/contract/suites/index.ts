/** `oidc-account-flows/contract`: what a host implements, and suites that say when it is done. */
export { itIsAnAdapter } from './adapter.ts'
export { itIsARecordStore } from './record-store.ts'
export { itIsAUserStore } from './user-store.ts'
export type { AccountAdapter } from '../../oidc/account-records.ts'
export type {
  AuditEvent,
  AuditEventOf,
  AuditEventType,
  BeforeForgotPassword,
  ForgotPasswordRequest,
  ValidatePassword,
  MailTransport,
  RefusedNewPassword,
  TransportAnswer,
  TransportMail,
  User,
  UserStore,
} from '../index.ts'
