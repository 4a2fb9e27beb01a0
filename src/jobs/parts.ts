import type { Clock } from '../clock.ts'
import type { AuthorizeSig } from '../crypto/keys.ts'
import type { LoginCodes } from '../crypto/login-code.ts'
import type {
  AuditEvent,
  CarriedParameters,
  IdentifiedClient,
  Log,
  MailSender,
  UserStore,
} from '../contract/index.ts'
import type { AccountFlowsStore, PendingLoginStore } from '../store/index.ts'
import type { Settings } from '../settings/table.ts'
import type { SignedOutApps, Views } from '../views/index.ts'
import type { MailBrake } from './brake.ts'

/** What a mail is made of; every step is handed all of it. */
export interface MailParts {
  store: AccountFlowsStore
  users: UserStore
  pendingLogins: PendingLoginStore
  /** Drops what does not belong to a registered client and its redirect URI, and names that client. */
  identify(carried: CarriedParameters): Promise<IdentifiedClient>
  /** The apps that an end of sessions signed an account out of. `undefined`: they are not known. */
  appsOf(accountId: string, endId: string): Promise<SignedOutApps | undefined>
  authorizeSig: AuthorizeSig
  loginCodes: LoginCodes
  /** Where links start: base URL and OAuth path, never anything from a request. */
  oauthUrl: string
  views: Views
  settings(): Settings
  audit(event: AuditEvent): Promise<void>
  /** Stands for an account, a mailbox or what was typed, and tells nothing about it. */
  keyedHash(text: string): string
  sender: MailSender
  brake: MailBrake
  clock: Clock
  log: Log
}
