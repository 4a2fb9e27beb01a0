import type * as z from 'zod'
import type { AuthorizeSig } from '../crypto/authorize-sig.ts'
import { hashToken, isToken } from '../crypto/token.ts'
import { CARRIED, isSameCarried } from '../ports/carried-query.ts'
import type { CarriedParameters, RecordedEvent } from '../ports/index.ts'
import type { Token } from '../records/index.ts'
import { eventShape, recordAction } from './audit.ts'
import { MAIL_KINDS, type LinkKind } from '../ports/mail-kinds.ts'
import { shownState, tokenShape, tokensOf } from './link-state.ts'
import { LinkExplanation, linkWords, type LinkFacts, type Signature } from './link-words.ts'
import { operation, type AdminParts } from './operation.ts'
import { readPastedLink, type PastedLink } from './pasted-link.ts'
import { given, object } from './schema.ts'

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
      const { kind, state, signature, altered, token, events } = facts
      const about = { accountId: token?.userId, details: { state } }
      await recordAction(parts, request, 'link_explain', about)
      const { summary, advice } = linkWords(facts)
      return {
        answer: {
          kind,
          state,
          summary,
          advice,
          signature,
          altered,
          ...(token && { account_id: token.userId, ...tokenShape(token) }),
          history: events.map((event) => eventShape(event, () => facts.user?.username)),
        },
      }
    },
  }),
}

/** Looks a link up without consuming it: nothing is written. */
async function factsOf(
  { users, store, authorizeSig, oauthUrl, clock }: AdminParts,
  link: string,
): Promise<LinkFacts> {
  const isGenuine = (link: PastedLink) =>
    link.refused.length === 0 &&
    (MAIL_KINDS[link.kind].link.isSigned
      ? signatureOf(link, authorizeSig) === 'valid'
      : isToken(link.token))
  const read = readPastedLink(link, oauthUrl, isGenuine)
  if (!read) return { state: 'not_a_link', altered: [], events: [] }

  const { kind, token: raw } = read
  const tokens = tokensOf(store, kind)
  const { isSigned } = MAIL_KINDS[kind].link
  const signature = isSigned ? signatureOf(read, authorizeSig) : undefined
  const token = isToken(raw) ? await tokens.find(hashToken(raw)) : undefined
  const common = { kind, signature, tokenLength: raw.length }
  if (!token) return { ...common, state: 'unknown', altered: [], events: [] }

  const user = await users.findById(token.userId)
  const state = shownState(token, user, clock.now())
  const changed = signature ? alteredIn(signature, read.carried, token.carried) : []
  const altered = [...new Set([...changed, ...read.refused])]
  const [newest] = await tokens.ofUser(token.userId, 1)
  const events = await store.audit.list({ accountId: token.userId, limit: MAX_EVENTS })
  return {
    ...common,
    state: state === 'live' && altered.length > 0 ? 'altered' : state,
    altered,
    token,
    user,
    newer: newest?.id === token.id ? undefined : newest,
    events: eventsAbout(kind, token, events),
  }
}

/** Oldest first. */
function eventsAbout(kind: LinkKind, token: Token, events: RecordedEvent[]) {
  const isAbout = ({ id, type, at }: RecordedEvent) =>
    id.includes(token.mailJobId) || (type.startsWith(kind) && at >= token.createdAt)
  return events.filter(isAbout).sort((a, b) => a.at.getTime() - b.at.getTime())
}

function signatureOf(
  { signature, token, carried }: PastedLink,
  { verify }: Pick<AuthorizeSig, 'verify'>,
): Signature {
  if (signature === undefined) return 'missing'
  return verify(signature, token, carried) ? 'valid' : 'invalid'
}

/** Where every parameter is as it was mailed, the signature itself is not. */
function alteredIn(
  signature: Signature,
  carried: CarriedParameters,
  mailed: CarriedParameters,
): string[] {
  if (signature === 'valid' && isSameCarried(carried, mailed)) return []
  const changed = CARRIED.filter(([field]) => carried[field] !== mailed[field])
  const names = changed.map(([, name]) => name)
  return signature === 'valid' || names.length > 0 ? names : ['authorize_sig']
}
