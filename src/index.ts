export {
  AdminApiError,
  createAdminClient,
  type AdminClient,
  type SettingsOptions,
  type Tagged,
} from './admin/client.ts'
export type * as AdminApi from './admin/operations.ts'
export { systemClock, type Clock, type SleepOptions } from './clock.ts'
export { createAccountFlows, type AccountFlows } from './create-account-flows.ts'
export type { AccountFlowsOptions } from './options.ts'
export type { Brand } from './views/brand.ts'
export type { InvitationRefusal, Invited } from './flows/invitation.ts'
export type { Health } from './jobs/maintenance.ts'
export type { Hashing } from './crypto/hashing.ts'
export { AccountFlowsError, type ErrorCode } from './errors.ts'
export type { BlockedByEmail, CheckedLogin, Login, LoginDecision } from './http/login.ts'
export type { LoginPassword } from './http/login-password.ts'
export { languageFor } from './http/language.ts'
export type { Captcha, CaptchaSources } from './http/captcha.ts'
export type { ResponseDelay } from './http/response-delay.ts'
export { logJsonLines } from './log.ts'
export type { AccountAdapter } from './oidc/account-records.ts'
export type { ClientLogoutOptions } from './oidc/post-form.ts'
export type { InteractionPolicy } from './oidc/policy.ts'
export type { AdminJwtOptions, AdminScope, AdminToken } from './admin/options.ts'
export type { Mount } from './http/mount.ts'
export { memoryStore, type MemoryStore } from './store/memory/store.ts'
export { memoryUsers } from './store/memory/users.ts'
export { mongoStore, type MongoDatabase } from './store/mongodb/store.ts'
export { postgresStore, type PostgresPool } from './store/postgresql/store.ts'
export { mongoUsers, type UserCollection } from './store/mongodb/users.ts'
export { memoryMailbox, type ReceivedMail } from './mail/smtp/mailbox.ts'
// What a host implements, or is handed: users, a transport, the log, audit events, judgements of passwords.
export type {
  AuditEvent,
  AuditEventOf,
  AuditEventType,
  BeforeForgotPassword,
  CarriedParameters,
  EndedAccount,
  EndedClients,
  EndedSessions,
  ForgotPasswordRequest,
  JudgePassword,
  Log,
  MailTransport,
  PasswordRefusal,
  ReasonWords,
  RefusedNewPassword,
  Requester,
  TransportAnswer,
  TransportMail,
  User,
  UserStore,
} from './contract/index.ts'
// What a store of one's own implements.
export {
  ANY,
  checkQuery,
  storedOf,
  type Change,
  type Fields,
  type FieldType,
  type Kind,
  type Query,
  type RecordStore,
  type Stored,
  type Value,
} from './store/record-store.ts'
export { keptText, storedJson, textOf } from './store/text.ts'
