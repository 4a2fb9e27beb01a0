import type { Log } from '../ports/index.ts'
import type { ClientLogout, ClientLogoutState, ClientLogoutStore } from '../records/index.ts'
import { defined } from '../records/kind.ts'
import type { ShownApps, SignedOutApps } from '../views/page-locals.ts'

export type ToldClients = ReturnType<typeof createToldClients>

/** More names help nobody. */
const MOST_NAMES = 10

/**
 * What became of the clients that an account was signed in to.
 *
 * @param isOn - whether the provider tells clients.
 */
export function createToldClients(
  isOn: () => boolean,
  logouts: Pick<ClientLogoutStore, 'find'>,
  nameOf: (clientId: string) => Promise<string>,
  log: Log,
) {
  async function known<T>(work: () => Promise<T>): Promise<T | undefined> {
    try {
      return isOn() ? await work() : undefined
    } catch (error) {
      const message = 'it is not known which clients are told of an ended account'
      log('error', message, { error: String(error) })
      return undefined
    }
  }

  const find = async (accountId: string, endId?: string) =>
    clientsOfNewest(await logouts.find({ accountId, ...defined({ endId }) }))

  async function shown(clients: ClientLogout[]): Promise<ShownApps> {
    const named = clients.slice(0, MOST_NAMES).map(({ clientId }) => nameOf(clientId))
    return { names: await Promise.all(named), more: Math.max(0, clients.length - MOST_NAMES) }
  }

  return {
    /**
     * Each client of one end, or of the newest, once. `undefined`: it is not known, because the provider tells no clients or the store
     * failed, which is logged.
     */
    clientsOf: (accountId: string, endId?: string) => known(() => find(accountId, endId)),

    /** The same by name, for the person. */
    appsOf: (accountId: string, endId: string) =>
      known(async (): Promise<SignedOutApps> => {
        const clients = await find(accountId, endId)
        const [told, untold] = await Promise.all([
          shown(clients.filter(isTold)),
          shown(clients.filter((client) => !isTold(client))),
        ])
        return { told, untold }
      }),
  }
}

const WORST_FIRST: readonly ClientLogoutState[] = ['dead', 'untold', 'waiting', 'sent']

/**
 * Each client of the newest end once, as the worst of its sessions stands.
 *
 * @param logouts - of one account, newest first.
 */
function clientsOfNewest(logouts: readonly ClientLogout[]): ClientLogout[] {
  const clients = new Map<string, ClientLogout>()
  const ofNewest = logouts.filter(({ endId }) => endId === logouts[0]?.endId)
  for (const logout of ofNewest) {
    const seen = clients.get(logout.clientId)
    if (!seen || rankOf(logout) < rankOf(seen)) clients.set(logout.clientId, logout)
  }
  return [...clients.values()]
}

const rankOf = ({ state }: ClientLogout) => WORST_FIRST.indexOf(state)

/** Whether the client is told, or was. Otherwise the person has to sign out there. */
export const isTold = ({ state }: ClientLogout): boolean => state === 'waiting' || state === 'sent'
