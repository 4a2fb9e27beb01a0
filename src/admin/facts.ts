import type { RecordedEvent, User } from '../contract/index.ts'
import { MAIL_KINDS, type LinkKind } from '../contract/mail-kinds.ts'
import type { MailJobStatus } from '../store/index.ts'

/** What is known of an account where a mail is missed: the words of a cause are made of it. */
export interface Facts {
  user: User
  /** Whether a reset link goes to verified addresses alone; no by default. */
  needsVerified?: boolean
  /** The event that ended the request or the mail. `undefined`: the account is described as it is now. */
  event?: RecordedEvent
  /** Of the mail that is meant; a reset by default. */
  kind?: LinkKind
  /** What is left of that mail. `undefined`: it is gone. */
  job?: MailJobStatus | undefined
}

export type Words = readonly [summary: string, advice: string]

export const timeOf = ({ event }: Facts) => event?.at.toISOString()

export const nameOf = ({ kind = 'password_reset' }: Facts) => MAIL_KINDS[kind].link.called

/** The command that sends a link to the account. */
export const sendLink = ({ user, kind = 'password_reset' }: Pick<Facts, 'user' | 'kind'>) =>
  `account-flows ${MAIL_KINDS[kind].link.command} --id ${user.id}`
