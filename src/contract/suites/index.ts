/** `oidc-account-flows/contract`: the interfaces that a host implements, and the test suites for them. */
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
