import type { Clock } from '../clock.ts'
import type { AuthorizeSig } from '../crypto/keys.ts'
import type { LoginCodes } from '../crypto/login-code.ts'
import type {
  AccountSessions,
  AuditEvent,
  Log,
  Requester,
  SessionCutoffs,
  User,
  UserStore,
} from '../contract/index.ts'
import type { PasswordJudge } from '../passwords/passwords.ts'
import type { TokenPart } from '../contract/mail-kinds.ts'
import type { AccountFlowsStore, MailOutbox } from '../store/index.ts'
import type { Settings } from '../settings/table.ts'
import type { ClientNotifications } from './password-changed.ts'

export interface FlowParts
  extends
    Pick<AccountFlowsStore, 'pendingLogins' | 'limits' | TokenPart>,
    Pick<ClientNotifications, 'appsOf'> {
  users: UserStore
  outbox: Pick<MailOutbox, 'add'>
  sessions: AccountSessions
  readCutoffs(accountId: string): Promise<SessionCutoffs | undefined>
  /** @param by - for its place in the queue. */
  hashPassword(password: string, by?: Requester): Promise<string>
  /** So that the account may sign in from there at once. */
  forgetTries(account: User, by: Requester): Promise<void>
  passwordJudge: Pick<PasswordJudge, 'isAsked' | 'judge'>
  /** Stands for a text in records, and reveals nothing about it. */
  keyedHash(text: string): string
  authorizeSig: AuthorizeSig
  loginCodes: LoginCodes
  audit(event: AuditEvent): Promise<void>
  settings(): Settings
  clock: Clock
  log: Log
}

/** The requester if the host asks by itself, without a request. */
export const NOBODY: Requester = { address: undefined, userAgent: undefined }
