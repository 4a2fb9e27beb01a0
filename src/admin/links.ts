import type * as z from 'zod'
import { hashToken, isToken } from '../crypto/token.ts'
import { CARRIED } from '../contract/requests.ts'
import type { CarriedParameters, RecordedEvent } from '../contract/index.ts'
import type { Token } from '../store/index.ts'
import { eventShape, recordAction } from './audit.ts'
import { toldOf } from './link-state.ts'
import { tokensOf } from '../contract/mail-kinds.ts'
import { LinkExplanation, linkWords, type LinkFacts } from './link-words.ts'
import { operation, type AdminParts } from './operation.ts'
import { readPastedLink, type PastedLink } from './pasted-link.ts'
import { given, object, wireOf } from './schema.ts'

const MAX_EVENTS = 500

export type LinkQuery = z.infer<typeof LinkQuery>
export const LinkQuery = object('A link from a mail. It stays usable.', { link: given })

export const linkOperations = {
  explainLink: operation({
    route: 'POST /links/explain',
    scope: 'account-flows:read',
    summary: 'What a link is, and what happened to it. The link stays usable. Audited.',
    body: LinkQuery,
    answer: LinkExplanation,
    async run(request, parts) {
      const facts = await factsOf(parts, request.body.link)
      const { link, state, token, user } = facts
      const events = link && token ? await eventsAbout(parts, link, token) : []
      const about = { accountId: token?.userId, details: { state } }
      await recordAction(parts, request, 'link_explain', about)
      return wireOf(LinkExplanation, {
        ...(token && toldOf(token, user, parts.clock.now())),
        ...link,
        ...facts,
        ...linkWords(facts),
        history: events.map((event) => eventShape(event, () => user?.username)),
      })
    },
  }),
}

/** Looks a link up without consuming it: nothing is written. */
async function factsOf(parts: AdminParts, pasted: string): Promise<LinkFacts> {
  const { users, store, clock } = parts
  const link = readPastedLink(pasted, parts)
  if (!link) return { state: 'not_a_link', altered: [] }
  const tokens = tokensOf(store, link.kind)
  const token = isToken(link.token) ? await tokens.find(hashToken(link.token)) : undefined
  if (!token) return { link, state: 'unknown', altered: [] }
  const user = await users.findById(token.userId)
  const { state } = toldOf(token, user, clock.now())
  const altered = [...new Set([...changedIn(link, token.carried), ...link.refused])]
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

/** Oldest first. */
async function eventsAbout(
  { store }: AdminParts,
  { kind }: PastedLink,
  { userId: accountId, mailJobId, createdAt }: Token,
): Promise<RecordedEvent[]> {
  const events = await store.audit.list({ accountId, limit: MAX_EVENTS })
  const isAbout = ({ id, type, at }: RecordedEvent) =>
    id.includes(mailJobId) || (type.startsWith(kind) && at >= createdAt)
  return events.filter(isAbout).sort((a, b) => a.at.getTime() - b.at.getTime())
}

/** Where every parameter is as it was mailed, the signature itself is not. */
function changedIn({ signature, carried }: PastedLink, mailed: CarriedParameters): string[] {
  if (signature === undefined) return []
  const changed = CARRIED.filter(([field]) => carried[field] !== mailed[field])
  const names = changed.map(([, name]) => name)
  return signature === 'valid' || names.length > 0 ? names : ['authorize_sig']
}
