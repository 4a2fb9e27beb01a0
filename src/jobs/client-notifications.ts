import type { Log } from '../contract/index.ts'
import { isNotified } from '../store/client-logouts.ts'
import type { AccountFlowsStore, ClientLogout, ClientLogoutState } from '../store/index.ts'
import type { ShownApps, SignedOutApps } from '../views/page-locals.ts'

export type ClientNotifications = ReturnType<typeof createClientNotifications>

/** The clients that an account was signed in to, and whether each is notified. */
export function createClientNotifications(
  isOn: () => boolean,
  logouts: Pick<AccountFlowsStore['clientLogouts'], 'find'>,
  namesOf: (clientIds: string[]) => Promise<ShownApps>,
  log: Log,
) {
  async function unlessFailed<T>(work: () => Promise<T>): Promise<T | undefined> {
    try {
      return isOn() ? await work() : undefined
    } catch (error) {
      const message = 'the notified clients of an ended account are not known'
      log('error', message, { error: String(error) })
      return undefined
    }
  }

  const find = async (accountId: string, endId?: string) =>
    clientsOfNewest(await logouts.find({ accountId, endId }))

  const shown = (clients: ClientLogout[]) => namesOf(clients.map(({ clientId }) => clientId))

  return {
    /** Each client of one end, or of the newest end, once. `undefined`: the provider notifies no clients, or the store failed. */
    clientsOf: (accountId: string, endId?: string) => unlessFailed(() => find(accountId, endId)),

    appsOf: (accountId: string, endId: string) =>
      unlessFailed(async (): Promise<SignedOutApps> => {
        const clients = await find(accountId, endId)
        const [notified, notNotified] = await Promise.all([
          shown(clients.filter(isNotified)),
          shown(clients.filter((client) => !isNotified(client))),
        ])
        return { notified, notNotified }
      }),
  }
}

const WORST_FIRST: readonly ClientLogoutState[] = ['dead', 'not_notified', 'waiting', 'sent']

/** Each client of the newest end, once, in the worst state of its sessions. `logouts` are of one account, newest first. */
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
