import type { Adapter, AdapterFactory, AdapterPayload } from 'oidc-provider'
import { isEnded } from '../ports/login-end.ts'
import type { EndedCount, Log, SessionCutoffs } from '../ports/index.ts'
import { accountStamp } from './account-stamp.ts'

/**
 * An adapter that finds what an account has. With it, ended sessions and tokens are also deleted, and counted; without it
 * they are dead all the same.
 */
export interface AccountAdapter extends Adapter {
  /** Deletes those records of the account that `isEnded`. Answers how many. To look through them, it is called with one that answers `false`. */
  destroyByAccountId(
    accountId: string,
    isEnded: (payload: AdapterPayload) => boolean,
  ): Promise<number>
}

/** Where the clients of an account are. A session and a refresh token also have the `sid` that a client is told; either may be gone. */
const HOLD_CLIENTS = ['Grant', 'RefreshToken', 'Session']

export type AccountRecords = ReturnType<typeof accountRecords>

/** What the adapters have that find what an account has. All models are asked at once: it may be one look for all. */
export function accountRecords(
  factories: AdapterFactory[],
  log: Log,
  accountId: string,
  ends: SessionCutoffs,
) {
  const placesOf = (models: string[]) =>
    models.flatMap((model) => {
      const isOver = (payload: AdapterPayload) => {
        const stamp = accountStamp(model, payload)
        return stamp?.accountId === accountId && isEnded(stamp.cutoff, stamp, ends)
      }
      const adapters = factories.map((factory) => factory(model)).filter(findsAccounts)
      return adapters.map((adapter) => ({ model, adapter, isOver }))
    })

  return {
    /** The clients of those that are ended, and the sessions that each client knows. */
    async clientsOfEnded() {
      const clients = new Map<string, Set<string>>()
      function note(clientId: string | undefined, sid: unknown) {
        if (clientId === undefined) return
        const sids = clients.get(clientId) ?? new Set()
        clients.set(clientId, sids)
        if (typeof sid === 'string') sids.add(sid)
      }
      const reading = placesOf(HOLD_CLIENTS).map(({ adapter, isOver }) =>
        adapter.destroyByAccountId(accountId, (payload) => {
          if (!isOver(payload)) return false
          const { clientId, sid, authorizations = {} } = payload
          note(clientId, sid)
          for (const [client, { sid }] of Object.entries(authorizations)) note(client, sid)
          return false
        }),
      )
      await Promise.all(reading)
      return clients
    },

    /** Deletes them, as far as that succeeds: the cut-off alone is the guarantee. What came later than that stays. */
    async deleteEnded(models: string[]): Promise<EndedCount> {
      const deleting = placesOf(models).map(async ({ model, adapter, isOver }) => {
        try {
          return [await adapter.destroyByAccountId(accountId, isOver)]
        } catch (error) {
          const message =
            'ended sessions and tokens could not be deleted; they are dead all the same'
          log('error', message, { model, error: String(error) })
          return []
        }
      })
      const known = (await Promise.all(deleting)).flat()
      return known.length > 0 ? known.reduce((sum, count) => sum + count) : undefined
    },
  }
}

function findsAccounts(adapter: Adapter): adapter is AccountAdapter {
  return 'destroyByAccountId' in adapter
}
