/**
 * The code of a login that waits. Its mails hold it, and it is typed into the page that waits. So mailbox and password are in the same
 * hands (3.2).
 */
import { readCode } from '../crypto/login-code.ts'
import { newId } from '../crypto/token.ts'
import type { PendingLogin, Requester } from '../ports/index.ts'
import { mailboxKey } from '../settings/mail-address.ts'
import type { FlowParts } from './parts.ts'

const HOUR_MS = 3_600_000
const MONTH_MS = 30 * 24 * HOUR_MS

/** Wrong codes at one login. It is over with the last. */
const MOST_OF_LOGIN = 5

/** Wrong codes for one mailbox, over all accounts that claim it. */
const OF_MAILBOX = [
  { windowMs: HOUR_MS, most: 20 },
  { windowMs: MONTH_MS, most: 100 },
]

/**
 * `unread`: no code of six digits was typed, which is no try. `over`: the login is over. A number: no code of this mailbox is compared
 * for so many milliseconds.
 */
type CodeOutcome = 'right' | 'unread' | 'wrong' | 'over' | number

/** Judges a typed code. A try is counted before it is compared, and the right one is given back. */
export async function tryCode(
  parts: FlowParts,
  login: PendingLogin,
  typed: string,
  by: Requester,
): Promise<CodeOutcome> {
  const { limits, loginCodes } = parts
  const code = readCode(typed)
  if (code === undefined) return 'unread'
  const own = ownRow(parts, login)
  const shared = rowsOf(parts, login.email)
  const { count: tries } = await limits.hit(own.key, own.windowMs)
  if (tries > own.most) return endLogin(parts, login)
  for (const { key, windowMs, most } of shared) {
    const { count, msToEnd } = await limits.hit(key, windowMs)
    if (count <= most) continue
    // What is not compared is no try at this login.
    await limits.giveBack(own.key)
    return (await codeWait(parts, login.email)) ?? msToEnd
  }
  if (loginCodes.isCodeOf(code, login.id)) {
    await Promise.all([own, ...shared].map(({ key }) => limits.giveBack(key)))
    return 'right'
  }
  await auditWrong(parts, login, by)
  return tries === MOST_OF_LOGIN ? endLogin(parts, login) : 'wrong'
}

/** For how many milliseconds no code of this mailbox is compared. `undefined`: it is compared. */
export async function codeWait(parts: FlowParts, email: string | undefined) {
  const rows = rowsOf(parts, email)
  const hits = await Promise.all(rows.map(({ key }) => parts.limits.peek(key)))
  const full = hits.filter(({ count }, index) => count >= (rows[index]?.most ?? 0))
  return full.length > 0 ? Math.max(...full.map(({ msToEnd }) => msToEnd)) : undefined
}

/** Whether a login is over by too many wrong codes, or was disowned; also where the same request comes again. */
export async function isGuessedAt(parts: FlowParts, login: PendingLogin): Promise<boolean> {
  const { key, most } = ownRow(parts, login)
  return (await parts.limits.peek(key)).count >= most
}

/** Ends what the codes of these logins are good for, also where the same request comes again: their mails were disowned. */
export async function spendTries(parts: FlowParts, loginIds: Iterable<string>): Promise<void> {
  const hits = [...new Set(loginIds)].flatMap((id) => {
    const { key, windowMs, most } = ownRow(parts, { id })
    return Array.from({ length: most }, () => parts.limits.hit(key, windowMs))
  })
  await Promise.all(hits)
}

/** Begins the counts of a mailbox anew: its owner used a reset link that was mailed there. */
export async function forgetWrongCodes(parts: FlowParts, email: string): Promise<void> {
  const rows = rowsOf(parts, email)
  await Promise.all(rows.map(({ key }) => parts.limits.giveBack(key, Infinity)))
}

function rowsOf({ keyedHash }: FlowParts, email = '') {
  const mailbox = mailboxKey(email)
  return OF_MAILBOX.map(({ windowMs, most }) => {
    const key = keyedHash(`codes:${windowMs}:${mailbox}`)
    return { key, windowMs, most }
  })
}

const ownRow = ({ keyedHash }: FlowParts, { id }: Pick<PendingLogin, 'id'>) => ({
  key: keyedHash(`codes:${id}`),
  windowMs: MONTH_MS,
  most: MOST_OF_LOGIN,
})

async function endLogin({ pendingLogins }: FlowParts, { id }: PendingLogin): Promise<'over'> {
  await pendingLogins.change({ id }, { isVoid: true })
  return 'over'
}

const auditWrong = ({ audit, clock }: FlowParts, login: PendingLogin, by: Requester) =>
  audit({
    id: newId(),
    type: 'email_verification_rejected',
    at: clock.now(),
    accountId: login.accountId,
    reason: 'wrong_code',
    address: by.address,
    userAgent: by.userAgent,
  })
