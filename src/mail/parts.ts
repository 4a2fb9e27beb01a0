import type { IdentifiedClient, RequestParameters } from '../contract/index.ts'
import type { ClientNotifications } from '../jobs/client-notifications.ts'
import type { Views } from '../views/index.ts'
import type { CommonParts, FlowParts } from '../flows/parts.ts'
import type { GlobalLimit } from './limits.ts'
import type { MailSender } from './sending.ts'

/** What a job needs on its way to a mail that has left. */
export interface MailParts extends CommonParts, Pick<FlowParts, 'store' | 'users' | 'keyed'> {
  notifications: Pick<ClientNotifications, 'appsOf'>
  clients: {
    /** Drops parameters that do not belong to a registered client and its redirect URI, and names that client. */
    identify(parameters: RequestParameters): Promise<IdentifiedClient>
  }
  /** Where links start: base URL and OAuth path, never a part of a request. */
  oauthUrl: string
  views: Pick<Views, 'localeFor' | 'mail'>
  globalLimit: GlobalLimit
  sender: MailSender
}
