import type { Provider } from 'oidc-provider'
import type { Clock } from '../clock.ts'
import type { SecretBox } from '../crypto/secret-box.ts'
import type { Log, UserStore } from '../contract/index.ts'
import type { AccountFlowsStore } from '../store/index.ts'

type Stores = 'cutoffs' | 'clientLogouts' | 'providerRecords'

/** What this folder works with. */
export interface OidcParts extends Pick<AccountFlowsStore, Stores> {
  provider(): Provider
  users: UserStore
  /** Seals what the provider keeps in our store. */
  box: SecretBox
  clock: Clock
  log: Log
}
