import type { Adapter, AdapterFactory, AdapterPayload } from 'oidc-provider'
import { isEnded } from '../ports/login-end.ts'
import type { EndedCount, Log, SessionCutoffs } from '../ports/index.ts'
import { accountStamp } from './account-stamp.ts'

/**
 * An adapter that finds what an account has. With it, ended sessions and tokens are also deleted, and counted; without it
 * they are dead all the same.
 */
export interface AccountAdapter extends Adapter {
  /** Deletes the records of the account for which `isEnded` is `true`, and answers how many. Others are only read. */
  destroyByAccountId(
    accountId: string,
    isEnded: (payload: AdapterPayload) => boolean,
  ): Promise<number>
}

/** Models that name the clients of an account. Sessions and refresh tokens also have the `sid` for the client; either may be gone. */
const HOLD_CLIENTS = ['Grant', 'RefreshToken', 'Session']

export type AccountRecords = ReturnType<typeof accountRecords>

/** The records of one account, in the adapters that can find them. All models are read at once, so that an adapter can join the reads. */
export function accountRecords(
  factories: AdapterFactory[],
  log: Log,
  accountId: string,
  ends: SessionCutoffs,
) {
  const adaptersOf = (models: string[]) =>
    models.flatMap((model) => {
      const isOver = (payload: AdapterPayload) => {
        const stamp = accountStamp(model, payload)
        return stamp?.accountId === accountId && isEnded(stamp.cutoff, stamp, ends)
      }
      const adapters = factories.map((factory) => factory(model)).filter(findsAccounts)
      return adapters.map((adapter) => ({ model, adapter, isOver }))
    })

  return {
    /** The clients of the ended records, each with the `sid` of its sessions. */
    async clientsOfEnded() {
      const clients = new Map<string, Set<string>>()
      function note(clientId: string | undefined, sid: unknown) {
        if (clientId === undefined) return
        const sids = clients.get(clientId) ?? new Set()
        clients.set(clientId, sids)
        if (typeof sid === 'string') sids.add(sid)
      }
      const reading = adaptersOf(HOLD_CLIENTS).map(({ adapter, isOver }) =>
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

    /** Deletes the ended records. It may fail for some: the cut-off alone is the guarantee. */
    async deleteEnded(models: string[]): Promise<EndedCount> {
      const deleting = adaptersOf(models).map(async ({ model, adapter, isOver }) => {
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
