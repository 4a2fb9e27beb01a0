import { carriedBy } from '../flows/link.ts'
import type { Clients } from '../oidc/clients.ts'
import type { CapturedRequest, User } from '../ports/index.ts'
import { pageOf } from './captured-page.ts'
import type { Page } from './pages.ts'

/** A login that waits for its address to be verified. */
export interface BlockedLogin {
  user: User
  captured: CapturedRequest
  pendingLoginId: string
  /** How long its link, and so its window, lives. */
  lifetimeMs: number
  /** Until another mail may be asked for. `undefined`: at any time. */
  waitMs: number | undefined
  /** Somebody said "I have confirmed", and it is not so. */
  isNotYet?: boolean
}

/** The verification page in mode `blocked` (4.8), whose window goes on by itself. */
export async function blockedPage(
  clients: Pick<Clients, 'shown'>,
  { user, captured, pendingLoginId, lifetimeMs, ...asked }: BlockedLogin,
): Promise<Page<'verify-email'>> {
  const carried = carriedBy(captured)
  return {
    status: 200,
    name: 'verify-email',
    locals: {
      mode: 'blocked',
      username: user.username,
      lifetimeMs,
      carried,
      client: await clients.shown(carried),
      waiting: { pendingLoginId, forMs: lifetimeMs },
      ...asked,
    },
    ...pageOf(captured),
  }
}
