/** Who sent a request, by which network it counts, and how many forms that network may send. */
import ipaddr from 'ipaddr.js'
import type { Context } from 'koa'
import type { IncomingMessage } from 'node:http'
import { Server, type Socket } from 'node:net'
import type { Clock } from '../clock.ts'
import type { AuditEvent, Log, Requester } from '../contract/index.ts'
import { newId } from '../crypto/token.ts'
import { ipOf, isLoopbackHost } from '../settings/addresses.ts'
import type { Settings } from '../settings/table.ts'
import type { RateLimits } from '../store/index.ts'
import { acceptedTags, keptTags } from '../views/languages.ts'
import type { Visit } from './routes.ts'

const MAX_USER_AGENT = 256

/**
 * Who sent a request, and which language its mail should have. The address is that of the connection. Behind `trustedProxies` proxies that
 * append to `X-Forwarded-For`, it is the one that the outermost of them saw.
 */
export function requesterOf(req: IncomingMessage, trustedProxies: number): Requester {
  const forwarded = [req.headers['x-forwarded-for']].flat().join(',').split(',')
  const hops = forwarded.map((hop) => hop.trim()).filter((hop) => hop !== '')
  const address = trustedProxies > 0 ? hops.at(-Math.min(trustedProxies, hops.length)) : undefined
  const acceptLanguage = keptTags(acceptedTags(req.headers['accept-language'] ?? ''), ',')
  return {
    address: (address ?? req.socket.remoteAddress)?.slice(0, 64),
    userAgent: req.headers['user-agent']?.slice(0, MAX_USER_AGENT),
    ...(acceptLanguage !== undefined && { acceptLanguage }),
  }
}

/** Requests without a readable address share one bucket. */
const UNKNOWN = 'unknown'
/** An IPv4 address written as IPv6 (RFC 6052, 2.1). */
const NAT64 = ipaddr.IPv6.parse('64:ff9b::')

/**
 * The key that requests are counted by. An IPv4 address counts as it is, also inside an IPv6 address (mapped, NAT64 or 6to4). Otherwise all
 * clients behind a translator would share one bucket. Other IPv6 addresses count by their /64, as one household or server has.
 */
export function networkOf(address: string | undefined, bits: 48 | 64 = 64): string {
  const ip = ipOf(withoutPort(address))
  if (!ip) return UNKNOWN
  if (ip instanceof ipaddr.IPv4) return ip.toString()
  const bytes = ip.toByteArray()
  if (ip.match(NAT64, 96)) return bytes.slice(12).join('.')
  if (ip.range() === '6to4') return bytes.slice(2, 6).join('.')
  const groups = ip.parts.slice(0, bits / 16).map((part) => part.toString(16))
  return `${groups.join(':')}::/${bits}`
}

/** The queue for hashing counts by /48. */
export const hashQueueOf = ({ address }: Requester): string => networkOf(address, 48)

// Some proxies write a port behind the address.
function withoutPort(address = ''): string {
  const [, bracketed, bare] = /^\[([^\]]*)\](?::\d+)?$|^([\d.]+):\d+$/.exec(address) ?? []
  return bracketed ?? bare ?? address
}

const MINUTE_MS = 60_000

/** The event that is recorded, once for each network and window. */
export type TooMany = Extract<AuditEvent, { reason: 'too_many_requests' }>['type']

export interface CountingParts {
  limits: RateLimits
  settings(): Settings
  audit(event: AuditEvent): Promise<void>
  clock: Clock
  log: Log
}

/**
 * Counts a form, and returns for how many seconds its network has to wait. `undefined`: it is within the limit. All forms share one bucket.
 * It does not read the form, so the answer says nothing about an account. Without `trustedProxies`, it ignores forwarding headers.
 */
export function createRequestLimit(parts: CountingParts, trustedProxies: number) {
  const { limits, settings, audit, clock, log } = parts
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

  return async ({ ctx, requester }: Visit, type: TooMany): Promise<number | undefined> => {
    warnOfUndeclaredProxy(ctx)
    const { requestsPerIpPerMinute: max } = settings()
    if (max === 0 || isExempt(ctx)) return undefined
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
