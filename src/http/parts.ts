import type { Core } from '../core.ts'
import type { Flows } from '../flows/flows.ts'
import type { Interactions } from '../oidc/interactions.ts'
import type { BrowserCookie } from './browser.ts'
import type { ResendCooldown } from './mail-requests.ts'
import type { Pages } from './pages.ts'

/** What the handlers work with. */
export interface HttpParts extends Core, Flows {
  interactions: Interactions
  browserCookie: BrowserCookie
  pages: Pages
  cooldown: ResendCooldown
}
