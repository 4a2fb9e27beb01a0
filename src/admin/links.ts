/** Mailed links: what became of each, in fields and in words. */
import * as z from 'zod'
import type { RecordedEvent } from '../contract/index.ts'
import { linkKinds, MAIL_KINDS, tokensOf, type LinkKind } from '../contract/mail-kinds.ts'
import { hashOf } from '../contract/users.ts'
import { isForFirst } from '../crypto/password.ts'
import { hasSamePassword, isVerified } from '../flows/account.ts'
import { findLink, type LinkState } from '../flows/link-state.ts'
import { wasVoided } from '../flows/void-links.ts'
import { alteredIn, readPastedLink } from '../http/pasted-link.ts'
import type { Token } from '../store/index.ts'
import { AuditEvent } from './audit.ts'
import { diagnosisOf, type Words } from './causes.ts'
import { currentFacts, whyNoLink } from './diagnosis.ts'
import { operation, type AdminParts } from './operation.ts'
import { given, list, object, optional, text, time, wireOf } from './schema.ts'

export type Link = z.infer<typeof Link>
export const Link = object('The state of a link; never the link itself.', {
  kind: z.enum(linkKinds),
  state: z.enum(['live', 'used', 'superseded', 'expired', 'void']),
  created_at: time,
  expires_at: time,
  used_at: optional(time),
  invalidated_at: optional(time),
  completed_at: optional(time, 'When all effects of the reset, or of the invitation, were done.'),
  client_id: optional(text),
  mail_id: text.describe('The mail request that it was made for.'),
})

export type LinkQuery = z.infer<typeof LinkQuery>
export const LinkQuery = object('A link from a mail. It stays usable.', { link: given })

const { kind, state, client_id, mail_id, ...others } = Link.partial().shape

export type LinkExplanation = z.infer<typeof LinkExplanation>
export const LinkExplanation = object('What a link is, and what became of it.', {
  kind,
  state: z
    .enum([...state.unwrap().options, 'altered', 'unknown', 'not_a_link'])
    .describe(
      'void: the account changed since; altered: its parameters are not those that were signed.',
    ),
  summary: text.describe('One sentence for the person who asks.'),
  advice: text.describe('What to do.'),
  signature: optional(z.enum(['valid', 'invalid', 'missing']), 'Of a verification link.'),
  altered: list(text, 'Names of the parameters that were changed after the mail was sent.'),
  account_id: optional(text),
  client_id,
  ...others,
  mail_id,
  history: list(AuditEvent, 'What was recorded since it was made, oldest first.'),
})

export const explainLink = operation('POST /links/explain', 'account-flows:read', {
  summary: 'What a link is, and what happened to it. The link stays usable. Audited.',
  body: LinkQuery,
  answer: LinkExplanation,
  async run({ body, record }, parts) {
    const facts = await factsOf(parts, body.link)
    const { link, state, token, user } = facts
    const events = link && token ? await eventsAbout(parts, link.kind, token) : []
    await record('link_explain', { accountId: token?.userId, details: { state } })
    return wireOf(LinkExplanation, {
      ...(token && fieldsOf(token)),
      ...link,
      ...facts,
      ...wordsOf(facts),
      history: events.map((event) => wireOf(AuditEvent, { ...event, username: user?.username })),
    })
  },
})

type LinkFacts = Awaited<ReturnType<typeof factsOf>>

/**
 * Looks a link up without consuming it: nothing is written. `altered`: live, but its parameters are not those that were mailed. `unknown`: no
 * token of ours, or expired more than a week ago. `about`: the account as it is now. `newer`: the newest token of the account and kind, if
 * that is another one.
 */
async function factsOf(parts: AdminParts, pasted: string) {
  const { store, keyed, options } = parts
  const link = readPastedLink(pasted, options.oauthUrl, keyed.authorizeSig)
  if (!link) return { state: 'not_a_link' as const, altered: [] }
  const found = await findLink(parts, link.kind, link.token)
  if (!found) return { link, state: 'unknown' as const, altered: [] }
  const { token, account: user } = found
  const altered = alteredIn(link, token.parameters)
  const now = shownState(token, found.state)
  const state: LinkExplanation['state'] = now === 'live' && altered.length > 0 ? 'altered' : now
  const [newest] = await tokensOf(store, link.kind).ofUser(token.userId, 1)
  const newer = newest?.id === token.id ? undefined : newest
  const about = user && currentFacts(parts, user)
  return { link, state, altered, token, user, about, newer }
}

const MAX_EVENTS = 500

/** The events about a link, oldest first. */
async function eventsAbout({ store }: AdminParts, kind: LinkKind, token: Token) {
  const { userId: accountId, mailJobId, createdAt } = token
  const events = await store.audit.list({ accountId, limit: MAX_EVENTS })
  const isAbout = ({ id, type, at }: RecordedEvent) =>
    id.includes(mailJobId) || (type.startsWith(kind) && at >= createdAt)
  return events.filter(isAbout).sort((a, b) => a.at.getTime() - b.at.getTime())
}

/** What became of a link, as the flows check it. `void`: the account changed since, or all of its links were voided. */
export function shownState(token: Token, state: LinkState): Link['state'] {
  if (state === 'usable') return 'live'
  if (state === 'changed') return 'void'
  return state === 'expired' && wasVoided(token) ? 'void' : state
}

/** What a status and an explanation say of a link. */
export const fieldsOf = (token: Token) => ({
  ...token,
  accountId: token.userId,
  usedAt: token.usedAt ?? (token.invalidatedAt ? undefined : token.claimedAt),
  clientId: token.parameters.clientId,
  mailId: token.mailJobId,
})

function wordsOf(facts: LinkFacts): Pick<LinkExplanation, 'summary' | 'advice'> {
  const { link, token, user, about, state } = facts
  const { kind = 'password_reset' } = link ?? {}
  const send = `Send a new link: account-flows ${MAIL_KINDS[kind].link.command}.`
  const isVerification = kind === 'email_verification'
  const cause = about && !isVerification && whyNoLink[kind](about)
  const [summary, advice] = WORDS[state](facts, cause ? diagnosisOf(cause, about).advice : send)
  if (!isVerification || !token || !isVerified(token, user)) return { summary, advice }
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
          `A newer link was asked for, or the mail could not be sent. ${another}`,
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
    const why =
      'the account was disabled, its address was changed or typed anew, or all its sessions were ended'
    return [`The link was voided: ${why}.`, another]
  }
  if (!token || user.email !== token.email)
    return ['The address of the account was changed after the link was made.', another]
  if (hasSamePassword(token, user))
    return [`The link was refused ${when(token.claimedAt)}: the account had changed.`, another]
  if (isForFirst(token) && hashOf(user) === undefined)
    return ['The account cannot choose a password now, or its address is not verified.', another]
  return [
    'The password of the account was set, changed or removed after the link was made.',
    another,
  ]
}

function when(at: Date | undefined): string {
  return at ? at.toISOString().replace(/\.\d+Z$/, 'Z') : 'at an unknown time'
}
