import type { Clock } from '../clock.ts'
import type { AuthorizeSig } from '../crypto/authorize-sig.ts'
import type { LoginCodes } from '../crypto/login-code.ts'
import type {
  AuditEvent,
  EndedSessions,
  Log,
  Requester,
  User,
  UserStore,
} from '../contract/index.ts'
import type { PasswordJudge } from '../passwords/passwords.ts'
import type { TokenPart } from '../contract/mail-kinds.ts'
import type { AccountFlowsStore, MailOutbox, SessionCutoffs, SessionEnd } from '../store/index.ts'
import type { Settings } from '../settings/table.ts'
import type { ClientNotifications } from './client-notifications.ts'

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

/** The sessions of an account at the provider. Those of a later login stay. */
interface AccountSessions {
  /**
   * Ends what all logins until now have: grants, codes and tokens (3.3, effect 3), sessions and login results (effect 4). With
   * `isExact`: of those that began at `at` or before.
   */
  end(accountId: string, end: SessionEnd): Promise<EndedSessions>
  /** The same, but the records are only looked at. `clear` deletes them later. */
  cutOff(accountId: string, end: SessionEnd): Promise<CutOff>
}

/** What is dead by now, and not deleted yet. */
interface CutOff {
  ended: EndedSessions
  clear(): Promise<void>
}

/** The requester if the host asks by itself, without a request. */
export const NOBODY: Requester = { address: undefined, userAgent: undefined }
