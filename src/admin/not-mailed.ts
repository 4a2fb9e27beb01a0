import type { RecordedEvent, User } from '../ports/index.ts'
import { MAIL_KINDS, type LinkKind } from '../ports/mail-kinds.ts'
import type { UserStatus } from './description.ts'

export type Diagnosis = Pick<UserStatus, 'cause' | 'summary' | 'advice'>

/** An account as it is now. */
export interface Present {
  user: User
  /** Whether a reset link goes to verified addresses alone. */
  needsVerified: boolean
}

/** @param asked - a request with the address, which names nobody until it is verified. */
export function unverified({ user, needsVerified }: Present, asked?: RecordedEvent): Diagnosis {
  const { id } = user
  const verify = `${sendLink(user, 'email_verification')}, or, if you know whose it is: account-flows user verify --id ${id}`
  const because = needsVerified
    ? 'it gets no reset link (reset_requires_verified_email)'
    : 'who asks for a reset link types the username'
  const happened = asked && `somebody asked with it at ${timeOf(asked)} and got no mail`
  return {
    cause: 'unverified',
    summary: `The address is not verified: ${happened ?? because}.`,
    advice: needsVerified
      ? `Have it verified before the person asks again: ${verify}`
      : `Have the person ask with the username, or verify it: ${verify}`,
  }
}

/** Of an address that several accounts have verified: it names none of them. */
export function shared(asked?: RecordedEvent): Diagnosis {
  const because = asked
    ? `somebody asked with it at ${timeOf(asked)} and got no mail`
    : 'who asks for a reset link types the username'
  return {
    cause: 'ambiguous',
    summary: `Several accounts have this address verified: ${because}.`,
    advice:
      'Have the person ask with the username, or give each account an address of its own where your users are.',
  }
}

/** Of a request that got no mail for a reason that is gone. */
export function changedSince(
  event: RecordedEvent,
  { user }: Present,
  was: string,
  kind: LinkKind = 'password_reset',
): Diagnosis {
  const again = user.emailVerified ? 'ask again' : 'ask again with the username'
  return {
    cause: 'changed',
    summary: `The last request, at ${timeOf(event)}, got no mail: ${was}. That has changed since.`,
    advice: `Have the person ${again}, or send a link: ${sendLink(user, kind)}`,
  }
}

export const sendLink = ({ id }: User, kind: LinkKind) =>
  `account-flows ${MAIL_KINDS[kind].link.command} --id ${id}`

export const timeOf = ({ at }: RecordedEvent) => at.toISOString()
