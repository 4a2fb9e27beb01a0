/** What each request knows: the logins that its records come from, the cut-offs that each login has seen, and an outage of the store. */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { Context, Middleware, Next } from 'koa'
import type { AdapterPayload } from 'oidc-provider'
import type { Clock } from '../clock.ts'
import { passwordDigest } from '../crypto/password.ts'
import { isStoreUnavailable } from '../errors.ts'
import { isEnded, loginSecond, seenAll, seenBy, SEEN_NONE } from '../store/cutoffs.ts'
import type { SessionCutoffs, SeenCutoffs } from '../store/cutoffs.ts'
import type { UserStore } from '../contract/index.ts'
import type { AccountFlowsStore } from '../store/index.ts'
import { accountStamp, earliest, type KnownLogin, OAUTH_MODELS, SEEN } from './account-records.ts'
import { outcomeOf } from './provider-answers.ts'

const SAVED_BY_HOSTS = new Set(['Session', 'BackchannelAuthenticationRequest'])
const ENDED_MODELS = new Set(['Session', ...OAUTH_MODELS])

export interface SeenParts {
  cutoffs: AccountFlowsStore['cutoffs']
  users: Pick<UserStore, 'findById'>
  clock: Clock
}

interface Parts {
  clock: Clock
  memory(): Memory
  readCutoffs(accountId: string): Promise<SessionCutoffs | undefined>
}

export type SeenLogins = ReturnType<typeof createSeenLogins>

export function createSeenLogins({ cutoffs, users, clock }: SeenParts) {
  const request = new AsyncLocalStorage<Memory>()
  // Outside of requests nothing is remembered, and everything is read anew.
  const memory = () => request.getStore() ?? newMemory()

  function readCutoffs(accountId: string): Promise<SessionCutoffs | undefined> {
    const known = memory().cutoffs
    const reading = known.get(accountId) ?? cutoffs.read(accountId)
    known.set(accountId, reading)
    return reading
  }

  return {
    readCutoffs,

    /** Does not wait for a store that has already failed in this request. */
    failingFast: <T>(work: () => Promise<T>) => failingFast(memory(), work),

    /** Middleware: if the store cannot be reached, answers in place of the provider, which would answer 500. */
    answeringOutages:
      (answer: (ctx: Context, error: unknown) => void): Middleware =>
      async (ctx, next) => {
        const { outage } = memory()
        try {
          await next()
        } catch (error) {
          if (!isStoreUnavailable(error)) throw error
          outage.error = error
          ctx.status = 500
        }
        const failure = outage.error ?? outcomeOf(ctx.req).failure
        if (ctx.status === 500 && isStoreUnavailable(failure)) answer(ctx, failure)
      },

    passedOurMiddleware: () => request.getStore() !== undefined,

    /** Our first middleware: each request of the provider has a memory of its own. */
    perRequest: (_ctx: Context, next: Next) =>
      request.run(newMemory(loginSecond(clock.now())), next),

    /** All that `work` makes for the account comes from this login. */
    runAsLogin<T>(accountId: string, login: KnownLogin, work: () => Promise<T>) {
      const { outage } = memory()
      const logins = new Map([[accountId, login]])
      return request.run({ ...newMemory(), outage, logins }, work)
    },

    /** Returns the record. `undefined`: there is no record, or a cut-off ended it. */
    async unlessEnded(model: string, payload: AdapterPayload | void) {
      const stamp = payload && accountStamp(model, payload)
      if (!stamp) return payload
      const { accountId, cutoff, second } = stamp
      const ends = await readCutoffs(accountId)
      if (isEnded(cutoff, stamp, ends)) return undefined
      remember(memory(), accountId, { second, seen: stamp.seen ?? seenBy(second, ends) }, cutoff)
      return payload
    },

    /** Adds to a record what its login has seen. `former` reads the record that it replaces. */
    withSeenCutoffs: withSeenCutoffs.bind(undefined, { clock, memory, readCutoffs }),

    /**
     * Reads the cut-offs that a login has seen; a later cut-off ends it. Call it before the login makes any record. `digest` is that of the
     * hash that the login was checked with. If the account still has this password, the login has seen all cut-offs; otherwise none.
     * Without `digest`, the clock decides.
     */
    async cutoffsSeenAtLogin(accountId: string, second: number, digest?: string) {
      const ends = await readCutoffs(accountId)
      let seen = seenBy(second, ends)
      if (ends && digest !== undefined) {
        const user = await users.findById(accountId)
        const isCurrent = user !== undefined && passwordDigest(user.passwordHash) === digest
        seen = isCurrent ? seenAll(ends) : SEEN_NONE
      }
      remember(memory(), accountId, { second, seen }, 'idp')
      return seen
    },
  }
}

