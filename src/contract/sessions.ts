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
