import type { SignedOutApps } from '../views/page-locals.ts'
import type { CarriedParameters, NoMail, User } from '../contract/index.ts'
import type { MailJob } from '../store/index.ts'
import type { MailParts } from '../jobs/parts.ts'

/** What is particular to one kind of mail; looking up, sending and giving up are the same for all. A kind leaves out what it has no need of. */
export interface MailFlow {
  /** Finds whom a typed identifier means. Left out: it is never asked for by one. */
  findUser?(parts: MailParts, identifier: string): Promise<User | 'unknown' | 'ambiguous'>
  /** Why this account gets no such mail. `undefined`: it gets one. */
  refuses?(user: User, parts: MailParts): NoMail | undefined
  /**
   * Makes the link of the mail, and stores the hash of its token. `superseded`: the user has asked for another one since.
   *
   * @param carried - what is genuine of it.
   */
  mint(
    parts: MailParts,
    job: MailJob,
    recipient: Recipient,
    carried: CarriedParameters,
  ): Promise<MailLink | 'superseded'>
}

export interface Recipient {
  user: User
  /** The stored address, never the typed one. */
  email: string
}

/** The link of one mail. The only place where a raw token is (5.5). */
export interface MailLink {
  url: string
  /** `undefined`: it leads to a page that anybody may open. */
  token: { id: string; lifetimeMs: number } | undefined
  /** The login that waits for it. Left out: none does. */
  login?: { code: string; at: Date }
  /** It tells of a password that the host changed. */
  isByHost?: boolean
  /** Left out but of a notice: the apps that the account was signed in to. */
  apps?: SignedOutApps | undefined
  /** The language of the mail, and of the pages that the link opens. */
  locale: string
}
