import type { Adapter, AdapterFactory, AdapterPayload } from 'oidc-provider'
import { isEnded } from '../ports/login-end.ts'
import type { EndedCount, Log, SessionCutoffs } from '../ports/index.ts'
import { accountStamp } from './account-stamp.ts'
import type { AccountAdapter } from './account-adapter.ts'

export type AccountRecords = ReturnType<typeof accountRecords>

type ClientHolder = Pick<AdapterPayload, 'clientId' | 'sid' | 'authorizations'>

/** What the adapters have that find what an account has. All models are asked at once: it may be one look for all. */
export function accountRecords(
  { factories, log }: { factories: AdapterFactory[]; log: Log },
  accountId: string,
  ends: SessionCutoffs,
) {
  const endedIn = (model: string) => (payload: AdapterPayload) => {
    const stamp = accountStamp(model, payload)
    return stamp?.accountId === accountId && isEnded(stamp.kind, stamp, ends)
  }
  const ofAll = <T>(
    models: string[],
    work: (model: string, adapter: AccountAdapter) => Promise<T>,
  ) =>
    Promise.all(
      models.flatMap((model) =>
        factories
          .map((factory) => factory(model))
          .filter(findsAccounts)
          .map((adapter) => work(model, adapter)),
      ),
    )

  return {
    /** Of those that are ended, where their clients are. */
    async readEnded(models: string[]): Promise<ClientHolder[]> {
      const found: ClientHolder[] = []
      await ofAll(models, (model, adapter) =>
        adapter.destroyByAccountId(accountId, (payload) => {
          const { clientId, sid, authorizations } = payload
          if (endedIn(model)(payload))
            found.push(structuredClone({ clientId, sid, authorizations }))
          return false
        }),
      )
      return found
    },

    /** Deletes them, as far as that succeeds: the cut-off alone is the guarantee. What came later than that stays. */
    async deleteEnded(models: string[]): Promise<EndedCount> {
      const counts = await ofAll(models, async (model, adapter) => {
        try {
          return [await adapter.destroyByAccountId(accountId, endedIn(model))]
        } catch (error) {
          const message =
            'ended sessions and tokens could not be deleted; they are dead all the same'
          log('error', message, { model, error: String(error) })
          return []
        }
      })
      const known = counts.flat()
      return known.length > 0 ? known.reduce((sum, count) => sum + count) : undefined
    },
  }
}

function findsAccounts(adapter: Adapter): adapter is AccountAdapter {
  return 'destroyByAccountId' in adapter
}
