import type { Core } from '../core.ts'
import type { EmailVerification } from '../flows/email-verification.ts'
import type { Invitation } from '../flows/invitation.ts'
import type { NotMe } from '../flows/not-me.ts'
import type { PasswordReset } from '../flows/password-reset.ts'
import type { WaitingLogins } from '../flows/waiting-login.ts'
import type { Interactions } from '../oidc/interactions.ts'
import type { BrowserCookie } from './browser-cookie.ts'
import type { ResendCooldown } from './resend-cooldown.ts'
import type { Pages } from './pages.ts'
import type { StartDelay } from './response-delay.ts'

export interface Flows {
  passwordReset: PasswordReset
  invitation: Invitation
  verification: EmailVerification
  waitingLogins: WaitingLogins
  notMe: NotMe
}

/** What the handlers work with. */
export interface HttpParts extends Core, Flows {
  interactions: Interactions
  browserCookie: BrowserCookie
  pages: Pages
  cooldown: ResendCooldown
  startDelay: StartDelay
}
