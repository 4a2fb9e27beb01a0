import type { IncomingMessage } from 'node:http'
import type { Clock } from '../clock.ts'
import type { AuditEvent, Log, Requester, UserStore } from '../contract/index.ts'
import type { Flows } from '../flows/flows.ts'
import type { Clients } from '../oidc/clients.ts'
import type { Interactions } from '../oidc/interactions.ts'
import type { OpenLogin } from '../oidc/open-login.ts'
import type { createResume } from '../oidc/resume.ts'
import type { SeenLogins } from '../oidc/seen-logins.ts'
import type { Settings } from '../settings/table.ts'
import type { AccountFlowsStore } from '../store/index.ts'
import type { BrowserCookie } from './browser-cookie.ts'
import type { ResendCooldown } from './resend-cooldown.ts'
import type { Pages } from './pages.ts'

/** What the handlers work with. */
export interface HttpParts
  extends Flows, Pick<AccountFlowsStore, 'limits'>, Pick<SeenLogins, 'cutoffsSeenAtLogin'> {
  clients: Clients
  interactions: Interactions
  openLogin: OpenLogin
  resume: ReturnType<typeof createResume>
  users: UserStore
  browserCookie: BrowserCookie
  pages: Pages
  cooldown: ResendCooldown
  /** Where our pages are: base URL and OAuth path. */
  oauthUrl: string
  /** Of the base URL. */
  origin: string
  keyedHash(text: string): string
  requesterOf(req: IncomingMessage): Requester
  settings(): Settings
  audit(event: AuditEvent): Promise<void>
  clock: Clock
  log: Log
}
