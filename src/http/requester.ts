/** Who sent a request, from which site, and by which network it counts. */
import ipaddr from 'ipaddr.js'
import type { IncomingMessage } from 'node:http'
import type { Requester } from '../contract/index.ts'
import { ipOf } from '../settings/addresses.ts'
import { acceptedTags, keptTags } from '../views/languages.ts'

const MAX_USER_AGENT = 256

// The address is that of the connection. Behind `trustedProxies` proxies, it is the one in `X-Forwarded-For` that the outermost of them
// saw.
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

/**
 * Whether another site sent a form. Such a form is refused, so that no stranger's page acts in the name of its visitor. Our own pages send
 * no referrer, and so `Origin: null`, which counts only with `Sec-Fetch-Site: same-origin`. A client that sends neither header is no browser.
 */
export function isCrossSite({ headers }: IncomingMessage, origin: string): boolean {
  const site = headers['sec-fetch-site'] ?? ''
  if (typeof site !== 'string' || !['', 'same-origin', 'none'].includes(site)) return true
  const from = headers.origin ?? ''
  if (from === '' || from === origin) return false
  return !(from === 'null' && site === 'same-origin')
}

/** An IPv4 address written as IPv6 (RFC 6052, 2.1). */
const NAT64 = ipaddr.IPv6.parse('64:ff9b::')

// An IPv4 address counts as it is, also inside an IPv6 address (mapped, NAT64 or 6to4). Otherwise all clients behind a translator would
// share one bucket. Other IPv6 addresses count by their /64, as one household or server has.
export function networkOf(address: string | undefined, bits: 48 | 64 = 64): string {
  const ip = ipOf(withoutPort(address))
  // Requests without a readable address share one bucket.
  if (!ip) return 'unknown'
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
