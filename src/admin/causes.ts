import * as z from 'zod'
import type { RecordedEvent, User } from '../ports/index.ts'
import { MAIL_KINDS, type LinkKind } from '../ports/mail-kinds.ts'
import { isMailAddress } from '../settings/mail-address.ts'
import { text } from './schema.ts'

/** Why somebody gets no mail, in one sentence, and what to do next in another. */
export type Diagnosis = z.infer<typeof Diagnosis>
export const Diagnosis = z.strictObject({
  cause: z
    .enum([
      'disabled',
      'no_address',
      'bad_address',
      'no_password',
      'has_password',
      'unverified',
      'ambiguous',
      'verified',
      'changed',
      'limited',
      'blocked',
      'refused',
      'mail_server_down',
      'waiting',
      'sent',
      'ended',
      'not_asked',
    ])
    .describe(
      'The outcome of the newest mail, or why there is none. refused: the mail server refused this mail. mail_server_down: it accepts no mail. ambiguous: several accounts have this verified address. blocked: somebody pressed "This wasn\'t me" in a mail, and nobody can sign in with the password. changed: the reason is gone.',
    ),
  summary: text.describe('The cause in one sentence, with what the mail server said.'),
  advice: text.describe('What to do next.'),
})

/** An account as it is now. */
export interface Present {
  user: User
  /** Whether a reset link goes to verified addresses alone. */
  needsVerified: boolean
}

export const NOT_CONFIGURED: Diagnosis = {
  cause: 'mail_server_down',
  summary: 'SMTP is not configured, or its key is missing: all mails wait.',
  advice: 'Run account-flows doctor: it says what to set with account-flows settings set.',
}

/** Why no mail at all goes to the account, whoever asks; the gravest first. */
export function noMailAtAll({ disabled, email }: User): Diagnosis[] {
  const found: Diagnosis[] = []
  const add = (cause: Diagnosis['cause'], summary: string, mend: string) => {
    const advice = `${mend} in your user store. Then ask the person to try again.`
    found.push({ cause, summary, advice })
  }
  if (disabled) add('disabled', 'The account is disabled, so it gets no mail.', 'Enable it')
  if (email === undefined) {
    add('no_address', 'The account has no e-mail address, so it gets no mail.', 'Give it one')
  } else if (!isMailAddress(email)) {
    const summary = 'The address is not one plain e-mail address, so no mail can be sent to it.'
    add('bad_address', summary, 'Correct it')
  }
  return found
}

export const noPassword = (user: User): Diagnosis => ({
  cause: 'no_password',
  summary: 'The account has no password, so it gets no reset link.',
  advice: `Ask the person to sign in the other way, for example with Google. Or let them choose a password: ${sendLink(user, 'invitation')}`,
})

export const hasPassword = (user: User): Diagnosis => ({
  cause: 'has_password',
  summary: 'The account has a password: it gets no invitation.',
  advice: `Have the person sign in, or send a reset link: ${sendLink(user, 'password_reset')}`,
})

export const VERIFIED: Diagnosis = {
  cause: 'verified',
  summary: 'The address is verified already, so it gets no verification mail.',
  advice: 'Ask the person to sign in.',
}

/** @param asked - a request with the address, which names nobody until it is verified. */
export function unverified({ user, needsVerified }: Present, asked?: RecordedEvent): Diagnosis {
  const { id } = user
  const verify = `${sendLink(user, 'email_verification')}. If you are sure that the address belongs to the person: account-flows user verify --id ${id}`
  const isHeld = needsVerified && !asked
  const because = isHeld
    ? 'it gets no reset link (reset_requires_verified_email)'
    : askedWith(asked)
  return {
    cause: 'unverified',
    summary: `The address is not verified: ${because}.`,
    advice: needsVerified
      ? `Verify it before the person asks again: ${verify}`
      : `Ask the person to type the username, or verify the address: ${verify}`,
  }
}

/** Of an address that several accounts have verified: it names none of them. */
export function shared(asked?: RecordedEvent): Diagnosis {
  return {
    cause: 'ambiguous',
    summary: `Several accounts have this verified address: ${askedWith(asked)}.`,
    advice: 'Ask the person to type the username. Or give each account its own address.',
  }
}

/** Of a request that got no mail for a reason that is gone. */
export function changedSince(
  event: RecordedEvent,
  { user }: Present,
  was: string,
  kind: LinkKind = 'password_reset',
): Diagnosis {
  const again = user.emailVerified ? 'try again' : 'try again with the username'
  return {
    cause: 'changed',
    summary: `The last request, at ${timeOf(event)}, got no mail: ${was}. This is no longer so.`,
    advice: `Ask the person to ${again}, or send a link: ${sendLink(user, kind)}`,
  }
}

/** Of a password that "This wasn't me" blocked, while nobody set another. */
export const blocked = (event: RecordedEvent, user: User): Diagnosis => ({
  cause: 'blocked',
  summary: `The owner said "This wasn't me" of a mail at ${timeOf(event)}: the password is blocked, and signs nobody in.`,
  advice: `Make sure that ${user.email ?? 'the address to come'} is the person's own mailbox, and that nobody else reads it. Then let the person set a new password: ${sendLink(user, 'password_reset')}`,
})

/** Of a mail whose request ended for another reason. */
export function ended(event: RecordedEvent, user: User, kind: LinkKind): Diagnosis {
  const { reason = 'unknown reason' } = event
  const mail = `The last ${nameOf(kind)} was not sent`
  if (reason === 'ERR_MAIL_ADDRESS') {
    return {
      cause: 'bad_address',
      summary: `${mail} (${timeOf(event)}): no mail could be sent to its address.`,
      advice: 'Correct the address in your user store. Then ask the person to try again.',
    }
  }
  return {
    cause: 'ended',
    summary: `${mail} (${reason}, ${timeOf(event)}).`,
    advice: `Check the service with account-flows doctor. Then send a new link: ${sendLink(user, kind)}`,
  }
}

export function sent(event: RecordedEvent, { email = '' }: User, kind: LinkKind): Diagnosis {
  const { message_id: messageId, queue_id: queueId } = event.details ?? {}
  const ids = [
    ...(messageId === undefined ? [] : [`Message-ID ${String(messageId)}`]),
    ...(queueId === undefined ? [] : [`queue id ${String(queueId)}`]),
  ]
  const find =
    ids.length > 0 ? ` The operator of the mail server finds it by ${ids.join(', ')}.` : ''
  return {
    cause: 'sent',
    summary: `The last ${nameOf(kind)} was sent at ${timeOf(event)}: the mail server took it.`,
    advice: `Ask the person to look into the spam folder of ${email}.${find}`,
  }
}

const askedWith = (asked: RecordedEvent | undefined) =>
  asked
    ? `somebody typed it at ${timeOf(asked)} and got no mail`
    : 'for a reset link, the person must type the username'

export const nameOf = (kind: LinkKind) => MAIL_KINDS[kind].link.called

export const sendLink = ({ id }: User, kind: LinkKind) =>
  `account-flows ${MAIL_KINDS[kind].link.command} --id ${id}`

export const timeOf = ({ at }: RecordedEvent) => at.toISOString()
