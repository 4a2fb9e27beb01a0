/** What one request knows: what it reads at most once, and of which logins it has found anything. */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { Context, Next } from 'koa'
import type { Clock } from '../clock.ts'
import { loginSecond, type DatedLogin, type SeenCutoffs } from '../ports/login-end.ts'
import type { SessionCutoffs, User, UserStore } from '../ports/index.ts'
import type { SessionCutoffStore } from '../records/index.ts'
import { earliest } from './account-stamp.ts'

/** A login behind records. */
export interface KnownLogin extends DatedLogin {
  seen: SeenCutoffs
}

export type RequestMemory = ReturnType<typeof createRequestMemory>

export function createRequestMemory(
  cutoffs: Pick<SessionCutoffStore, 'read'>,
  users: Pick<UserStore, 'findById'>,
  { now }: Clock,
) {
  const request = new AsyncLocalStorage<ReturnType<typeof nothingSince>>()
  const noted = () => request.getStore()
  return {
    /** Middleware: each request of the provider has a memory of its own. Outside of these nothing is remembered, and everything is read anew. */
    perRequest: (_ctx: Context, next: Next) => request.run(nothingSince(loginSecond(now())), next),
    /** What this work makes of the account is of that login, whatever its request knows. */
    ofLogin: <T>(id: string, login: KnownLogin, work: () => Promise<T>) =>
      request.run({ ...nothingSince(loginSecond(now())), logins: new Map([[id, login]]) }, work),
    /** The second in which the request arrived. `undefined`: there is none. */
    arrivedAt: () => noted()?.arrivedAt,
    /** The account's cut-offs, as this request sees them. */
    readCutoffs: (id: string) => once(noted()?.cutoffs, id, () => cutoffs.read(id)),
    /** The account itself likewise; where `readsAccounts`, one whose login is finished is read beside its cut-offs. */
    readAccount: (id: string) => once(noted()?.accounts, id, () => users.findById(id)),
    /** What the request may make things of. `undefined`: it has found nothing of this account. */
    loginOf: (id: string) => noted()?.logins.get(id),

    /** Notes that something of this login was found or made. Of all of them the request has seen no more than each. */
    remember(accountId: string, login: KnownLogin, kind: keyof SeenCutoffs) {
      const logins = noted()?.logins
      const known = logins?.get(accountId)
      logins?.set(accountId, known ? least(known, login, kind) : login)
    },
  }
}

function nothingSince(arrivedAt: number) {
  return {
    arrivedAt,
    cutoffs: new Map<string, Promise<SessionCutoffs | undefined>>(),
    accounts: new Map<string, Promise<User | undefined>>(),
    logins: new Map<string, KnownLogin>(),
  }
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

function once<T>(
  known: Map<string, Promise<T>> | undefined,
  key: string,
  read: () => Promise<T>,
): Promise<T> {
  const reading = known?.get(key) ?? read()
  known?.set(key, reading)
  return reading
}
