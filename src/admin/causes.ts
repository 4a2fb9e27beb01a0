/** Why a mail is missing, in words for support: what each cause is, and what to do next. `diagnosis.ts` finds the cause. */
import * as z from 'zod'
import type { RecordedEvent, User } from '../contract/index.ts'
import { MAIL_KINDS, type LinkKind } from '../contract/mail-kinds.ts'
import { hashOf } from '../contract/users.ts'
import { atStep, type MailFault } from '../errors.ts'
import { elsewhereOf, type ResetAnswer } from '../flows/account.ts'
import type { MailJobStatus } from '../store/index.ts'
import { defined } from '../store/kind.ts'
import { text } from './schema.ts'

/** What is known about an account whose mail is missing. The words of a cause are made from it. */
export interface Facts {
  user: User
  /** What a request for a reset gets. */
  answer: ResetAnswer
  /** A mailed link verifies only where a login waits, so it is of no use to a person who cannot sign in. */
  needsLogin: boolean
  /** `false`: no mail server is set, and a development mailbox takes all mails. */
  isDelivered: boolean
  /** What ended the request or the mail. `undefined`: the account is described as it is now. */
  event?: RecordedEvent
  /** Of the mail in question; a reset by default. */
  kind?: LinkKind | undefined
  /** Of that mail. `undefined`: it is gone. */
  job?: MailJobStatus | undefined
}

export type Words = readonly [summary: string, advice: string]

/** The facts, the time of the event, the name of the mail, whether another one would have no link, and the command that sends it. */
type Told = Facts & { at: string; mail: string; isLinkless: boolean; send: string }

const sendLink = (kind: LinkKind, { id }: User) =>
  `account-flows ${MAIL_KINDS[kind].link.command} --id ${id}`

const mended = (how: string) => `${how} in your user store. Then ask the person to try again.`

const otherWay = (user: User) =>
  `Ask the person to sign in the other way, for example with ${elsewhereOf(user) ?? 'Google'}. Or let them choose a password: ${sendLink('invitation', user)}`

const WORDS = {
  disabled: () => ['The account is disabled, so it gets no mail.', mended('Enable it')],
  no_address: () => [
    'The account has no e-mail address, so it gets no mail.',
    mended('Give it one'),
  ],
  bad_address: ({ event, mail, at }) => [
    event
      ? `The last ${mail} was not sent (${at}): no mail could be sent to its address.`
      : 'The address is not one plain e-mail address, so no mail can be sent to it.',
    mended(event ? 'Correct the address' : 'Correct it'),
  ],
  no_password: ({ user, answer }) => {
    const gets: Partial<Record<ResetAnswer, string>> = {
      link: ': a request for a reset mails a link to choose one.',
      elsewhere: `: a request for a reset mails that it signs in with ${elsewhereOf(user)}, and no link.`,
    }
    return [
      `The account has no password${gets[answer] ?? ', so it gets no reset link.'}`,
      otherWay(user),
    ]
  },
  has_password: ({ user }) => [
    'The account has a password: it gets no invitation.',
    `Have the person sign in, or send a reset link: ${sendLink('password_reset', user)}`,
  ],
  unverified: (told) => {
    const { user, answer, needsLogin, event } = told
    const isNeeded = answer === 'not_verified'
    const why =
      hashOf(user) === undefined ? 'the account has no password' : 'reset_requires_verified_email'
    const first = isNeeded
      ? 'Verify it before the person asks again'
      : 'Ask the person to type the username, or verify the address'
    const byLink = needsLogin ? '' : `: ${sendLink('email_verification', user)}`
    return [
      `The address is not verified: ${isNeeded && !event ? `it gets no reset link (${why})` : askedWith(told)}.`,
      `${first}${byLink}. If you are sure that the address belongs to the person: account-flows user verify --id ${user.id}`,
    ]
  },
  other_address: () => [
    'The person typed another address on the page that waits. Until the mail to that address is used, older links do not work, and only notices are sent to the old address.',
    'Ask the person to use the newest mail at that address, or to sign in again and correct it. Do not verify the address of the account: the person says that it is wrong.',
  ],
  ambiguous: (told) => [
    `Several accounts have this verified address: ${askedWith(told)}.`,
    'Ask the person to type the username. Or give each account its own address.',
  ],
  verified: () => [
    'The address is verified already, so it gets no verification mail.',
    'Ask the person to sign in.',
  ],
  changed: ({ event, user, at, send, isLinkless }) => {
    const hadMail = hadNoLink(event)
    const reason = hadMail ? 'no_password' : (event?.reason ?? '')
    const was = WAS_SO.get(reason) ?? 'no account was found by its address'
    const again = user.emailVerified ? 'try again' : 'try again with the username'
    return [
      `The last request, at ${at}, got no ${hadMail ? 'link' : 'mail'}: ${was}. This is no longer so.`,
      isLinkless ? otherWay(user) : `Ask the person to ${again}, or send a link: ${send}`,
    ]
  },
  limited: ({ at }) => [
    `The last request, at ${at}, got no mail: the account had too many mails recently.`,
    'Ask the person to use the newest mail, or to try again later (mails_per_account_per_hour, resend_cooldown).',
  ],
  blocked: ({ user, at, send }) => [
    `The owner said "This wasn't me" of a mail at ${at}: the password is blocked, and no login with it succeeds.`,
    `Make sure that ${user.email ?? 'the address to come'} is the person's own mailbox, and that only the person reads it. Then let the person set a new password: ${send}`,
  ],
  refused: failedWords,
  mail_server_down: (told) => {
    if (told.event) return failedWords(told)
    return told.isDelivered
      ? [
          'SMTP is not configured, or its key is missing: all mails wait.',
          'Run account-flows doctor: it says what to set with account-flows settings set.',
        ]
      : [
          'No mail server is set: all mails go into the development mailbox of this server.',
          'Read them there. Or set a mail server, and check it with account-flows doctor: account-flows settings set smtp_host=HOST smtp_port=587 smtp_from=ADDRESS',
        ]
  },
  waiting: ({ job }) => [
    `A mail, requested at ${job?.requestedAt.toISOString()}, waits to be sent.`,
    'Look again in a minute. If it still waits, run account-flows doctor.',
  ],
  sent: ({ event, user, mail, at }) => {
    const { message_id: messageId, queue_id: queueId } = event?.details ?? {}
    const ids = Object.entries(defined({ 'Message-ID': messageId, 'queue id': queueId }))
    const named = ids.map(([name, id]) => `${name} ${String(id)}`).join(', ')
    const find = named && ` The operator of the mail server finds it by ${named}.`
    return [
      `The last ${mail} was sent at ${at}: the mail server took it.`,
      `Ask the person to look into the spam folder of ${user.email ?? ''}.${find}`,
    ]
  },
  ended: ({ event, mail, at, send, isLinkless }) =>
    event?.reason === 'denied'
      ? [
          `The last request, at ${at}, was denied by your own check (beforeForgotPassword).`,
          `Look at this check${isLinkless ? '.' : `, or send a link: ${send}`}`,
        ]
      : [
          `The last ${mail} was not sent (${event?.reason ?? 'unknown reason'}, ${at}).`,
          `Check the service with account-flows doctor. Then send a new one: ${send}`,
        ],
  not_asked: ({ send }) => [
    'The audit log has no request for a mail to this account.',
    `Ask the person to try again, or send a link: ${send}`,
  ],
} satisfies Record<string, (told: Told) => Words>

