import * as z from 'zod'
import type { User } from '../contract/index.ts'
import type { Token } from '../store/index.ts'
import { hasSamePassword, isVerified, wasVoided, whyNoInvitation } from '../flows/account.ts'
import { MAIL_KINDS } from '../contract/mail-kinds.ts'
import { AuditEvent } from './audit.ts'
import { diagnosisOf } from './causes.ts'
import type { Words } from './facts.ts'
import { LINK_KIND } from './link-state.ts'
import type { PastedLink } from './pasted-link.ts'
import { list, object, optional, text, time } from './schema.ts'

export type LinkExplanation = z.infer<typeof LinkExplanation>
export const LinkExplanation = object('What a link is, and what became of it.', {
  kind: optional(LINK_KIND),
  state: z
    .enum(['live', 'used', 'superseded', 'expired', 'void', 'altered', 'unknown', 'not_a_link'])
    .describe(
      'void: the account changed since; altered: its parameters are not those that were signed.',
    ),
  summary: text.describe('One sentence for the person who asks.'),
  advice: text.describe('What to do.'),
  signature: optional(z.enum(['valid', 'invalid', 'missing']), 'Of a verification link.'),
  altered: list(text, 'Names of the parameters that were changed after the mail was sent.'),
  account_id: optional(text),
  client_id: optional(text),
  created_at: optional(time),
  expires_at: optional(time),
  used_at: optional(time),
  invalidated_at: optional(time),
  completed_at: optional(time),
  mail_id: optional(text),
  history: list(AuditEvent, 'What was recorded since it was made, oldest first.'),
})

export interface LinkFacts {
  /** `undefined`: it is none of ours. */
  link?: PastedLink
  /** `altered`: alive, and its parameters are not those that were signed; `unknown`: no token of ours, or gone for a week. */
  state: LinkExplanation['state']
  altered: string[]
  token?: Token
  user?: User | undefined
  /** The newest token of the account and kind, where it is another one. */
  newer?: Token | undefined
}

const TOKEN_LENGTH = 43

export function linkWords(facts: LinkFacts): Pick<LinkExplanation, 'summary' | 'advice'> {
  const { link, token, user } = facts
  const { kind = 'password_reset' } = link ?? {}
  const { command } = MAIL_KINDS[kind].link
  const [summary, advice] = WORDS[facts.state](facts, `Send a new link: account-flows ${command}.`)
  if (kind === 'invitation' && user && !user.disabled && whyNoInvitation(user)) {
    return { summary, advice: diagnosisOf('has_password', { user }).advice }
  }
  if (kind !== 'email_verification' || !token || !isVerified(token, user))
    return { summary, advice }
  return {
    summary: `${summary} The address is verified already.`,
    advice: 'There is nothing left to do: the person can sign in.',
  }
}

const WORDS: Record<LinkFacts['state'], (facts: LinkFacts, another: string) => Words> = {
  not_a_link: () => [
    'This is no reset or verification link, or invitation, of this service.',
    'Paste the whole link as it is in the mail, from https:// to its last character.',
  ],
  unknown,
  used: ({ token }, another) => [
    `The link was used ${when(token?.usedAt ?? token?.claimedAt)}.`,
    `A link works once. ${another}`,
  ],
  superseded: ({ token, newer }, another) =>
    newer
      ? [
          `The link was replaced by a newer one: ${when(newer.createdAt)}.`,
          'Only the link in the newest mail works.',
        ]
      : [
          `The link was voided ${when(token?.invalidatedAt)}.`,
          `Somebody asked again, or the mail could not be sent. ${another}`,
        ],
  expired: ({ token }, another) => [`The link expired ${when(token?.expiresAt)}.`, another],
  void: voided,
  altered: ({ altered }) => [
    `The link still works, but these parameters were changed: ${altered.join(', ')}.`,
    'Something changed it on the way, for example a mail program. Open the link in the mail itself, or send a new one.',
  ],
  live: ({ token }) => [
    `The link works until ${when(token?.expiresAt)}.`,
    'The person may open it on any device.',
  ],
}

function unknown({ link }: LinkFacts, another: string): Words {
  const { length } = link?.token ?? ''
  if (length === 0) return ['The link has no token.', `A part of it is missing. ${another}`]
  if (length !== TOKEN_LENGTH) {
    return [
      `The token of the link has ${length} characters, not ${TOKEN_LENGTH}.`,
      'Perhaps a mail program cut or wrapped it. Copy the whole link again.',
    ]
  }
  if (link?.signature === 'valid')
    return ['The link is genuine, but too old: its record was removed.', another]
  return [
    'No link with this token is known.',
    `It was typed wrong, is from another service, or expired more than a week ago. ${another}`,
  ]
}

function voided({ token, user }: LinkFacts, another: string): Words {
  if (!user)
    return ['The account of the link does not exist any more.', 'The link can never work again.']
  if (user.disabled) return ['The account of the link is disabled.', 'Enable the account first.']
  if (token && wasVoided(token)) {
    const summary = 'The link was voided: the account was disabled, or all its sessions were ended.'
    return [summary, another]
  }
  const isMoved = !token || user.email !== token.email
  const summary =
    isMoved || !hasSamePassword(token, user)
      ? `The ${isMoved ? 'address' : 'password'} of the account was changed after the link was made.`
      : `The link was refused ${when(token.claimedAt)}: the account changed after the link was made.`
  return [summary, another]
}

function when(at: Date | undefined): string {
  return at ? at.toISOString().replace(/\.\d+Z$/, 'Z') : 'at an unknown time'
}
