/** What an account has at the provider: which login each record comes from, and which cut-off ends it. */
import type { Adapter, AdapterFactory, AdapterPayload } from 'oidc-provider'
import { isStoreUnavailable } from '../errors.ts'
import { isEnded } from '../store/cutoffs.ts'
import type { DatedLogin, SeenCutoffs, SessionCutoffs } from '../store/cutoffs.ts'
import type { EndedSessions, Log } from '../contract/index.ts'

/** Models whose records the cut-off of OAuth sessions ends. */
export const OAUTH_MODELS = [
  'Grant',
  'AccessToken',
  'AuthorizationCode',
  'RefreshToken',
  'DeviceCode',
  'BackchannelAuthenticationRequest',
  'PreAuthorizedCode',
]

/** Models whose records the cut-off of IdP sessions ends. */
const IDP_MODELS = ['Session', 'Interaction']

/** The field that we add to login results and to records of oidc-provider: the cut-offs that the login has seen, and its second. */
export const SEEN = 'accountFlowsSeen'

/** What decides whether a record of oidc-provider is ended: its account, its login, and the cut-off that ends it. */
type AccountStamp = DatedLogin & { accountId: string; cutoff: keyof SeenCutoffs }

export type KnownLogin = DatedLogin & { seen: SeenCutoffs }

/** `undefined`: the record belongs to no account, and no cut-off ends it. */
export function accountStamp(model: string, payload: AdapterPayload): AccountStamp | undefined {
  const { accountId, loginTs, result, lastSubmission, iat } = payload
  if (model === 'Interaction') {
    // The login result may wait in the interaction until it expires, before or after the consent page.
    const login = result?.login ?? lastSubmission?.login
    if (!login) return undefined
    const { accountId, ts: second = iat } = login
    return { accountId, second, seen: seenOf(login).seen, cutoff: 'idp' }
  }
  if (accountId === undefined) return undefined
  const { second, seen } = seenOf(payload)
  return model === 'Session'
    ? { accountId, second: loginTs, seen, cutoff: 'idp' }
    : { accountId, second: earliest(second, oauthSecond(model, payload)), seen, cutoff: 'oauth' }
}

function seenOf(record: object): DatedLogin {
  const { idp, oauth, second }: Record<string, unknown> = Object(Reflect.get(record, SEEN))
  return {
    second: typeof second === 'number' ? second : undefined,
    seen: typeof idp === 'number' && typeof oauth === 'number' ? { idp, oauth } : undefined,
  }
}

// The earliest time, because rotation and exchange make a new `iat`. A polled record has an `iat` from before its login.
function oauthSecond(model: string, { iat, iiat, authTime }: AdapterPayload): number | undefined {
  const isPolled = model === 'DeviceCode' || model === 'BackchannelAuthenticationRequest'
  return isPolled ? (authTime ?? iat) : earliest(authTime, iiat, iat)
}

export function earliest(...seconds: (number | undefined)[]): number | undefined {
  const known = seconds.filter((second) => second !== undefined)
  return known.length > 0 ? Math.min(...known) : undefined
}

/**
 * An adapter that deletes the records of an account. With it, ended sessions and tokens are also deleted and counted. Without it, they are
 * dead all the same.
 */
export interface AccountAdapter extends Adapter {
  /**
   * Calls `isEnded` with each record of its model that has this `accountId`. Deletes those for which it is `true`, and returns their number.
   * A call may only look: it is then `false` for each. So the adapter needs an index by account.
   */
  destroyByAccountId(
    accountId: string,
    isEnded: (payload: AdapterPayload) => boolean,
  ): Promise<number>
}

/** Models that name the clients of an account. Sessions and refresh tokens also have the `sid` for the client. One of them may be gone. */
const HOLD_CLIENTS = new Set(['Grant', 'RefreshToken', 'Session'])

/** The `sid` of the sessions at each client. */
export type EndedClientSids = Map<string, Set<string>>

type FoundRecord = { stamp: AccountStamp; clients: [id: string | undefined, sid: unknown][] }

/**
 * The records of one account, in the adapters that can find them. All models are read at once, so that an adapter can join the reads. It
 * throws only if the store cannot be reached. It logs other failures, because the cut-off alone is the guarantee.
 */
export function accountRecords(factories: AdapterFactory[], log: Log, accountId: string) {
  /** Deletes the records that these cut-offs end, without cut-offs none. Returns how many, and all that were found. */
  async function visit(failed: string, ends?: SessionCutoffs) {
    const counts: EndedSessions = { oauth: undefined, idp: undefined }
    const found: FoundRecord[] = []
    const deleting = [...OAUTH_MODELS, ...IDP_MODELS].flatMap((model) => {
      const kind = IDP_MODELS.includes(model) ? 'idp' : 'oauth'
      const isToGo = (payload: AdapterPayload) => {
        const stamp = accountStamp(model, payload)
        if (stamp?.accountId !== accountId) return false
        found.push({ stamp, clients: HOLD_CLIENTS.has(model) ? clientsIn(payload) : [] })
        return isEnded(stamp.cutoff, stamp, ends)
      }
      const adapters = factories
        .map((factory) => factory(model))
        .filter((adapter): adapter is AccountAdapter => 'destroyByAccountId' in adapter)
      return adapters.map(async (adapter) => {
        try {
          const count = await adapter.destroyByAccountId(accountId, isToGo)
          counts[kind] = count + (counts[kind] ?? 0)
        } catch (error) {
          if (isStoreUnavailable(error)) throw error
          log('error', failed, { model, error: String(error) })
        }
      })
    })
    await Promise.all(deleting)
    return { counts, found }
  }

  return {
    /** Only reads. The result is a function: it counts the records that given cut-offs end, and collects their clients. */
    async look() {
      const failed = 'what an ended account has could not be found; its clients are not told'
      const { counts, found } = await visit(failed)
      return (ends: SessionCutoffs) => {
        const ended = endedOf(found, ends)
        for (const { stamp } of ended) counts[stamp.cutoff] = 1 + (counts[stamp.cutoff] ?? 0)
        return { counts, clients: clientsOf(ended) }
      }
    },

    /** Deletes the records that these cut-offs end. Returns the clients of the deleted records. */
    async deleteEnded(ends: SessionCutoffs): Promise<EndedClientSids> {
      const failed = 'ended sessions and tokens could not be deleted; they are dead all the same'
      return clientsOf(endedOf((await visit(failed, ends)).found, ends))
    },
  }
}

const endedOf = (found: FoundRecord[], ends: SessionCutoffs) =>
  found.filter(({ stamp }) => isEnded(stamp.cutoff, stamp, ends))

function clientsIn({ clientId, sid, authorizations = {} }: AdapterPayload) {
  const clients: FoundRecord['clients'] = [[clientId, sid]]
  for (const [id, own] of Object.entries(authorizations)) clients.push([id, own.sid])
  return clients
}

function clientsOf(records: FoundRecord[]): EndedClientSids {
  const clients: EndedClientSids = new Map()
  for (const [id, sid] of records.flatMap((record) => record.clients)) {
    if (id === undefined) continue
    const sids = clients.get(id) ?? new Set()
    clients.set(id, sids)
    if (typeof sid === 'string') sids.add(sid)
  }
  return clients
}
