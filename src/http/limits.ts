import { Server, type Socket } from 'node:net'
import type { Context } from 'koa'
import { newId } from '../crypto/token.ts'
import type { AuditEventType, MailKind, RateLimits, Requester } from '../ports/index.ts'
import { isLoopbackHost } from '../settings/loopback-host.ts'
import type { Settings } from '../settings/table.ts'
import { networkOf } from './requester.ts'
import type { HttpParts } from './parts.ts'

const MINUTE_MS = 60_000

/**
 * Counts a form that was sent to us, and answers for how many seconds its network has to wait. `undefined`: it is within
 * the limit. One bucket for all forms; nothing of the form is looked at, so that the answer tells nothing about an account.
 */
export type RequestLimit = (ctx: Context) => Promise<number | undefined>

/** What is audited, once for a network and window. */
const EVENTS: Record<string, AuditEventType> = {
  '/forgot-password': 'password_reset_requested',
  '/reset-password': 'password_reset_rejected',
  '/resend-verification': 'email_verification_requested',
  '/verify-email': 'email_verification_rejected',
}

/** @param trustedProxies - how many proxies are declared; 0: whatever a request says of its way is ignored. */
export function createRequestLimit(parts: HttpParts, trustedProxies: number): RequestLimit {
  const { limits, settings, requesterOf, audit, clock, log } = parts
  let hasWarned = false

  function warnOfUndeclaredProxy(ctx: Context) {
    if (hasWarned || trustedProxies > 0) return
    if (ctx.get('X-Forwarded-For') === '' && ctx.get('Forwarded') === '') return
    hasWarned = true
    log(
      'warn',
      'a request says that it came through a proxy, and none is declared: if there is one, set trustedProxies, or limits by network do not work',
    )
  }

  // Behind a proxy on this machine that nobody declared, everybody would share one bucket.
  const isExempt = ({ req }: Context) =>
    trustedProxies === 0 &&
    (isLoopbackHost(req.socket.remoteAddress ?? '') || isUnixSocket(req.socket))

  return async (ctx) => {
    warnOfUndeclaredProxy(ctx)
    const { requestsPerIpPerMinute: most } = settings()
    if (most === 0 || isExempt(ctx)) return undefined
    const requester = requesterOf(ctx.req)
    const key = `requests:${networkOf(requester.address)}`
    const { count, msToEnd } = await limits.hit(key, MINUTE_MS)
    if (count <= most) return undefined
    const type = EVENTS[ctx.path]
    if (count === most + 1 && type) {
      const reason = 'too_many_requests'
      await audit({ id: newId(), type, at: clock.now(), reason, ...requester })
    }
    return Math.max(1, Math.ceil(msToEnd / 1000))
  }
}

// Told by the server: a connection that was closed meanwhile has no address either.
function isUnixSocket(socket: Socket): boolean {
  const server: unknown = Reflect.get(socket, 'server')
  return server instanceof Server && typeof server.address() === 'string'
}

/** Who asked for a mail, of which kind, by what was typed. */
export interface MailWish {
  kind: MailKind
  typed: string
  requester: Requester
}

/**
 * For how many milliseconds another mail for the same name would be too soon. It knows no account: the same name, known or not,
 * asked for from the same network counts alike. Whether a mail is sent, a worker judges.
 */
export interface ResendCooldown {
  /** Counts a request. `undefined`: no cooldown is set, and nothing was counted. */
  count(wish: MailWish): Promise<number | undefined>
  /** What is left of it. `undefined`: nothing, or no cooldown is set. */
  left(wish: MailWish): Promise<number | undefined>
}

export interface ResendCooldownParts {
  limits: RateLimits
  /** Stands for what was typed. */
  keyedHash(text: string): string
  settings(): Settings
}

export function createResendCooldown(parts: ResendCooldownParts): ResendCooldown {
  const { limits, keyedHash, settings } = parts

  // By network: otherwise a stranger would learn from the countdown that somebody else asked for that name lately.
  const keyOf = ({ kind, typed, requester }: MailWish) =>
    `asked:${keyedHash(JSON.stringify([kind, typed, networkOf(requester.address)]))}`

  return {
    async count(wish) {
      const { resendCooldown } = settings()
      if (resendCooldown === 0) return undefined
      const { count, msToEnd } = await limits.hit(keyOf(wish), resendCooldown)
      return count === 1 ? resendCooldown : msToEnd
    },

    async left(wish) {
      const { resendCooldown } = settings()
      if (resendCooldown === 0) return undefined
      const msToEnd = await limits.msToEnd(keyOf(wish))
      return msToEnd > 0 ? Math.min(msToEnd, resendCooldown) : undefined
    },
  }
}
