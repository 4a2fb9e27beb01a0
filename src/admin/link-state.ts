import * as z from 'zod'
import type { User } from '../contract/index.ts'
import type { Token } from '../store/index.ts'
import { linkKinds, tokensOf } from '../contract/mail-kinds.ts'
import { wasVoided } from '../flows/account.ts'
import { linkState } from '../flows/link.ts'
import type { AdminParts } from './operation.ts'
import { object, optional, text, time, wireOf } from './schema.ts'

const MOST_OF_KIND = 20

export const LINK_KIND = z.enum(linkKinds)

export type Link = z.infer<typeof Link>
export const Link = object('The state of a link; never the link itself.', {
  kind: LINK_KIND,
  state: z.enum(['live', 'used', 'superseded', 'expired', 'void']),
  created_at: time,
  expires_at: time,
  used_at: optional(time),
  invalidated_at: optional(time),
  completed_at: optional(time, 'When all effects of the reset, or of the invitation, were done.'),
  client_id: optional(text),
  mail_id: text.describe('The mail request that it was made for.'),
})

/**
 * What became of a link, as the flows judge it. `superseded`: a newer one took its place. `void`: the account changed since, or all
 * of its links were voided.
 */
function shownState(token: Token, user: User | undefined, at: Date): Link['state'] {
  const state = linkState(token, user, at)
  if (state === 'usable') return 'live'
  if (state === 'changed') return 'void'
  return state === 'expired' && wasVoided(token) ? 'void' : state
}

/** What is told of a link, whoever asks. */
export const toldOf = (token: Token, user: User | undefined, at: Date) => ({
  ...token,
  accountId: token.userId,
  state: shownState(token, user, at),
  usedAt: token.usedAt ?? (token.invalidatedAt ? undefined : token.claimedAt),
  clientId: token.carried.clientId,
  mailId: token.mailJobId,
})

/** The newest of each kind, newest first. */
export async function linksOf({ store, clock }: AdminParts, user: User) {
  const at = clock.now()
  const links = await Promise.all(
    linkKinds.map(async (kind) => {
      const tokens = await tokensOf(store, kind).ofUser(user.id, MOST_OF_KIND)
      return tokens.map((token) => wireOf(Link, { ...toldOf(token, user, at), kind }))
    }),
  )
  return links.flat().sort((a, b) => b.created_at.getTime() - a.created_at.getTime())
}
