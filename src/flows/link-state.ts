/** The state of a mailed link of any kind, by its record and its account. */
import { isForFirst } from '../crypto/password.ts'
import { hashToken, isToken } from '../crypto/token.ts'
import type { LinkEnd, LinkReason, Requester, TokenEnd, User } from '../contract/index.ts'
import { type LinkKind, tokensOf } from '../contract/mail-kinds.ts'
import { endOf } from '../store/tokens.ts'
import type { Token } from '../store/index.ts'
import { isUnchanged } from './account.ts'
import { awaitedOf, withAddresses, type AwaitedAddress } from './other-address.ts'
import type { FlowParts } from './parts.ts'
import { requestMail } from './request-mail.ts'

export type LinkState = 'usable' | Exclude<LinkReason, 'unknown'>

function linkState({ claimedAt }: Token, end: TokenEnd | undefined, isSame: boolean): LinkState {
  if (end === 'used') return 'used'
  // A claimed link was refused later, because the account had changed.
  if (end === 'invalidated') return claimedAt ? 'changed' : 'superseded'
  return isSame ? (end ?? 'usable') : 'changed'
}

export interface LinkContext extends Pick<Token, 'parameters'>, Partial<Pick<Token, 'locale'>> {
  /** Whether a reset link sets the first password. */
  isFirst?: boolean
}

export const linkContext = (token: Token): LinkContext => ({
  parameters: token.parameters,
  locale: token.locale,
  isFirst: isForFirst(token),
})

export const faultOf = <Fault extends string>(token: Token, fault: Fault) => ({
  fault,
  ...linkContext(token),
})

/** No link of ours, or one that somebody changed. */
export const UNKNOWN: LinkContext & { fault: 'unknown' } = { fault: 'unknown', parameters: {} }

/** Asks for a new link in place of this one. Its language is that of the old mail, unless `by` names another. */
export async function requestRenewal(
  parts: FlowParts,
  kind: LinkKind,
  token: Token,
  by: Requester,
  form: string | undefined,
): Promise<LinkContext> {
  const { userId: accountId, pendingLoginId, parameters, locale } = token
  const requester = { ...by, uiLocales: by.uiLocales ?? locale }
  await requestMail(parts, kind, { accountId, pendingLoginId, parameters, requester, form })
  return linkContext(token)
}

/** Finds a token with its account and state. With `sessions`, it also sees an end of the account that is under way. */
export async function findLink(
  parts: Pick<FlowParts, 'store' | 'users' | 'clock'>,
  kind: LinkKind,
  raw: string,
  sessions?: Pick<FlowParts['sessions'], 'readCutoffs'>,
) {
  const { store, users } = parts
  const find = async () => (isToken(raw) ? tokensOf(store, kind).find(hashToken(raw)) : undefined)
  const first = await find()
  if (!first) return undefined
  // Reads the token again after the cut-offs: an end of sessions voids links first, and moves the cut-offs last.
  const cutoffs = await sessions?.readCutoffs(first.userId)
  const [latest, account] = await Promise.all([
    cutoffs ? find() : first,
    users.findById(first.userId),
  ])
  if (!latest) return undefined
  const awaited = account && (await awaitedOf(parts, account))
  return { ...(await withState(parts, latest, account, awaited)), account }
}

/** A link with its addresses, and its state. While the account waits for another address, only links to that address are usable. */
export async function withState(
  { store, clock }: Pick<FlowParts, 'store' | 'clock'>,
  found: Token,
  account: User | undefined,
  awaited: AwaitedAddress | undefined,
) {
  const token = await withAddresses({ store }, found)
  const own = endOf(token, clock.now())
  const isSame =
    account !== undefined && isUnchanged(token, account) && token.addressId === awaited?.id
  // If the record has no end of its own, only a change of the account can end the link.
  const end: LinkEnd = own ?? 'account_changed'
  return { token, state: linkState(token, own, isSame), end }
}

/** How many links of one account are looked through while "This wasn't me" of a mail works. */
export const MAX_MAILED = 10_000
