/**
 * The limit of forms from one network (`requests_per_ip_per_minute`). All forms share one bucket. It does not read the form, so its answer
 * says nothing about an account.
 */
import { Server, type Socket } from 'node:net'
import type { Context } from 'koa'
import type { AuditEvent, Requester } from '../contract/index.ts'
import { newId } from '../crypto/token.ts'
import type { CommonParts } from '../flows/parts.ts'
import { isLoopbackHost } from '../settings/addresses.ts'
import type { RateLimits } from '../store/index.ts'
import { networkOf } from './requester.ts'

const MINUTE_MS = 60_000

/** The event that is recorded for the first form over the limit. */
export type TooMany = Extract<AuditEvent, { reason: 'too_many_requests' }>['type']

export interface RequestLimitParts extends CommonParts {
  limits: RateLimits
  trustedProxies: number
}

/** Returns for how many seconds the network of a form has to wait. `undefined`: it is within the limit. */
export function createRequestLimit(parts: RequestLimitParts) {
  const { limits, trustedProxies, settings, audit, clock, log } = parts
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
  const isExempt = ({ socket }: Context['req']) =>
    trustedProxies === 0 && (isLoopbackHost(socket.remoteAddress ?? '') || isUnixSocket(socket))

  return async (ctx: Context, requester: Requester, type: TooMany) => {
    warnOfUndeclaredProxy(ctx)
    const { requestsPerIpPerMinute: max } = settings()
    if (max === 0 || isExempt(ctx.req)) return undefined
    const key = `requests:${networkOf(requester.address)}`
    const { count, msToEnd } = await limits.hit(key, MINUTE_MS, max)
    if (count <= max) return undefined
    if (count === max + 1)
      await audit({ id: newId(), type, at: clock.now(), reason: 'too_many_requests', ...requester })
    return Math.max(1, Math.ceil(msToEnd / 1000))
  }
}

// Asks the server, because a closed connection has no address either.
function isUnixSocket(socket: Socket): boolean {
  const server: unknown = Reflect.get(socket, 'server')
  return server instanceof Server && typeof server.address() === 'string'
}
