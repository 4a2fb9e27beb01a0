import type { IncomingMessage } from 'node:http'
import type { Clock } from '../clock.ts'
import type { EmailVerification } from '../flows/email-verification.ts'
import type { Invitation } from '../flows/invitation.ts'
import type { NotMe } from '../flows/not-me.ts'
import type { PasswordReset } from '../flows/password-reset.ts'
import type { ToldClients } from '../flows/told-clients.ts'
import type { WaitingLogins } from '../flows/waiting-login.ts'
import type { Clients } from '../oidc/clients.ts'
import type { Interactions } from '../oidc/interactions.ts'
import type { OpenLogin } from '../oidc/open-login.ts'
import type { Resume } from '../oidc/resume.ts'
import type { AuditEvent, Log, RateLimits, Requester, UserStore } from '../ports/index.ts'
import type { SeenCutoffs } from '../ports/login-end.ts'
import type { Settings } from '../settings/table.ts'
import type { BrowserCookie } from './browser-cookie.ts'
import type { ResendCooldown } from './resend-cooldown.ts'
import type { Pages } from './pages.ts'
import type { StartDelay } from './response-delay.ts'

/** What the handlers work with. */
export interface HttpParts extends Pick<ToldClients, 'appsOf'> {
  passwordReset: PasswordReset
  invitation: Invitation
  verification: EmailVerification
  waitingLogins: WaitingLogins
  notMe: NotMe
  users: UserStore
  clients: Clients
  interactions: Interactions
  openLogin: OpenLogin
  resume: Resume
  browserCookie: BrowserCookie
  pages: Pages
  limits: RateLimits
  cooldown: ResendCooldown
  /** Base URL and OAuth path. */
  oauthUrl: string
  startDelay: StartDelay
  settings(): Settings
  requesterOf(req: IncomingMessage): Requester
  /** What decides which cut-offs the login outlives. */
  seenByLogin(accountId: string, second: number, passwordDigest?: string): Promise<SeenCutoffs>
  /** Stands for what was typed, and tells nothing about it. */
  keyedHash(text: string): string
  audit(event: AuditEvent): Promise<void>
  clock: Clock
  log: Log
}
