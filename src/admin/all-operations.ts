import type * as z from 'zod'
import { listAudit } from './audit.ts'
import { runDoctor } from './doctor.ts'
import { rotateKeys } from './keys.ts'
import { explainLink } from './links.ts'
import { mailOperations } from './mails.ts'
import type { Operation } from './operation.ts'
import { outboxOperations } from './outbox.ts'
import { settingsOperations } from './settings.ts'
import { userMailOperations } from './user-mails.ts'
import { userStatus } from './user-status.ts'
import { userOperations } from './users.ts'

// What clients send and receive, by the names of docs/openapi.json.
export { AuditEvent, AuditLog } from './audit.ts'
export { Check, CheckReport } from './checks.ts'
export { DoctorRequest } from './doctor.ts'
export { AccountQuery } from './find-account.ts'
export { Link, LinkExplanation, LinkQuery } from './links.ts'
export { MailJob, MailOutcome, MailPreview, MailRecord, MailTest } from './mails.ts'
export { Candidate, Problem, SettingProblem, type Operation } from './operation.ts'
export { MailChoice, MailsChanged, Outbox } from './outbox.ts'
export { KeysRotation } from './keys.ts'
export { Settings, SettingsHistory, SettingsInForce, SettingsVersion } from './settings.ts'
export { Accepted, ChangedAccount, ChangedEmail } from './user-mails.ts'
export { UserStatus } from './user-status.ts'
export { AccountId, EndedSessions, ForgottenAccount, Verification } from './users.ts'

/** The admin API (4.5), by the names of the methods of `AdminClient`. */
export const operations = {
  ...settingsOperations,
  ...mailOperations,
  runDoctor,
  userStatus,
  ...userMailOperations,
  ...userOperations,
  ...outboxOperations,
  listAudit,
  explainLink,
  rotateKeys,
}

export type OperationName = keyof typeof operations

/** What a client sends, and what it receives. */
export type Operations = {
  [N in OperationName]: (typeof operations)[N] extends Operation<infer Q, infer B, infer A>
    ? { query: z.input<Q>; body: z.input<B>; answer: z.output<A> }
    : never
}
