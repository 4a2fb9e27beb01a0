/** The code in the mails of a waiting login. Typed into the waiting page, it proves mailbox and password at once (3.2). */
import { readCode } from '../crypto/login-code.ts'
import type { Requester } from '../contract/index.ts'
import type { PendingLogin } from '../store/index.ts'
import { mailboxKey, mailboxOf } from '../settings/addresses.ts'
import { eventBy } from './audit.ts'
import type { AwaitedAddress } from './other-address.ts'
import type { FlowParts } from './parts.ts'

const HOUR_MS = 3_600_000
const MONTH_MS = 30 * 24 * HOUR_MS

/** The most wrong codes at one login. The last one ends the login. */
const MAX_OF_LOGIN = 5

/** The most wrong codes for one mailbox. All accounts that claim the mailbox share this number. */
const OF_MAILBOX = [
  { windowMs: HOUR_MS, max: 20 },
  { windowMs: MONTH_MS, max: 100 },
]

/**
 * Counts a try before it compares the code. A right code gives its try back. `unread`: not six digits; it counts as no try. `over`: the
 * login is over. A number: milliseconds until codes are compared again.
 */
export async function tryCode(
  parts: FlowParts,
  login: PendingLogin,
  awaited: AwaitedAddress | undefined,
  typed: string,
  by: Requester,
): Promise<'right' | 'unread' | 'wrong' | 'over' | number> {
  const mailbox = awaited?.email ?? login.email
  const { store, keyed, audit, clock } = parts
  const { limits } = store
  const code = readCode(typed)
  if (code === undefined) return 'unread'
  const own = keyed.keyedHash(`codes:${login.id}`)
  const { count: tries } = await limits.hit(own, MONTH_MS)
  if (tries > MAX_OF_LOGIN) return endLogin(parts, login)
  const counted = [own]
  for (const { key, spelledKey, windowMs, max } of rowsOf(parts, mailbox)) {
    const [{ count, msToEnd }] = await Promise.all([
      limits.hit(key, windowMs),
      limits.hit(spelledKey, windowMs),
    ])
    if (count > max) {
      // The code is not compared, so it does not count as a try at the login.
      await limits.giveBack(own)
      return (await codeWait(parts, mailbox)) ?? msToEnd
    }
    counted.push(key, spelledKey)
  }
  if (keyed.loginCodes.isCodeOf(code, login.waitId, awaited?.id)) {
    await Promise.all(counted.map((each) => limits.giveBack(each)))
    return 'right'
  }
  const event = eventBy(clock, { userId: login.accountId, parameters: {} }, by)
  await audit({ ...event, type: 'email_verification_rejected', reason: 'wrong_code' })
  return tries === MAX_OF_LOGIN ? endLogin(parts, login) : 'wrong'
}

/** For how many milliseconds no code of this mailbox is compared. `undefined`: codes are compared. */
export async function codeWait(parts: FlowParts, email: string | undefined) {
  const rows = rowsOf(parts, email)
  const hits = await Promise.all(rows.map(({ key }) => parts.store.limits.peek(key)))
  const full = hits.filter(({ count }, index) => count >= (rows[index]?.max ?? 0))
  return full.length > 0 ? Math.max(...full.map(({ msToEnd }) => msToEnd)) : undefined
}

/** Gives back the tries at exactly this spelling of an address, for its owner. At some servers, an address with other dots is another mailbox. */
export async function forgetWrongCodes(parts: FlowParts, email: string): Promise<void> {
  const { limits } = parts.store
  const giveBack = rowsOf(parts, email).map(async ({ key, spelledKey }) => {
    const tries = await limits.giveBack(spelledKey, Infinity)
    if (tries > 0) await limits.giveBack(key, tries)
  })
  await Promise.all(giveBack)
}

/** The counters of a mailbox. `spelledKey` counts only the tries at this spelling of its address. */
function rowsOf({ keyed: { keyedHash } }: FlowParts, email = '') {
  return OF_MAILBOX.map(({ windowMs, max }) => ({
    key: keyedHash(`codes:${windowMs}:${mailboxKey(email)}`),
    spelledKey: keyedHash(`spelled:${windowMs}:${mailboxOf(email)}`),
    windowMs,
    max,
  }))
}

async function endLogin({ store }: FlowParts, { id }: PendingLogin): Promise<'over'> {
  await store.pendingLogins.change({ id }, { isVoid: true })
  return 'over'
}
