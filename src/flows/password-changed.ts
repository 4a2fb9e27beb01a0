/** A password that the host changed (3.5), the end of everything that an account has, and the clients that are notified of it. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { newId } from '../crypto/token.ts'
import { BY_HOST, requestNotice } from '../jobs/request.ts'
import type { EndedAccount, EndedSessions, Log, Requester, UserStore } from '../contract/index.ts'
import { secondAfter, type SessionEnd } from '../store/cutoffs.ts'
import type {
  ClientLogout,
  ClientLogoutState,
  ClientLogoutStore,
  MailOutbox,
} from '../store/index.ts'
import { defined } from '../store/kind.ts'
import type { ShownApps, SignedOutApps } from '../views/page-locals.ts'
import { whyNoMail, type VoidLinks } from './account.ts'
import { NOBODY, type Environment } from './audit.ts'

/** The sessions of an account at the provider. Sessions of later logins stay. */
export interface AccountSessions {
  /**
   * Ends what all logins until now have: grants, codes and tokens (3.3, effect 3), sessions and login results (effect 4). With `isExact`:
   * only for logins that began at `at` or before.
   */
  end(accountId: string, end: SessionEnd): Promise<EndedSessions>
  /** The same, but it only reads the records. `clear` deletes them later. */
  cutOff(accountId: string, end: SessionEnd): Promise<CutOff>
}

/** Records that are dead, and not deleted yet. */
interface CutOff {
  ended: EndedSessions
  clear(): Promise<void>
}

/** The live session of a browser, read before an end of its account ends it too. */
interface LiveSession {
  /**
   * End sessions and login results at this time: one millisecond after the cut-off that the session has seen. The new session counts as
   * having seen it. Any other end, earlier or later, moves the cut-off past this time, and so ends the new session.
   */
  endsAt: Date
  /**
   * Gives this browser a new session of the same login, and sets its cookie. Call it after both ends. If it fails, it logs why, and this
   * browser is signed out like the others.
   */
  renew(): Promise<void>
}

interface EndParts extends Environment, Pick<ClientNotifications, 'clientsOf'> {
  sessions: Pick<AccountSessions, 'end'>
  voidEverything: VoidLinks
}

/** Ends all sessions and tokens of an account, and voids the links that were mailed to it. */
export const createEndSessions = (parts: EndParts) => (accountId: string) =>
  endAll(parts, accountId, { id: newId() }, (ended) =>
    parts.audit({ ...ended, type: 'sessions_ended' }),
  )

interface Browser {
  req: IncomingMessage
  res: ServerResponse
}

interface PasswordChangedParts extends EndParts {
  users: Pick<UserStore, 'findById'>
  outbox: Pick<MailOutbox, 'add'>
  /** The live session of this account in a browser. `undefined`: the browser has no such session. */
  liveSession(browser: Browser, accountId: string): Promise<LiveSession | undefined>
  requesterOf(req: IncomingMessage): Requester
}

/** The same after the host itself replaced a password: one browser gets a new session, and the owner gets a mail. */
export function createPasswordChanged(parts: PasswordChangedParts) {
  const { users, outbox, audit, settings, clock, liveSession, requesterOf } = parts
  return async (accountId: string, browser?: Browser): Promise<EndedAccount> => {
    const session = browser && (await liveSession(browser, accountId))
    const requester = browser ? requesterOf(browser.req) : NOBODY
    const id = `${BY_HOST}${newId()}`
    const ended = await endAll(parts, accountId, { id, idpAt: session?.endsAt }, async (ended) => {
      const user = settings().passwordChangedEmail ? await users.findById(accountId) : undefined
      if (user?.email !== undefined && whyNoMail(user) === undefined) {
        const { email, emailVerified } = user
        const isClaim = !emailVerified
        const change = { id, accountId, email, isClaim, parameters: {}, requester }
        await requestNotice(outbox, change, clock.now())
      }
      await audit({ ...ended, type: 'password_changed', ...requester })
    })
    // Last, so that earlier answers to this browser have set their cookies.
    await session?.renew()
    return ended
  }
}

async function endAll(
  { sessions, voidEverything, clientsOf, clock }: EndParts,
  accountId: string,
  { id, idpAt }: { id: string; idpAt?: Date | undefined },
  record: (ended: SessionEnd & { accountId: string; details: EndedSessions }) => Promise<void>,
): Promise<EndedAccount> {
  const at = clock.now()
  await voidEverything(accountId)
  const details = await sessions.end(accountId, { id, at, ...defined({ idpAt }) })
  const clients = await clientsOf(accountId, id)
  await record({ id, at, accountId, details })
  await secondAfter(clock, at)
  if (!clients) return details
  const notified = clients.filter(isNotified).length
  return { ...details, clients: { notified, notNotified: clients.length - notified } }
}

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
    /** Each client of one end, or of the newest end, once. `undefined`: the provider notifies no clients, or the store failed. */
    clientsOf: (accountId: string, endId?: string) => unlessFailed(() => find(accountId, endId)),

    /** The names of these clients, for the user. */
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

/** `false`: the user has to sign out of the client. */
const isNotified = ({ state }: ClientLogout): boolean => state === 'waiting' || state === 'sent'
