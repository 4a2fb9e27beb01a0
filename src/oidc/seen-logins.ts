/**
 * What each request knows of the logins that its records come from, and of the cut-offs that these have seen.
 *
 * @module
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { Middleware } from 'koa'
import type { AdapterPayload } from 'oidc-provider'
import type { Clock } from '../clock.ts'
import { passwordDigest } from '../crypto/password.ts'
import type { SessionCutoffs, SessionCutoffStore, User, UserStore } from '../ports/index.ts'
import {
  isEnded,
  loginSecond,
  seenAll,
  seenBy,
  seenNone,
  type DatedLogin,
  type SeenCutoffs,
} from '../ports/login-second.ts'
import { accountStamp, earliest, OAUTH_MODELS, SEEN, type AccountStamp } from './account-stamp.ts'

export interface SeenLogins {
  /** Lets one request read each account's cut-off at most once. */
  perRequest: Middleware
  /** The account's cut-offs, as this request sees them. */
  readCutoffs(accountId: string): Promise<SessionCutoffs | undefined>
  /** The account itself likewise; where `readsAccounts`, one whose login is finished is read beside its cut-offs. */
  readAccount(accountId: string): Promise<User | undefined>
  /**
   * Reads the cut-offs that a login is later than, before anything is made of it: all that come afterwards end it. Where the account has
   * cut-offs, a login is later than all of them if its password is the one of now, and ended if it is another one. For that the user is read.
   *
   * @param second - in which it arrived.
   * @param passwordDigest - of the password hash that it was checked with. `undefined`: nobody knows, and the clock decides.
   */
  seenByLogin(accountId: string, second: number, passwordDigest?: string): Promise<SeenCutoffs>
}

/** What an adapter asks for each record. */
export interface SeenRecords {
  /** The record, unless a cut-off ended it. */
  alive(model: string, payload: AdapterPayload | void): Promise<AdapterPayload | void>
  /** The record with what the login behind it has seen. `before`: the one that it takes the place of. */
  stamped(
    model: string,
    payload: AdapterPayload,
    before: () => Promise<AdapterPayload | void>,
  ): Promise<AdapterPayload>
}

const SAVED_BY_HOSTS = new Set(['Session', 'BackchannelAuthenticationRequest'])
const ENDED_MODELS = new Set(['Session', ...OAUTH_MODELS])

/** A login behind records. */
interface KnownLogin extends DatedLogin {
  seen: SeenCutoffs
}

interface RequestMemory {
  /** The second in which the request arrived. */
  arrivedAt: number
  cutoffs: Map<string, Promise<SessionCutoffs | undefined>>
  accounts: Map<string, Promise<User | undefined>>
  /** By account, the login of which it found or made anything. */
  logins: Map<string, KnownLogin>
}

export interface SeenParts {
  cutoffs: Pick<SessionCutoffStore, 'read'>
  users: Pick<UserStore, 'findById'>
  clock: Clock
  /** Whether the accounts of logins that are finished will be asked for. */
  readsAccounts: () => boolean
}

interface Parts extends SeenParts {
  request: AsyncLocalStorage<RequestMemory>
}

export function createSeenLogins(outside: SeenParts): SeenLogins & SeenRecords {
  const parts = { ...outside, request: new AsyncLocalStorage<RequestMemory>() }
  const { request, clock } = parts
  return {
    alive: (model, payload) => alive(parts, model, payload),
    stamped: (model, payload, before) => stamped(parts, model, payload, before),
    seenByLogin: (accountId, second, digest) => seenByLogin(parts, accountId, second, digest),
    readCutoffs: (accountId) => readCutoffs(parts, accountId),
    readAccount: (accountId) => readAccount(parts, accountId),
    perRequest: (_ctx, next) =>
      request.run(
        {
          arrivedAt: loginSecond(clock.now()),
          cutoffs: new Map(),
          accounts: new Map(),
          logins: new Map(),
        },
        next,
      ),
  }
}

function readCutoffs({ request, cutoffs }: Parts, accountId: string) {
  return once(request.getStore()?.cutoffs, accountId, () => cutoffs.read(accountId))
}

function readAccount({ request, users }: Parts, accountId: string) {
  return once(request.getStore()?.accounts, accountId, () => users.findById(accountId))
}

