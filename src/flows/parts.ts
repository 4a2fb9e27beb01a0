import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Clock } from '../clock.ts'
import type { AuditEvent, EndedSessions, Requester, User, UserStore } from '../contract/index.ts'
import type { PasswordLinkKind } from '../contract/mail-kinds.ts'
import type { Keyed } from '../crypto/keyed.ts'
import type { ClientNotifications } from '../jobs/client-notifications.ts'
import type { Log } from '../log.ts'
import type { PasswordRules } from '../passwords/passwords.ts'
import type { Settings } from '../settings/table.ts'
import type { SessionCutoffs, SessionEnd } from '../store/cutoffs.ts'
import type { AccountFlowsStore } from '../store/index.ts'

/** What flows, mails, pages and the admin API all get. */
export interface CommonParts {
  settings(): Settings
  /** Records an event once. */
  audit(event: AuditEvent): Promise<void>
  clock: Clock
  log: Log
}

export interface FlowParts extends CommonParts {
  store: AccountFlowsStore
  /** Its `add` also wakes the workers. */
  mailQueue: Pick<AccountFlowsStore['outbox'], 'add'>
  users: UserStore
  passwords: Pick<PasswordRules, 'isAsked' | 'validate'> & {
    /** @param by - decides the place in the queue. */
    hash(password: string, by: Requester): Promise<string>
    /** After that, the user may sign in from that network. */
    forgetTries(account: User, by: Requester): Promise<void>
  }
  sessions: AccountSessions
  notifications: ClientNotifications
  keyed: Keyed
  requesterOf(req: IncomingMessage): Requester
}

export interface PasswordLinkParts extends FlowParts {
  kind: PasswordLinkKind
  tokens: AccountFlowsStore['resetTokens']
}

/** Sessions at the provider. Those of later logins stay. */
interface AccountSessions {
  /** The cut-offs of an account, as this request sees them. */
  readCutoffs(accountId: string): Promise<SessionCutoffs | undefined>
  /** Ends what all logins until now have: grants, codes and tokens (3.3, effect 3), sessions and login results (effect 4). */
  end(accountId: string, end: SessionEnd): Promise<EndedSessions>
  /** The same, but the records are only dead. `clear` deletes them. */
  cutOff(
    accountId: string,
    end: SessionEnd,
  ): Promise<{ ended: EndedSessions; clear(): Promise<void> }>
  /** `undefined`: this browser has no live session of the account. */
  liveOf(browser: Browser, accountId: string): Promise<LiveSession | undefined>
}

/** A request, and its answer, of which nothing is sent yet. */
export interface Browser {
  req: IncomingMessage
  res: ServerResponse
}

/** The live session of a browser, read before an end of its account ends it too. */
interface LiveSession {
  /** The time at which to end the sessions of the account. Only an end at this time spares the new session. */
  endsAt: Date
  /** Gives this browser a new session of the same login. If it fails, it logs why, and the browser is signed out like the others. */
  renew(): Promise<void>
}
