export type { AccountFlows } from './account-flows.ts'
export type { Clock } from './clock.ts'
export { createAccountFlows } from './create-account-flows.ts'
export type { Hashing } from './crypto/hashing.ts'
export { AccountFlowsError, type ErrorCode } from './errors.ts'
export type { ChangedEmail, Invited } from './flows/for-hosts.ts'
export type { Captcha } from './http/captcha.ts'
export { languageFor } from './http/pages.ts'
export type { CheckedLogin, LoginDecision } from './http/login.ts'
export type { Mount } from './http/mount.ts'
export type { ResponseDelay } from './http/mail-forms.ts'
export type { Health } from './jobs/maintenance.ts'
export { logJsonLines } from './log.ts'
export { memoryMailbox, type ReceivedMail } from './mail/smtp/transport.ts'
export type { AccountAdapter } from './oidc/account-records.ts'
export type { AccountFlowsOptions } from './options.ts'
export { memoryStore, memoryUsers, type MemoryStore } from './store/memory/store.ts'
export { mongoStore } from './store/mongodb/store.ts'
export { mongoUsers } from './store/mongodb/users.ts'
export { postgresStore, type PostgresPool } from './store/postgresql/store.ts'
export type { Brand } from './views/brand.ts'
// What a host implements or receives. Test suites for it are in `oidc-account-flows/contract`, which needs mocha.
export type {
  AuditEvent,
  AuditEventOf,
  AuditEventType,
  BeforeForgotPassword,
  RequestParameters,
  EndedAccount,
  EndedClients,
  ForgotPasswordRequest,
  ValidatePassword,
  Log,
  MailTransport,
  RefusedNewPassword,
  TransportAnswer,
  TransportMail,
  User,
  UserStore,
} from './contract/index.ts'
