import { Server, type Socket } from 'node:net'
import type { Context } from 'koa'
import type { AuditEvent } from '../contract/index.ts'
import { newId } from '../crypto/token.ts'
import { isLoopbackHost } from '../settings/addresses.ts'
import { networkOf } from './requester.ts'
import type { HttpParts } from './parts.ts'

const MINUTE_MS = 60_000

/** The event that is recorded, once for each network and window. */
const EVENTS: Record<string, Extract<AuditEvent, { reason: 'too_many_requests' }>['type']> = {
  '/forgot-password': 'password_reset_requested',
  '/reset-password': 'password_reset_rejected',
  '/accept-invitation': 'invitation_rejected',
  '/resend-verification': 'email_verification_requested',
  '/not-me': 'password_reset_rejected',
  '/verify-email/waiting': 'email_verification_rejected',
}

/**
 * Counts a form, and answers for how many seconds its network has to wait. `undefined`: it is within the limit. All forms share one
 * bucket. The form is not read, so that the answer says nothing about an account. Without `trustedProxies`, forwarding headers are ignored.
 */
export function createRequestLimit(parts: HttpParts, trustedProxies: number) {
  const { limits, settings, requesterOf, audit, clock, log } = parts
  let hasWarned = false

  function warnOfUndeclaredProxy(ctx: Context) {
    if (hasWarned || trustedProxies > 0) return
    if (ctx.get('X-Forwarded-For') === '' && ctx.get('Forwarded') === '') return
    hasWarned = true
    log(
      'warn',
      'a request has the header of a proxy, but trustedProxies is 0. Behind a proxy, set trustedProxies: without it, limits by IP address do not work',
    )
  }

  // Behind an undeclared proxy on this machine, all clients would share one bucket.
  const isExempt = ({ req }: Context) =>
    trustedProxies === 0 &&
    (isLoopbackHost(req.socket.remoteAddress ?? '') || isUnixSocket(req.socket))

  return async (ctx: Context): Promise<number | undefined> => {
    warnOfUndeclaredProxy(ctx)
    const { requestsPerIpPerMinute: max } = settings()
    if (max === 0 || isExempt(ctx)) return undefined
    const requester = requesterOf(ctx.req)
    const key = `requests:${networkOf(requester.address)}`
    const { count, msToEnd } = await limits.hit(key, MINUTE_MS, max)
    if (count <= max) return undefined
    const type = EVENTS[ctx.path]
    if (count === max + 1 && type)
      await audit({ id: newId(), type, at: clock.now(), reason: 'too_many_requests', ...requester })
    return Math.max(1, Math.ceil(msToEnd / 1000))
  }
}

// By the server, because a closed connection has no address either.
function isUnixSocket(socket: Socket): boolean {
  const server: unknown = Reflect.get(socket, 'server')
  return server instanceof Server && typeof server.address() === 'string'
}
