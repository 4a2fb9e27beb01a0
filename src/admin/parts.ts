import type { IncomingMessage } from 'node:http'
import type { Clock } from '../clock.ts'
import type { AuthorizeSig } from '../crypto/authorize-sig.ts'
import type { OwnKeyRing } from '../crypto/key-rings.ts'
import type { Invitation } from '../flows/invitation.ts'
import type { CheckedOptions } from '../check-options.ts'
import type {
  AuditEvent,
  CheckMail,
  EndedAccount,
  Log,
  Requester,
  UserStore,
} from '../ports/index.ts'
import type { AccountFlowsStore, ClientLogout, MailOutbox } from '../records/index.ts'
import type { SettingsKeeper } from '../settings/settings.ts'
import type { Views } from '../views/index.ts'
import type { OperationName, Operations, Problem, ReadQuery } from './description.ts'

/** What the admin API is made of; every operation is handed all of it. */
export interface AdminParts {
  options: CheckedOptions
  /** Where links start: base URL and OAuth path, the issuer. */
  oauthUrl: string
  store: AccountFlowsStore
  users: UserStore
  settings: SettingsKeeper
  keyRing: Pick<OwnKeyRing, 'all'>
  /** Where jobs are added, so that workers hear of them. */
  outbox: Pick<MailOutbox, 'add'>
  wake(at: Date): void
  checkMail: CheckMail
  /** Whether there is anywhere to send mails to. */
  canSend(): boolean
  invite: Invitation['invite']
  /** Of the stored hashes that cost too much for everybody to pay for, as far as this process saw one. */
  dearestCost(): number | undefined
  endSessions(accountId: string): Promise<EndedAccount>
  /** The clients of the newest end of an account, each once. `undefined`: the provider tells no clients. */
  clientsOf(accountId: string): Promise<ClientLogout[] | undefined>
  /** Stands for an account that is forgotten, in what is kept of it. */
  keyedHash(text: string): string
  authorizeSig: AuthorizeSig
  views: Views
  audit(event: AuditEvent): Promise<void>
  requesterOf(req: IncomingMessage): Requester
  log: Log
  clock: Clock
}

export interface AdminRequest<N extends OperationName = OperationName> {
  query: ReadQuery<N>
  body: Operations[N]['body']
  /** ETags of `If-Match`; `undefined`: there is no such header. */
  ifMatch: string[] | undefined
  /** Who shows the token, for the audit log. */
  actor: string
  requester: Requester
}

/** What JSON makes of it is as described: it leaves out `undefined`, and writes a `Date` as ISO 8601. */
export type Sent<T> = unknown extends T
  ? T
  : string extends T
    ? T | Date
    : T extends readonly (infer U)[]
      ? Sent<U>[]
      : T extends object
        ? { [K in keyof T]: {} extends Pick<T, K> ? Sent<T[K]> | undefined : Sent<T[K]> }
        : T

export interface AdminAnswer<N extends OperationName = OperationName> {
  answer: Sent<Operations[N]['answer']>
  etag?: string
}

export type AdminRefusal = Problem

/** What answers each operation. */
export type AdminEndpoints = {
  [N in OperationName]: (request: AdminRequest<N>) => Promise<AdminAnswer<N> | AdminRefusal>
}