/** What one request knows. `arrivedAt`: in seconds; `undefined` outside our middleware. `logins`: the source of its records, by account. */
const newMemory = (arrivedAt?: number) => ({
  arrivedAt,
  /** The first failure of the store. */
  outage: {} as { error?: unknown },
  cutoffs: new Map<string, Promise<SessionCutoffs | undefined>>(),
  logins: new Map<string, KnownLogin>(),
})

type Memory = ReturnType<typeof newMemory>

async function failingFast<T>({ outage }: Memory, work: () => Promise<T>): Promise<T> {
  if (outage.error) throw outage.error
  try {
    return await work()
  } catch (error) {
    if (isStoreUnavailable(error)) outage.error = error
    throw error
  }
}

/** Adds a login to what the request knows. It keeps the lowest value of each cut-off. */
function remember(
  { logins }: Memory,
  accountId: string,
  login: KnownLogin,
  cutoff: keyof SeenCutoffs,
) {
  const known = logins.get(accountId) ?? login
  const oauth = Math.min(known.seen.oauth, login.seen.oauth)
  // A grant may outlive its session, so it says nothing about the session.
  const session = cutoff === 'oauth' ? known : login
  const idp = Math.min(known.seen.idp, session.seen.idp)
  logins.set(accountId, { second: earliest(known.second, session.second), seen: { idp, oauth } })
}

type ReadRecord = () => Promise<AdapterPayload | void>

// A request that begins before a cut-off and ends after it must leave no live record. So a record gets the login of its request. Without
// one, it gets the login of the record that it replaces. Without that too, it gets the time of the request.
async function withSeenCutoffs(
  parts: Parts,
  model: string,
  payload: AdapterPayload,
  former: ReadRecord,
): Promise<AdapterPayload> {
  if (model === 'Interaction') return withSeenLogin(parts, payload)
  const { accountId } = payload
  if (accountId === undefined || !ENDED_MODELS.has(model)) return payload
  const login =
    parts.memory().logins.get(accountId) ??
    (await formerLogin(model, accountId, former)) ??
    (await requestAsLogin(parts, model, accountId))
  return login ? { ...payload, [SEEN]: { ...login.seen, second: login.second } } : payload
}

/** The login of the record that is replaced. Hosts save sessions and CIBA requests again, outside our middleware. */
async function formerLogin(model: string, accountId: string, former: ReadRecord) {
  const record = SAVED_BY_HOSTS.has(model) && (await former())
  const stamp = record ? accountStamp(model, record) : undefined
  if (stamp?.accountId !== accountId || !stamp.seen) return undefined
  return { second: stamp.second, seen: stamp.seen }
}

/** `undefined`: the request is no login, and the clock decides. */
async function requestAsLogin({ memory, readCutoffs }: Parts, model: string, accountId: string) {
  const { arrivedAt } = memory()
  const isOfHost = arrivedAt === undefined
  if (model === 'Session' || (isOfHost && model !== 'Grant')) return undefined
  const ends = await readCutoffs(accountId)
  // A grant from a page of the host, or a CIBA request, opens nothing alone. So it counts as having seen all cut-offs.
  if (isOfHost || model === 'BackchannelAuthenticationRequest')
    return { second: undefined, seen: seenAll(ends) }
  return { second: arrivedAt, seen: seenBy(arrivedAt, ends) }
}

// A login without a time gets one here: oidc-provider would date it when its result is used, however late that is.
async function withSeenLogin({ memory, readCutoffs, clock }: Parts, payload: AdapterPayload) {
  const login = payload.result?.login
  if (!login) return payload
  const { accountId, ts = loginSecond(clock.now()) } = login
  const stamp = accountStamp('Interaction', payload)
  const known = stamp?.seen ?? memory().logins.get(accountId)?.seen
  const seen = known ?? seenBy(ts, await readCutoffs(accountId))
  remember(memory(), accountId, { second: ts, seen }, 'idp')
  return { ...payload, result: { ...payload.result, login: { ...login, ts, [SEEN]: seen } } }
}
