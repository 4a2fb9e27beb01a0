import type { MailKind } from './mail-kinds.ts'
import type { RequestOrder } from './requests.ts'

/**
 * What "This wasn't me" did. `stopped`: the links of that kind are void, and no login waits. `secured`: the password is blocked, and
 * everything is ended. `later`: a link that was mailed later set a password, so nothing was done. `unverified`: so is the address, and
 * everything is ended. `signed_out`: everything is ended, and nothing else could be done. `done`: it was done before.
 */
export type DisownedOutcome = 'stopped' | 'secured' | 'later' | 'unverified' | 'signed_out' | 'done'

/** What the event `mail_disowned` tells. */
export type DisownedDetails = {
  /** Its kind. */
  mail: MailKind
  password: 'blocked' | 'kept'
  done: DisownedOutcome
  /** Names the blocked password. */
  blocked?: string
}

/** A mail, by the token behind its "This wasn't me", with the request that it was sent for. */
export interface NotMeToken extends RequestOrder {
  /** Lower-case hex SHA-256 of the 43 characters of the raw token. */
  tokenHash: string
  kind: MailKind
  userId: string
  /** `undefined`: the mail is a notice, and has none with a token. */
  linkId: string | undefined
  /** Where the mail went. */
  email: string
  /** The language of the mail (BCP 47). */
  locale: string
  createdAt: Date
  /** The record is removed then or a little later. */
  expiresAt: Date
  /** When it had done its work. `undefined`: not yet. */
  usedAt: Date | undefined
}

/** Keeps the tokens of "This wasn't me", in `not_me_tokens`: one for each attempt to send a mail. */
export interface NotMeTokenStore {
  issue(token: Omit<NotMeToken, 'usedAt'>): Promise<void>
  /** `undefined`: there is no such token. A record that no token of ours can be is as if it were not there. */
  find(tokenHash: string): Promise<NotMeToken | undefined>
  /** Notes the hash that takes the place of a password, in one step. Answers the one that was noted first; also where the record is gone. */
  block(tokenHash: string, hash: string): Promise<string>
  /** Sets `usedAt`, in one step. Repeated, it changes nothing. */
  use(tokenHash: string, at: Date): Promise<void>
}
