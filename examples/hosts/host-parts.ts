import type { Provider } from 'oidc-provider'
import type { AccountFlows } from '../../src/index.ts'
import type { Page } from './page.ts'

/** What is put on a server; `identity.ts` makes it. */
export interface HostParts {
  /** After `flows.attach(provider)`. */
  provider: Provider
  flows: AccountFlows
  /** Path of the issuer, such as `/oauth2`; empty for none. */
  oauthPath: string
  /** Your login page; its POST ends with `flows.finishLogin`. */
  login: Page
  /** Your page for a new password; its POST ends with `flows.passwordChanged`. */
  changePassword: Page
}
