import { newId } from '../crypto/token.ts'
import { carriedBy } from '../contract/requests.ts'
import type { User } from '../contract/index.ts'
import type { CapturedRequest, PendingLogin } from '../store/index.ts'
import { isVoid } from '../store/logins.ts'
import type { CodeFault } from '../views/index.ts'
import type { Page } from './pages.ts'
import type { HttpParts } from './parts.ts'

export type PageRequest = Pick<Page, 'formMayLeadTo' | 'uiLocales'>

/** A login that waits for its address to be verified. */
export interface BlockedLogin {
  user: User
  login: PendingLogin
  /** Of its link, and so of its page. */
  lifetimeMs: number
  /** Until another mail may be asked for. `undefined`: at any time. */
  waitMs: number | undefined
  fault?: CodeFault | undefined
}

/** The verification page in mode `blocked` (4.8), or in mode `ended` of a login that is over. */
export async function blockedPage(
  parts: HttpParts,
  { user, login, ...asked }: BlockedLogin,
): Promise<Page<'verify-email'>> {
  const { id, captured } = login
  if (isVoid(login)) return endPage(parts, 'ended', captured)
  const carried = carriedBy(captured)
  const { client } = await parts.clients.identify(carried)
  const whose = { username: user.username, sentTo: user.email ?? undefined, waiting: id }
  const locals = { mode: 'blocked', ...whose, carried, client, ...asked } as const
  return { name: 'verify-email', locals, ...requestOf(captured), formId: newId() }
}

/** The page of a login that waits no more. `captured` is its request, if it was a login of this browser. */
export async function endPage(
  { clients }: HttpParts,
  mode: 'verified' | 'signed_in' | 'ended',
  captured: CapturedRequest | undefined,
): Promise<Page<'verify-email'>> {
  const client = captured && (await clients.restart(carriedBy(captured)))
  return { name: 'verify-email', locals: { mode, client }, ...(captured && requestOf(captured)) }
}

export function requestOf(captured: CapturedRequest): PageRequest {
  const uiLocales = captured.params['ui_locales']
  return {
    formMayLeadTo: carriedBy(captured).redirectUri,
    uiLocales: typeof uiLocales === 'string' ? uiLocales : undefined,
  }
}
