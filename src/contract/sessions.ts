/** Up to when sessions and tokens of an account are dead. `undefined`: nothing of that kind was ever ended. */
export interface SessionCutoffs {
  /** Sessions and interactions of a login that has not seen this cut-off are dead. */
  idpAt: Date | undefined
  /** The same for grants, codes and tokens, and for the sessions that would make more of them. */
  oauthAt: Date | undefined
  /** All of logins that began at this time or before, by the clock, is dead. Left out: there was no exact end. */
  exactAt?: Date
}

/** Ends what an account has, once. */
export interface SessionEnd {
  /** Different for each end, also for two at the same time. A repeated end has the same id. */
  id: string
  at: Date
  /** For sessions and login results. Left out: `at`. */
  idpAt?: Date
  /** It ends only what began at `at` or before, by the clock. */
  isExact?: boolean
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

/** How many clients the account was signed in to. */
export interface EndedClients {
  /** They are told to sign the person out. */
  told: number
  /** They cannot be told: the person has to sign out there. */
  untold: number
}

/** What `endSessions` ended. */
export type EndedAccount = EndedSessions & {
  /** Left out if it is not known, for example because the provider tells no clients. */
  clients?: EndedClients
}

/** The sessions of an account at the provider. Those of a later login stay. */
export interface AccountSessions {
  /**
   * Ends what all logins until now have: grants, codes and tokens (3.3, effect 3), sessions and login results (effect 4). With
   * `isExact`: of those that began at `at` or before.
   */
  end(accountId: string, end: SessionEnd): Promise<EndedSessions>
  /** The same, but the records are only looked at. `clear` deletes them later. */
  cutOff(accountId: string, end: SessionEnd): Promise<CutOff>
}

/** What is dead by now, and not deleted yet. */
export interface CutOff {
  ended: EndedSessions
  clear(): Promise<void>
}

/** A session of a browser whose account is about to be ended, with that session. */
export interface LiveSession {
  /**
   * End sessions and login results at this time: one millisecond after the cut-off that the session has seen. The new session
   * has seen an end of exactly then. Any other end, earlier or later, moves the cut-off past that, and so ends it.
   */
  endsAt: Date
  /**
   * Makes this browser a new session of the same login, and sets its cookie. Call it after both ends. Where that fails, it logs why, and
   * the browser is signed out like the others.
   */
  renew(): Promise<void>
}
