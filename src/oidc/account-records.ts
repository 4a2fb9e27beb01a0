import type { Adapter, AdapterPayload } from 'oidc-provider'
import type { SecretBox } from '../crypto/secret-box.ts'
import { isStoreUnavailable } from '../errors.ts'
import { isEnded } from '../ports/login-end.ts'
import type { EndedCount, Log, SessionCutoffs } from '../ports/index.ts'
import { accountStamp } from './account-stamp.ts'
import type { AccountAdapter, StartableAdapterFactory } from './account-adapter.ts'

export type AccountRecords = ReturnType<typeof accountRecords>

/** What the adapters have that find what an account has. */
export function accountRecords(
  { factories, box, log }: { factories: StartableAdapterFactory[]; box: SecretBox; log: Log },
  accountId: string,
  ends: SessionCutoffs,
) {
  const endedIn = (model: string) => (payload: AdapterPayload) => {
    const stamp = accountStamp(model, payload)
    return stamp?.accountId === accountId && isEnded(stamp.kind, stamp, ends)
  }
  const adaptersOf = (model: string) =>
    factories.map((factory) => factory(model, box)).filter(findsAccounts)

  return {
    /** Those that are ended. */
    async readEnded(model: string): Promise<AdapterPayload[]> {
      const isOurs = endedIn(model)
      const found: AdapterPayload[] = []
      const noted = (payload: AdapterPayload) => {
        if (isOurs(payload)) found.push(structuredClone(payload))
        return false
      }
      for (const adapter of adaptersOf(model)) await adapter.destroyByAccountId(accountId, noted)
      return found
    },

    /** Deletes them, as far as that succeeds: the cut-off alone is the guarantee. What came later than that stays. */
    async deleteEnded(models: string[]): Promise<EndedCount> {
      let count: EndedCount
      for (const model of models) {
        for (const adapter of adaptersOf(model)) {
          try {
            count = (count ?? 0) + (await adapter.destroyByAccountId(accountId, endedIn(model)))
          } catch (error) {
            const message =
              'ended sessions and tokens could not be deleted; they are dead all the same'
            log('error', message, { model, error: String(error) })
            // Each further model would wait as long again.
            if (isStoreUnavailable(error)) return count
          }
        }
      }
      return count
    },
  }
}

function findsAccounts(adapter: Adapter): adapter is AccountAdapter {
  return 'destroyByAccountId' in adapter
}
