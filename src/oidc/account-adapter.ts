import type { Adapter, AdapterPayload } from 'oidc-provider'

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
