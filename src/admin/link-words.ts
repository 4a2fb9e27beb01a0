import * as z from 'zod'
import type { RecordedEvent, User } from '../ports/index.ts'
import type { Token } from '../records/index.ts'
import { isIssuedUnder, isVerified, isVoided, refusesInvitation } from '../flows/account.ts'
import { MAIL_KINDS, type LinkKind } from '../ports/mail-kinds.ts'
import { AuditEvent } from './audit.ts'
import { hasPassword } from './causes.ts'
import { LINK_KIND } from './link-state.ts'
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

export type Signature = NonNullable<LinkExplanation['signature']>

/** What a link out of a mail is, and what became of it. */
export interface LinkFacts {
  kind?: LinkKind
  /** `altered`: alive, and its parameters are not those that were signed; `unknown`: no token of ours, or gone for a week. */
  state: LinkExplanation['state']
  /** Of a verification link (5.4). */
  signature?: Signature | undefined
  /** Names of the parameters that are not as they were mailed. */
  altered: string[]
  token?: Token
  user?: User | undefined
  /** The newest token of the account and kind, where it is another one. */
  newer?: Token | undefined
  /** How many characters the token has. */
  tokenLength?: number
  events: RecordedEvent[]
}

type Words = Pick<LinkExplanation, 'summary' | 'advice'>

const TOKEN_LENGTH = 43

/** Puts an explanation into words: what is so, and what to do. */
export function linkWords(facts: LinkFacts): Words {
  const { command } = MAIL_KINDS[facts.kind ?? 'password_reset'].link
  const words = WORDS[facts.state](facts, `Send a new link: account-flows ${command}.`)
  const { kind, token, user } = facts
  if (kind === 'invitation' && user && !user.disabled && refusesInvitation(user)) {
    return { ...words, advice: hasPassword(user).advice }
  }
  if (kind !== 'email_verification' || !token || !isVerified(token, user)) return words
  const summary = `${words.summary} The address is verified already.`
  return { summary, advice: 'There is nothing left to do: the person can sign in.' }
}

const WORDS: Record<LinkFacts['state'], (facts: LinkFacts, another: string) => Words> = {
  not_a_link: () => ({
    summary: 'This is no reset or verification link, or invitation, of this service.',
    advice: 'Paste the whole link as it is in the mail, from https:// to its last character.',
  }),
  unknown,
  used: ({ token }, another) => ({
    summary: `The link was used ${when(token?.usedAt ?? token?.claimedAt)}.`,
    advice: `A link works once. ${another}`,
  }),
  superseded: ({ token, newer }, another) =>
    newer
      ? {
          summary: `The link was replaced by a newer one: ${when(newer.createdAt)}.`,
          advice: 'Only the link in the newest mail works.',
        }
      : {
          summary: `The link was voided ${when(token?.invalidatedAt)}.`,
          advice: `Somebody asked again, or the mail could not be sent. ${another}`,
        },
  expired: ({ token }, another) => ({
    summary: `The link expired ${when(token?.expiresAt)}.`,
    advice: another,
  }),
  void: voided,
  altered: ({ altered }) => ({
    summary: `The link still works, but these parameters were changed: ${altered.join(', ')}.`,
    advice:
      'Something changed it on the way, for example a mail program. Open the link in the mail itself, or send a new one.',
  }),
  live: ({ token }) => ({
    summary: `The link works until ${when(token?.expiresAt)}.`,
    advice: 'The person may open it on any device.',
  }),
}

function unknown({ tokenLength = 0, signature }: LinkFacts, another: string): Words {
  if (tokenLength === 0) {
    return { summary: 'The link has no token.', advice: `A part of it is missing. ${another}` }
  }
  if (tokenLength !== TOKEN_LENGTH) {
    return {
      summary: `The token of the link has ${tokenLength} characters, not ${TOKEN_LENGTH}.`,
      advice: 'Perhaps a mail program cut or wrapped it. Copy the whole link again.',
    }
  }
  return signature === 'valid'
    ? {
        summary: 'The link is genuine, but too old: its record was removed.',
        advice: another,
      }
    : {
        summary: 'No link with this token is known.',
        advice: `It was typed wrong, is from another service, or expired more than a week ago. ${another}`,
      }
}

function voided({ token, user }: LinkFacts, another: string): Words {
  if (!user)
    return {
      summary: 'The account of the link does not exist any more.',
      advice: 'The link can never work again.',
    }
  if (user.disabled) {
    return { summary: 'The account of the link is disabled.', advice: 'Enable the account first.' }
  }
  if (token && isVoided(token)) {
    const summary = 'The link was voided: the account was disabled, or all its sessions were ended.'
    return { summary, advice: another }
  }
  const changed = changeSince(token, user)
  return {
    summary: changed
      ? `The ${changed} of the account was changed after the link was made.`
      : `The link was refused ${when(token?.claimedAt)}: the account changed after the link was made.`,
    advice: another,
  }
}

function changeSince(token: Token | undefined, user: User): string | undefined {
  if (!token || user.email !== token.email) return 'address'
  return isIssuedUnder(token, user) ? undefined : 'password'
}

function when(at: Date | undefined): string {
  return at ? at.toISOString().replace(/\.\d+Z$/, 'Z') : 'at an unknown time'
}
