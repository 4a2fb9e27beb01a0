import type { Provider } from 'oidc-provider'
import type { ClientLogout, ClientLogoutStore, Log } from '../ports/index.ts'
import { clientsOfNewest, isTold } from '../ports/told-clients.ts'
import type { ShownApps, SignedOutApps } from '../views/page-locals.ts'
import { tellsClients } from './backchannel-logout.ts'

/** What became of the clients that an account was signed in to. */
export interface ToldClients {
  /**
   * Each client of one end, or of the newest, once. `undefined`: it is not known, because the provider tells no clients or the store
   * failed, which is logged.
   */
  clientsOf(accountId: string, endId?: string): Promise<ClientLogout[] | undefined>
  /** The same by name, for the person. */
  appsOf(accountId: string, endId: string): Promise<SignedOutApps | undefined>
}

/** More names help nobody. */
const MOST_NAMES = 10

export function createToldClients(
  provider: () => Provider,
  logouts: Pick<ClientLogoutStore, 'find'>,
  nameOf: (clientId: string) => Promise<string>,
  log: Log,
): ToldClients {
  let isOn: boolean | undefined

  async function known<T>(work: () => Promise<T>): Promise<T | undefined> {
    try {
      isOn ??= tellsClients(provider())
      return isOn ? await work() : undefined
    } catch (error) {
      log('error', 'it is not known which clients are told of an ended account', {
        error: String(error),
      })
      return undefined
    }
  }

  const find = async (accountId: string, endId?: string) =>
    clientsOfNewest(await logouts.find({ accountId, ...(endId !== undefined && { endId }) }))

  async function shown(clients: ClientLogout[]): Promise<ShownApps> {
    const named = clients.slice(0, MOST_NAMES).map(({ clientId }) => nameOf(clientId))
    return { names: await Promise.all(named), more: Math.max(0, clients.length - MOST_NAMES) }
  }

  return {
    clientsOf: (accountId, endId) => known(() => find(accountId, endId)),

    appsOf: (accountId, endId) =>
      known(async () => {
        const clients = await find(accountId, endId)
        const [told, untold] = await Promise.all([
          shown(clients.filter(isTold)),
          shown(clients.filter((client) => !isTold(client))),
        ])
        return { told, untold }
      }),
  }
}
