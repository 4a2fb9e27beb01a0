import type { Adapter, AdapterPayload } from 'oidc-provider'
import type { SecretBox } from '../crypto/secret-box.ts'

/**
 * An adapter that finds what an account has. With it, ended sessions and tokens are also deleted, and counted; without it
 * they are dead all the same.
 */
export interface AccountAdapter extends Adapter {
  /** Deletes those records of the account that `isEnded`. Answers how many. */
  destroyByAccountId(
    accountId: string,
    isEnded: (payload: AdapterPayload) => boolean,
  ): Promise<number>
}

/**
 * An adapter factory that may need to start first, for example to create indexes. It may seal its records with the secrets of
 * the flows.
 */
export interface StartableAdapterFactory {
  (model: string, box: SecretBox): Adapter
  start?(box: SecretBox): Promise<void>
}
