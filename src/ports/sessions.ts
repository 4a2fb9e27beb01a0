/** Up to when sessions and tokens of an account are dead. `undefined`: nothing of that kind was ever ended. */
export interface SessionCutoffs {
  /** Sessions and interactions of logins that have not seen it are dead. */
  idpAt: Date | undefined
  /** Grants, codes and tokens likewise, and with them the sessions that would make more of them. */
  oauthAt: Date | undefined
  /** Those of logins that began at this time or before, by the clock, are dead. `undefined`: no exact end was asked for. */
  exactIdpAt?: Date
  exactOauthAt?: Date
}

/** Ends what an account has, once. */
export interface SessionEnd {
  /** Tells it from every other end, also from one at the same time; repeated, it has the same. */
  id: string
  at: Date
  /** It ends what began at `at` or before, by the clock, and nothing else. */
  isExact?: boolean
}

/** Keeps the cut-offs of accounts, in `session_cutoffs`. Reads see every write that was answered before, in any process. */
export interface SessionCutoffStore {
  /** `undefined`: nothing was ever ended for this account. */
  read(accountId: string): Promise<SessionCutoffs | undefined>
  /**
   * Effect 3 (`oauth`) or 4 (`idp`). A cut-off only moves forward: to the time of the end, or where it is there or later by a
   * millisecond, so that each end can be told from the one before, whatever the clocks say. If `isExact`, the exact one moves instead, to
   * this time at least. The same end once more changes nothing, so that an effect can be repeated. Answers the cut-offs.
   */
  end(accountId: string, kind: 'idp' | 'oauth', end: SessionEnd): Promise<SessionCutoffs>
}

/** How many records were deleted. `undefined`: the adapter cannot tell; they are dead all the same. */
export type EndedCount = number | undefined

/** How many of each were ended. */
export type EndedSessions = {
  /** Grants, codes and tokens. */
  oauth: EndedCount
  /** Sessions and login results. */
  idp: EndedCount
}

/** What an account has at the provider. What is of a later login stays. */
export interface AccountSessions {
  /** Ends grants, codes and tokens of all logins until now; if `isExact`, of those that began at `at` or before (3.3, effect 3). */
  endOAuthSessions(accountId: string, end: SessionEnd): Promise<EndedCount>
  /** Ends sessions and login results likewise (3.3, effect 4). */
  endIdpSessions(accountId: string, end: SessionEnd): Promise<EndedCount>
}
