import type { ClientLogout, ClientLogoutState } from './client-logouts.ts'

const WORST_FIRST: readonly ClientLogoutState[] = ['dead', 'untold', 'waiting', 'sent']

/**
 * Each client of the newest end once, as the worst of its sessions stands.
 *
 * @param logouts - of one account, newest first.
 */
export function clientsOfNewest(logouts: readonly ClientLogout[]): ClientLogout[] {
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
