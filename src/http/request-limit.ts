import type { IncomingMessage } from 'node:http'
import type { Context } from 'koa'
import { newId } from '../crypto/token.ts'
import type { AuditEvent, Log, RateLimitStore, Requester } from '../ports.ts'
import type { Settings } from '../settings/table.ts'
import { isLoopback, networkOf } from './network.ts'

const MINUTE_MS = 60_000

export interface RequestLimitParts {
  limits: RateLimitStore
  settings(): Settings
  trustedProxies: number
  requesterOf(ctx: Context): Requester
  audit(event: AuditEvent): Promise<void>
  log: Log
}

/**
 * Counts a form that was sent, and tells whether the network that sent it may go on. Nothing of the form is looked at (D21).
 *
 * @returns `undefined`: it may; otherwise after how many seconds it may again.
 */
export type RequestLimit = (ctx: Context) => Promise<number | undefined>

export function createRequestLimit(parts: RequestLimitParts): RequestLimit {
  const { limits, settings, trustedProxies, requesterOf, audit, log } = parts
  let isTold = false

  // Then each visitor is limited together with all others.
  function tellOfProxy({ headers }: IncomingMessage) {
    if (isTold || !(headers['x-forwarded-for'] ?? headers['forwarded'])) return
    isTold = true
    log('warn', 'a proxy is in front, and trustedProxies is 0: limits take it for the visitor')
  }

  return async (ctx) => {
    const requester = requesterOf(ctx)
    if (trustedProxies === 0) {
      tellOfProxy(ctx.req)
      if (isLoopback(requester.address)) return undefined
    }
    const { count, endsInMs } = await limits.count(
      `network:${networkOf(requester.address)}`,
      MINUTE_MS,
    )
    const { requestsPerIpPerMinute: most } = settings()
    if (count <= most) return undefined
    if (count === most + 1) {
      const event = { id: newId(), type: 'requests_limited', at: new Date() } as const
      await audit({ ...event, ...requester, details: { path: ctx.path } })
    }
    return Math.max(1, Math.ceil(endsInMs / 1000))
  }
}
