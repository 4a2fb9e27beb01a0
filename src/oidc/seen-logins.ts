/** What each request knows of the logins that its records come from, and of the cut-offs that these have seen. */
import type { AdapterPayload } from 'oidc-provider'
import type { Clock } from '../clock.ts'
import { passwordDigest } from '../crypto/password.ts'
import type { SessionCutoffs, UserStore } from '../ports/index.ts'
import { isEnded, loginSecond, seenAll, seenBy, seenNone } from '../ports/login-end.ts'
import type { SessionCutoffStore } from '../records/index.ts'
import { accountStamp, OAUTH_MODELS, SEEN, withLogin } from './account-stamp.ts'
import { createRequestMemory, type RequestMemory } from './request-memory.ts'

const SAVED_BY_HOSTS = new Set(['Session', 'BackchannelAuthenticationRequest'])
const ENDED_MODELS = new Set(['Session', ...OAUTH_MODELS])

export interface SeenParts {
  cutoffs: Pick<SessionCutoffStore, 'read'>
  users: Pick<UserStore, 'findById'>
  clock: Clock
  /** Whether the accounts of logins that are finished will be asked for. */
  readsAccounts: () => boolean
}

interface Parts extends SeenParts {
  memory: RequestMemory
}

export type SeenLogins = ReturnType<typeof createSeenLogins>

export function createSeenLogins(outside: SeenParts) {
  const memory = createRequestMemory(outside.cutoffs, outside.users, outside.clock)
  const parts = { ...outside, memory }
  const { perRequest, ofLogin, readCutoffs, readAccount } = memory
  return {
    perRequest,
    ofLogin,
    readCutoffs,
    readAccount,

    /** What an adapter asks for each record: it, unless a cut-off ended it. */
    alive: alive.bind(undefined, parts),

    /** The record with what the login behind it has seen. `before`: the one that it takes the place of. */
    stamped: stamped.bind(undefined, parts),

    /**
     * Reads the cut-offs that came before a login, before the login makes anything: all later ones end it. If the account has
     * cut-offs, the user is read too. With its present password the login is later than all cut-offs; with another one it is
     * ended.
     *
     * @param second - in which it arrived.
     * @param digest - of the password hash that it was checked with. `undefined`: nobody knows, and the clock decides.
     */
    seenByLogin: seenByLogin.bind(undefined, parts),
  }
}

async function alive(
  { memory, readsAccounts }: Parts,
  model: string,
  payload: AdapterPayload | void,
) {
  const stamp = payload && accountStamp(model, payload)
  if (!stamp) return payload
  const { accountId, kind, second } = stamp
  // Not of a session: a link is opened in it before it verifies its account. Whoever needs the account gets a failure.
  if (model === 'Interaction' && memory.arrivedAt() !== undefined && readsAccounts())
    memory.readAccount(accountId).catch(() => {})
  const ends = await memory.readCutoffs(accountId)
  if (isEnded(kind, stamp, ends)) return undefined
  memory.remember(accountId, { second, seen: stamp.seen ?? seenBy(second, ends) }, kind)
  return payload
}

// A record has seen the cut-offs of the login that it comes from, or of its own request. So a request that began before a
// cut-off, and ends after it, makes nothing that lives.
async function stamped(
  { memory, clock }: Parts,
  model: string,
  payload: AdapterPayload,
  before: () => Promise<AdapterPayload | void>,
): Promise<AdapterPayload> {
  if (model === 'Interaction') return withSeenLogin(memory, clock, payload)
  const { accountId } = payload
  if (accountId === undefined || !ENDED_MODELS.has(model)) return payload
  const login = memory.loginOf(accountId)
  if (login) return withLogin(payload, login)
  // A page of the host saves sessions and CIBA requests, and makes grants, outside our middleware.
  if (SAVED_BY_HOSTS.has(model)) {
    const former = await before()
    const stamp = former && accountStamp(model, former)
    if (stamp?.accountId === accountId && stamp.seen)
      return withLogin(payload, { second: stamp.second, seen: stamp.seen })
    if (model === 'Session') return payload
  }
  const arrivedAt = memory.arrivedAt()
  if (arrivedAt === undefined && model !== 'Grant') return payload
  const ends = await memory.readCutoffs(accountId)
  // These two open nothing without a login that lives or the person's consent, so that they need not be of a password.
  const isOfNone = arrivedAt === undefined || model === 'BackchannelAuthenticationRequest'
  return isOfNone
    ? withLogin(payload, { second: undefined, seen: seenAll(ends) })
    : withLogin(payload, { second: arrivedAt, seen: seenBy(arrivedAt, ends) })
}

// Without a time, oidc-provider dates the login at the moment the result is used, however late that is.
async function withSeenLogin(memory: RequestMemory, { now }: Clock, payload: AdapterPayload) {
  const login = payload.result?.login
  if (!login) return payload
  const { accountId, ts = loginSecond(now()) } = login
  const stamp = accountStamp('Interaction', payload)
  const known = stamp?.seen ?? memory.loginOf(accountId)?.seen
  const seen = known ?? seenBy(ts, await memory.readCutoffs(accountId))
  memory.remember(accountId, { second: ts, seen }, 'idp')
  return { ...payload, result: { ...payload.result, login: { ...login, ts, [SEEN]: seen } } }
}

async function seenByLogin(
  { memory, users }: Parts,
  accountId: string,
  second: number,
  digest?: string,
) {
  const ends = await memory.readCutoffs(accountId)
  const seen = !ends || digest === undefined ? seenBy(second, ends) : await judged(ends)
  memory.remember(accountId, { second, seen }, 'idp')
  return seen

  async function judged(before: SessionCutoffs) {
    const user = await users.findById(accountId)
    const isOfNow = user !== undefined && passwordDigest(user.passwordHash) === digest
    return isOfNow ? seenAll(before) : seenNone()
  }
}
