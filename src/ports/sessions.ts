/** `undefined`: nothing of that kind was ever ended. */
export interface SessionCutoffs {
  /** Sessions and interactions of logins that have not seen it are dead. */
  idpAt: Date | undefined
  /** Grants, codes and tokens likewise. */
  oauthAt: Date | undefined
  /** Those of logins that began at this time or before, by the clock, are dead. `undefined`: no exact end was asked for. */
  exactIdpAt?: Date
  exactOauthAt?: Date
}

/** `session_cutoffs`. Reads see every write that was answered before, in any process. */
export interface SessionCutoffStore {
  /** `undefined`: nothing was ever ended for this account. */
  read(accountId: string): Promise<SessionCutoffs | undefined>
  /**
   * Effect 3. A cut-off only moves forward: to this time, or where it is there or later by a millisecond, so that each end can be told
   * from the one before, whatever the clocks say. If `isExact`, the exact one moves instead, to this time at least. The same time once
   * more changes nothing, so that an effect can be repeated. Answers the cut-offs.
   */
  endOAuthSessions(accountId: string, at: Date, isExact?: boolean): Promise<SessionCutoffs>
  /** Effect 4. Likewise. */
  endIdpSessions(accountId: string, at: Date, isExact?: boolean): Promise<SessionCutoffs>
}

/** How many records were deleted. `undefined`: the adapter cannot tell; they are dead all the same. */
export type EndedCount = number | undefined

/** A type, and no interface, so that it is one of the details of events. */
export type EndedSessions = {
  /** Grants, codes and tokens. */
  oauth: EndedCount
  /** Sessions and login results. */
  idp: EndedCount
}

/** What an account has at the provider. What is of a later login stays. */
export interface AccountSessions {
  /** Ends grants, codes and tokens of all logins until now; if `isExact`, of those that began at `at` or before (3.3, effect 3). */
  endOAuthSessions(accountId: string, at: Date, isExact?: boolean): Promise<EndedCount>
  /** Ends sessions and login results likewise (3.3, effect 4). */
  endIdpSessions(accountId: string, at: Date, isExact?: boolean): Promise<EndedCount>
}