async function alive(parts: Parts, model: string, payload: AdapterPayload | void) {
  const stamp = payload && accountStamp(model, payload)
  if (!stamp) return payload
  const { accountId, kind, second } = stamp
  // Not of a session: a link is opened in it before it verifies its account. Whoever needs the account gets a failure.
  if (model === 'Interaction' && parts.request.getStore() && parts.readsAccounts())
    readAccount(parts, accountId).catch(() => {})
  const ends = await readCutoffs(parts, accountId)
  if (isEnded(kind, stamp, ends)) return undefined
  remember(parts, accountId, { second, seen: stamp.seen ?? seenBy(second, ends) }, kind)
  return payload
}

function remember(
  { request }: Parts,
  accountId: string,
  login: KnownLogin,
  kind: keyof SeenCutoffs,
) {
  const logins = request.getStore()?.logins
  const known = logins?.get(accountId)
  logins?.set(accountId, known ? least(known, login, kind) : login)
}

function least(
  known: KnownLogin,
  { second, seen }: KnownLogin,
  kind: keyof SeenCutoffs,
): KnownLogin {
  const oauth = Math.min(known.seen.oauth, seen.oauth)
  // A host may keep a grant for longer than a session: of the session it tells nothing.
  if (kind === 'oauth') return { ...known, seen: { ...known.seen, oauth } }
  const idp = Math.min(known.seen.idp, seen.idp)
  return { second: earliest(known.second, second), seen: { idp, oauth } }
}

// What a request makes has seen what the login has that it makes it of, or what it has itself: one that began before a cut-off, and
// ends after it, makes nothing that lives.
async function stamped(
  parts: Parts,
  model: string,
  payload: AdapterPayload,
  before: () => Promise<AdapterPayload | void>,
): Promise<AdapterPayload> {
  if (model === 'Interaction') return withSeenLogin(parts, payload)
  const { accountId } = payload
  const store = parts.request.getStore()
  if (accountId === undefined || !ENDED_MODELS.has(model)) return payload
  const login = store?.logins.get(accountId)
  if (login) return withLogin(payload, login)
  // A page of the host saves sessions and CIBA requests, and makes grants, outside our middleware.
  if (SAVED_BY_HOSTS.has(model)) {
    const { accountId: same, second, seen } = stampOf(model, await before())
    if (accountId === same && seen) return withLogin(payload, { second, seen })
    if (model === 'Session') return payload
  }
  if (!store && model !== 'Grant') return payload
  // These two open nothing without a login that lives or the person's consent, so that they need not be of a password.
  const isOfNone = !store || model === 'BackchannelAuthenticationRequest'
  const ends = await readCutoffs(parts, accountId)
  if (isOfNone) return withLogin(payload, { second: undefined, seen: seenAll(ends) })
  const { arrivedAt: second } = store
  return withLogin(payload, { second, seen: seenBy(second, ends) })
}

function withLogin(payload: AdapterPayload, { second, seen }: KnownLogin): AdapterPayload {
  return { ...payload, [SEEN]: { ...seen, second } }
}

function stampOf(model: string, before: AdapterPayload | void): Partial<AccountStamp> {
  return (before && accountStamp(model, before)) ?? {}
}

// Without a time, oidc-provider dates the login at the moment the result is used, however late that is.
async function withSeenLogin(parts: Parts, payload: AdapterPayload): Promise<AdapterPayload> {
  const login = payload.result?.login
  if (!login) return payload
  const { accountId, ts = loginSecond(parts.clock.now()) } = login
  const stamp = accountStamp('Interaction', payload)
  const known = stamp?.seen ?? parts.request.getStore()?.logins.get(accountId)?.seen
  const seen = known ?? seenBy(ts, await readCutoffs(parts, accountId))
  remember(parts, accountId, { second: ts, seen }, 'idp')
  return { ...payload, result: { ...payload.result, login: { ...login, ts, [SEEN]: seen } } }
}

async function seenByLogin(parts: Parts, accountId: string, second: number, digest?: string) {
  const ends = await readCutoffs(parts, accountId)
  const seen = !ends || digest === undefined ? seenBy(second, ends) : await judged(ends)
  remember(parts, accountId, { second, seen }, 'idp')
  return seen

  async function judged(before: SessionCutoffs) {
    const user = await parts.users.findById(accountId)
    const isOfNow = user !== undefined && passwordDigest(user.passwordHash) === digest
    return isOfNow ? seenAll(before) : seenNone()
  }
}

function once<T>(
  known: Map<string, Promise<T>> | undefined,
  key: string,
  read: () => Promise<T>,
): Promise<T> {
  const reading = known?.get(key) ?? read()
  known?.set(key, reading)
  return reading
}