/** What was so when a request got no mail, by its reason. */
export const WAS_SO = new Map([
  ['not_verified', 'the address was not verified'],
  ['already_verified', 'the address was verified already'],
  ['other_address', 'the account waited for another address'],
  ['no_password', 'the account had no password, and could not choose one'],
  ['has_password', 'the account had a password'],
  ['disabled', 'the account was disabled'],
  ['no_address', 'the account had no e-mail address'],
  ['bad_address', 'the address was not one plain e-mail address'],
])

const askedWith = ({ event, at }: Told) =>
  event
    ? `a request with it at ${at} got no mail`
    : 'for a reset link, the person must type the username'

export type Cause = keyof typeof WORDS

export const Diagnosis = z.strictObject({
  cause: z
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the names of the table are its type
    .enum(Object.keys(WORDS) as Cause[])
    .describe(
      'The outcome of the newest mail, or why there is none. refused: the mail server refused this mail. mail_server_down: it accepts no mail. ambiguous: several accounts have this verified address. blocked: "This wasn\'t me" was pressed in a mail, and no login with the password succeeds. changed: the reason is gone.',
    ),
  summary: text.describe('The cause in one sentence, with what the mail server said.'),
  advice: text.describe('What to do next.'),
})

export function diagnosisOf(cause: Cause, facts: Facts) {
  const { user, event, kind = 'password_reset' } = facts
  const isLinkless = kind === 'password_reset' && facts.answer === 'elsewhere'
  const mail = isLinkless ? 'mail about a reset' : MAIL_KINDS[kind].link.called
  const told = { ...facts, mail, isLinkless, at: String(event?.at.toISOString()) }
  const [summary, advice] = WORDS[cause]({ ...told, send: sendLink(kind, user) })
  return { cause, summary, advice }
}

export const hadNoLink = (event?: RecordedEvent): boolean => event?.details?.['link'] === 'none'

/** Whether the mail server answered so to this mail. */
export const isAnswer = ({ step = '', code = '' }: Partial<MailFault>) =>
  /^\d/.test(code) && ['RCPT TO', 'DATA'].includes(step)

/** The words for a mail that the mail server, or the transport in its place, did not accept. */
function failedWords(told: Told): Words {
  const { event, user } = told
  const fault: Partial<MailFault> = event?.details ?? {}
  const { step, code = 'unknown reason', reply } = fault
  const isTransport = step === 'transport'
  const isForGood = event?.reason === 'ERR_MAIL_REFUSED'
  const mail = `the last ${told.mail}`
  const failed = isAnswer(fault) ? `does not accept ${mail} now` : `could not be used for ${mail}`
  const later = isTransport ? `did not accept ${mail}` : failed
  const said = reply === undefined ? code : `"${reply.replaceAll('"', "'")}"`
  const at = step === undefined || isTransport ? '' : ` ${atStep({ step })}`
  // RFC 3463: x.1.x is about an address, all else is not.
  const isOfAddress = !/^\d{3} \d\.(?!1\.)/.test(code)
  const check = isOfAddress ? 'Check the address. ' : 'Ask the operator of the mail server. '
  const look = isTransport || (reply === undefined && isAnswer(fault)) ? 'mail test' : 'doctor'
  return [
    `The ${isTransport ? 'transport' : 'mail server'} ${isForGood ? `refused ${mail} for good` : later}: ${said}${at}.`,
    `${isForGood && !isTransport ? check : ''}See account-flows ${look} --to ${user.email ?? ''}. ${nextOf(told)}`,
  ]
}

function nextOf({ job, send }: Told): string {
  const next = job?.state === 'waiting' ? job.nextAttemptAt : undefined
  if (next) return `The next attempt is at ${next.toISOString()}.`
  const again = job?.state === 'dead' ? `account-flows outbox retry ${job.id}` : send
  return `When this is fixed: ${again}`
}
