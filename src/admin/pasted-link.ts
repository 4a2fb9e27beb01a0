/** A link that an admin pasted: how it is read, and the words that explain it. */
import * as z from 'zod'
import { parametersFrom, REQUEST_PARAMETERS } from '../contract/parameters.ts'
import type { RequestParameters, User } from '../contract/index.ts'
import { linkKinds, MAIL_KINDS, type LinkKind } from '../contract/mail-kinds.ts'
import type { AuthorizeSig } from '../crypto/keys.ts'
import { isToken } from '../crypto/token.ts'
import { isBracketed, readingsOf, SIGNED } from '../crypto/verification-link.ts'
import { hasSamePassword, isVerified, wasVoided, whyNoInvitation } from '../flows/account.ts'
import { parseFields } from '../http/form.ts'
import type { Token } from '../store/index.ts'
import { AuditEvent } from './audit.ts'
import { diagnosisOf, type Words } from './causes.ts'
import type { AdminParts } from './operation.ts'
import { list, object, optional, text, time } from './schema.ts'

/** A link of this service, as the admin pasted it. */
interface PastedLink {
  kind: LinkKind
  token: string
  parameters: RequestParameters
  /** The signature of a verification link (5.4). `undefined`: links of this kind have none. */
  signature: 'valid' | 'invalid' | 'missing' | undefined
  /** Names of the parameters that make its page refuse the link, whatever their values: repeated, in brackets, or not readable. */
  refused: string[]
}

/** Reads a link from a mail: wrapped, in angle brackets, or with `&amp;` left in. `undefined`: it is no link of this service. */
export function readLink(pasted: string, { options, keyed }: AdminParts) {
  const text = pasted
    .replace(/\s+/g, '')
    .replace(/^[<("']+|(?<![>)"'.,;])[>)"'.,;]+$/g, '')
    .replaceAll('&amp;', '&')
  if (!URL.canParse(text)) return undefined
  const url = new URL(text)
  const home = new URL(options.oauthUrl)
  const path = home.pathname.replace(/\/$/, '')
  if (url.origin !== home.origin || !url.pathname.startsWith(path)) return undefined
  const page = url.pathname.slice(path.length)
  const kind = linkKinds.find((each) => MAIL_KINDS[each].page === page)
  if (!kind) return undefined
  const links = readingsOf(url.search.slice(1)).map((query) =>
    readQuery(query, kind, keyed.authorizeSig),
  )
  const whole = links.filter(({ token }) => isToken(token))
  const isGenuine = ({ refused, signature = 'valid' }: PastedLink) =>
    refused.length === 0 && signature === 'valid'
  return whole.find(isGenuine) ?? whole[0] ?? links[0]
}

function readQuery(search: string, kind: LinkKind, { verify }: AuthorizeSig): PastedLink {
  const query = new URLSearchParams(search)
  const token = query.get('token') ?? ''
  const parameters = parametersFrom(query)
  const { isSigned } = MAIL_KINDS[kind].link
  const signed = query.get('authorize_sig')
  const verified = () => (verify(signed ?? '', token, parameters) ? 'valid' : 'invalid')
  const signature = !isSigned ? undefined : signed === null ? 'missing' : verified()
  // The pages ignore foreign parameters.
  const names = isSigned ? SIGNED : ['token']
  const unread = names.filter((name) => !parseFields(search, (each) => each === name))
  const bracketed = isSigned ? [...query.keys()].filter(isBracketed) : []
  return { kind, token, parameters, signature, refused: [...new Set([...unread, ...bracketed])] }
}

/** Names of the parameters that changed since the mail, or make the page refuse the link. */
export function alteredIn(link: PastedLink, mailed: RequestParameters) {
  const { signature, parameters, refused } = link
  if (signature === undefined) return refused
  const changed = REQUEST_PARAMETERS.filter(([field]) => parameters[field] !== mailed[field])
  const names: string[] = changed.map(([, name]) => name)
  // If nothing else changed, the signature itself did.
  if (signature !== 'valid' && names.length === 0) names.push('authorize_sig')
  return [...new Set([...names, ...refused])]
}

export type LinkExplanation = z.infer<typeof LinkExplanation>
export const LinkExplanation = object('What a link is, and what became of it.', {
  kind: optional(z.enum(linkKinds)),
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
  /** `undefined`: the text is no link of this service. */
  link?: PastedLink
  /** `altered`: alive, but its parameters are not those that were mailed; `unknown`: no token of ours, or gone for a week. */
  state: LinkExplanation['state']
  altered: string[]
  token?: Token
  user?: User | undefined
  /** The newest token of the account and kind, if that is another one. */
  newer?: Token | undefined
}

export function wordsOf(facts: LinkFacts): Pick<LinkExplanation, 'summary' | 'advice'> {
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

const TOKEN_LENGTH = 43

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
