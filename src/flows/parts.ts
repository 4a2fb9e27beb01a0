import type { Clock } from '../clock.ts'
import type { AuthorizeSig } from '../crypto/authorize-sig.ts'
import type { LoginCodes } from '../crypto/login-code.ts'
import type {
  AccountSessions,
  AuditEvent,
  Log,
  Requester,
  SessionCutoffs,
  UserStore,
} from '../ports/index.ts'
import type { PasswordJudge } from '../passwords/passwords.ts'
import type { TokenPart } from '../ports/mail-kinds.ts'
import type { AccountFlowsStore, MailOutbox } from '../records/index.ts'
import type { Settings } from '../settings/table.ts'

/** What the flows work with. */
export interface FlowParts extends Pick<AccountFlowsStore, 'pendingLogins' | 'limits' | TokenPart> {
  users: UserStore
  outbox: Pick<MailOutbox, 'add'>
  sessions: AccountSessions
  readCutoffs(accountId: string): Promise<SessionCutoffs | undefined>
  /** @param by - whose turn it is in the queue; `undefined`: nobody knows. */
  hashPassword(password: string, by?: Requester): Promise<string>
  passwordJudge: Pick<PasswordJudge, 'isAsked' | 'judge'>
  /** Stands for a text in records, and tells nothing about it. */
  keyedHash(text: string): string
  authorizeSig: AuthorizeSig
  loginCodes: LoginCodes
  audit(event: AuditEvent): Promise<void>
  settings(): Settings
  clock: Clock
  log: Log
}

/** Who asks where it is the host by itself, and no request. */
export const NOBODY: Requester = { address: undefined, userAgent: undefined }
