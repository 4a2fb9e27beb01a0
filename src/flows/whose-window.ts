/**
 * Whose window is it? Somebody confirms an address in one browser, and a login waits in a window of another. With `match` that
 * window goes on only if the person who confirms sees it, and types the number that it shows (decision 0042).
 *
 * @module
 */
import { numberOf, readNumber } from '../crypto/window-number.ts'
import { newId } from '../crypto/token.ts'
import type { PendingLogin, Requester, Token } from '../ports/index.ts'
import { WEEK_MS } from '../ports/week.ts'
import type { Settings } from '../settings/table.ts'
import { about } from './link-refusal.ts'
import type { FlowParts } from './parts.ts'

/** Where links are confirmed by nobody, they finish the login themselves: nothing can be matched. */
export function windowRule({ waitingWindow, emailLinkConfirmation }: Settings) {
  return waitingWindow === 'match' && emailLinkConfirmation === 'off' ? 'continue' : waitingWindow
}

/** The window of a login, as its browser is shown it. */
export interface OwnWindow {
  pendingLoginId: string
  /** `false`: it never goes on, and its person signs in again. */
  goesOn: boolean
  /** The number that it shows. `undefined`: nobody is asked for one. */
  number: number | undefined
}

export function windowOf(
  settings: Settings,
  { id: pendingLoginId, isHeld }: Pick<PendingLogin, 'id' | 'isHeld'>,
): OwnWindow {
  const rule = windowRule(settings)
  const goesOn = rule !== 'off' && !isHeld
  const number = goesOn && rule === 'match' ? numberOf(pendingLoginId) : undefined
  return { pendingLoginId, goesOn, number }
}

/** The second wrong number ends the login. */
const MOST_TRIES = 2

/** `unread`: no number of two digits was typed, which is no try. `ended`: the number was wrong twice, and so the login is over. */
export type NumberOutcome = 'matched' | 'unread' | 'wrong' | 'ended'

/** How long no window of an account waits, after somebody with its mailbox saw none. */
const HELD_MS = 3_600_000

const heldKey = ({ keyedHash }: FlowParts, accountId: string) => `disowned:${keyedHash(accountId)}`

/** Apart from the login: the same request from the same browser, sent again, is the same login with the same number. */
const triesKey = ({ keyedHash }: FlowParts, pendingLoginId: string) =>
  `number:${keyedHash(pendingLoginId)}`

/** Whether a login that begins to wait goes on by no window and no link. One read, with `match` alone. */
export async function isHeld(parts: FlowParts, accountId: string): Promise<boolean> {
  if (windowRule(parts.settings()) !== 'match') return false
  return (await parts.limits.msToEnd(heldKey(parts, accountId))) > 0
}

/** A link that was opened and is good, and who opened it. */
interface Answered {
  token: Token
  by: Requester
}

/** Judges the number that somebody typed for the window of this login. It is counted before it is compared. */
export async function tryNumber(
  parts: FlowParts,
  { token, by }: Answered,
  pendingLoginId: string,
  typed: string,
): Promise<NumberOutcome> {
  const number = readNumber(typed)
  if (number === undefined) return 'unread'
  const { count: tries } = await parts.limits.hit(triesKey(parts, pendingLoginId), WEEK_MS)
  if (tries > MOST_TRIES) return 'ended'
  if (number === numberOf(pendingLoginId)) return 'matched'
  if (tries < MOST_TRIES) return 'wrong'
  await endLogin(parts, pendingLoginId)
  await auditDisowned(parts, { token, by }, 'wrong_number')
  return 'ended'
}

/**
 * Somebody with the mailbox sees no such window. It takes away alone: the login is over, its account has no window that waits for an
 * hour, and the link is dead. In this order, so that the link is there to repeat what a dead process left.
 */
export async function disown(parts: FlowParts, { token, by }: Answered): Promise<void> {
  const { limits, verificationTokens, clock } = parts
  if (token.pendingLoginId !== undefined) await endLogin(parts, token.pendingLoginId)
  await limits.hit(heldKey(parts, token.userId), HELD_MS)
  await auditDisowned(parts, { token, by }, 'no_such_window')
  await verificationTokens.revoke({ id: token.id }, clock.now())
}

/** Void first: nothing finishes it from then on. The turn tells its window that it is over. */
async function endLogin({ pendingLogins, clock }: FlowParts, id: string): Promise<void> {
  await pendingLogins.change({ id }, { isVoid: true })
  await pendingLogins.setTurn(id, newId(), clock.now())
}

const auditDisowned = (
  parts: FlowParts,
  { token, by }: Answered,
  reason: 'no_such_window' | 'wrong_number',
) =>
  parts.audit({
    ...about(parts, token, by),
    id: `disowned:${token.id}:${reason}`,
    type: 'email_login_disowned',
    reason,
  })
