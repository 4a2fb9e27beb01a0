import type {
  EndedAccount,
  EndedClients,
  LiveSession,
  Log,
  Requester,
  SessionEnd,
} from '../contract/index.ts'
import type { ClientLogout, ClientLogoutState, ClientLogoutStore } from '../store/index.ts'
import { defined } from '../store/kind.ts'
import type { ShownApps, SignedOutApps } from '../views/page-locals.ts'
import { newId } from '../crypto/token.ts'
import { BY_HOST, requestNotice } from '../mail/password-changed.ts'
import { secondAfter } from '../store/login-end.ts'
import { whyNoMail, type VoidLinks } from './account.ts'
import { NOBODY, type FlowParts } from './parts.ts'

export type ClientNotifications = ReturnType<typeof createClientNotifications>

const MAX_NAMES = 10

/** The clients that an account was signed in to, and whether each is notified. `isOn`: the provider notifies clients. */
export function createClientNotifications(
  isOn: () => boolean,
  logouts: Pick<ClientLogoutStore, 'find'>,
  nameOf: (clientId: string) => Promise<string>,
  log: Log,
) {
  async function unlessFailed<T>(work: () => Promise<T>): Promise<T | undefined> {
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
    const named = clients.slice(0, MAX_NAMES).map(({ clientId }) => nameOf(clientId))
    return { names: await Promise.all(named), more: Math.max(0, clients.length - MAX_NAMES) }
  }

  return {
    /** Each client of one end, or of the newest, once. `undefined`: the provider notifies no clients, or the store failed. */
    clientsOf: (accountId: string, endId?: string) => unlessFailed(() => find(accountId, endId)),

    /** Their names, for the user. */
    appsOf: (accountId: string, endId: string) =>
      unlessFailed(async (): Promise<SignedOutApps> => {
        const clients = await find(accountId, endId)
        const [told, untold] = await Promise.all([
          shown(clients.filter(isNotified)),
          shown(clients.filter((client) => !isNotified(client))),
        ])
        return { told, untold }
      }),
  }
}

const WORST_FIRST: readonly ClientLogoutState[] = ['dead', 'untold', 'waiting', 'sent']

/** Each client of the newest end once, as the worst of its sessions stands. `logouts` are of one account, newest first. */
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

/** Otherwise the user has to sign out of the client. */
export const isNotified = ({ state }: ClientLogout): boolean =>
  state === 'waiting' || state === 'sent'

interface EndSessionsParts
  extends
    Pick<FlowParts, 'users' | 'sessions' | 'outbox' | 'audit' | 'settings' | 'clock'>,
    Pick<ClientNotifications, 'clientsOf'> {
  voidEverything: VoidLinks
}

/** Ends everything that an account is signed in with, or could be by a link that was mailed before. */
export function createEndSessions(parts: EndSessionsParts) {
  const { audit, clock } = parts
  return async (accountId: string): Promise<EndedAccount> => {
    const end = { id: newId(), at: clock.now() }
    const { clients, ...details } = await endAll(parts, accountId, end)
    await audit({ ...end, type: 'sessions_ended', accountId, details })
    await secondAfter(clock, end.at)
    return { ...details, ...(clients && { clients }) }
  }
}

interface BrowserParts<Request, Browser extends { req: Request }> {
  /** Its live session of this account. `undefined`: there is none. */
  liveSession(browser: Browser, accountId: string): Promise<LiveSession | undefined>
  requesterOf(req: Request): Requester
}

/** The same once the host itself has replaced a password: one browser gets a new session, and the owner gets a mail. */
export function createPasswordChanged<Request, Browser extends { req: Request }>(
  parts: EndSessionsParts & BrowserParts<Request, Browser>,
) {
  const { users, outbox, audit, settings, clock, liveSession, requesterOf } = parts
  return async (accountId: string, browser?: Browser): Promise<EndedAccount> => {
    const session = browser && (await liveSession(browser, accountId))
    const requester = browser ? requesterOf(browser.req) : NOBODY
    const end = { id: `${BY_HOST}${newId()}`, at: clock.now() }
    const { clients, ...details } = await endAll(parts, accountId, end, session?.endsAt)
    const user = settings().passwordChangedEmail ? await users.findById(accountId) : undefined
    if (user?.email !== undefined && whyNoMail(user) === undefined) {
      const { email, emailVerified } = user
      const isClaim = !emailVerified
      const change = { id: end.id, accountId, email, isClaim, carried: {}, requester }
      await requestNotice(outbox, change, clock.now())
    }
    await audit({ ...end, type: 'password_changed', accountId, details, ...requester })
    await secondAfter(clock, end.at)
    // Last, so that earlier answers to this browser have set their cookies.
    await session?.renew()
    return { ...details, ...(clients && { clients }) }
  }
}

async function endAll(
  { sessions, voidEverything, clientsOf }: EndSessionsParts,
  accountId: string,
  end: SessionEnd,
  idpAt = end.at,
): Promise<EndedAccount> {
  await voidEverything(accountId)
  const ended = await sessions.end(accountId, { ...end, idpAt })
  const clients = await clientsOf(accountId, end.id)
  return { ...ended, ...(clients && { clients: countsOf(clients) }) }
}

function countsOf(clients: ClientLogout[]): EndedClients {
  const notified = clients.filter(isNotified).length
  return { told: notified, untold: clients.length - notified }
}
