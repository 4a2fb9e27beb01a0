import * as z from 'zod'
import type { RecordedEvent, User } from '../contract/index.ts'
import { linkKinds, tokensOf, type LinkKind } from '../contract/mail-kinds.ts'
import { hashToken, isToken } from '../crypto/token.ts'
import { wasVoided } from '../flows/account.ts'
import { linkState } from '../flows/link-state.ts'
import type { Token } from '../store/index.ts'
import { AuditEvent } from './audit.ts'
import { operation, type AdminParts } from './operation.ts'
import { alteredIn, LinkExplanation, wordsOf, readLink, type LinkFacts } from './pasted-link.ts'
import { given, object, optional, text, time, wireOf } from './schema.ts'

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

export const linkOperations = {
  explainLink: operation({
    summary: 'What a link is, and what happened to it. The link stays usable. Audited.',
    body: LinkQuery,
    answer: LinkExplanation,
    async run({ body, record }, parts) {
      const facts = await factsOf(parts, body.link)
      const { link, state, token, user } = facts
      const events = link && token ? await eventsAbout(parts, link.kind, token) : []
      await record('link_explain', { accountId: token?.userId, details: { state } })
      return wireOf(LinkExplanation, {
        ...(token && fieldsOf(token, user, parts.clock.now())),
        ...link,
        ...facts,
        ...wordsOf(facts),
        history: events.map((event) => wireOf(AuditEvent, { ...event, username: user?.username })),
      })
    },
  }),
}

/** Looks a link up without consuming it: nothing is written. */
async function factsOf(parts: AdminParts, pasted: string): Promise<LinkFacts> {
  const { users, store, clock } = parts
  const link = readLink(pasted, parts)
  if (!link) return { state: 'not_a_link', altered: [] }
  const tokens = tokensOf(store, link.kind)
  const token = isToken(link.token) ? await tokens.find(hashToken(link.token)) : undefined
  if (!token) return { link, state: 'unknown', altered: [] }
  const user = await users.findById(token.userId)
  const { state } = fieldsOf(token, user, clock.now())
  const altered = alteredIn(link, token.parameters)
  const [newest] = await tokens.ofUser(token.userId, 1)
  return {
    link,
    state: state === 'live' && altered.length > 0 ? 'altered' : state,
    altered,
    token,
    user,
    newer: newest?.id === token.id ? undefined : newest,
  }
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
function shownState(token: Token, user: User | undefined, at: Date): Link['state'] {
  const state = linkState(token, user, at)
  if (state === 'usable') return 'live'
  if (state === 'changed') return 'void'
  return state === 'expired' && wasVoided(token) ? 'void' : state
}

/** What a status and an explanation say of a link. */
const fieldsOf = (token: Token, user: User | undefined, at: Date) => ({
  ...token,
  accountId: token.userId,
  state: shownState(token, user, at),
  usedAt: token.usedAt ?? (token.invalidatedAt ? undefined : token.claimedAt),
  clientId: token.parameters.clientId,
  mailId: token.mailJobId,
})

const MAX_OF_KIND = 20

/** The newest links of each kind, newest first. */
export async function linksOf({ store, clock }: AdminParts, user: User) {
  const at = clock.now()
  const links = await Promise.all(
    linkKinds.map(async (kind) => {
      const tokens = await tokensOf(store, kind).ofUser(user.id, MAX_OF_KIND)
      return tokens.map((token) => wireOf(Link, { ...fieldsOf(token, user, at), kind }))
    }),
  )
  return links.flat().sort((a, b) => b.created_at.getTime() - a.created_at.getTime())
}
