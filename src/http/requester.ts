import type { IncomingMessage } from 'node:http'
import { acceptedTags, keptTags } from '../views/language-tags.ts'
import type { Requester } from '../ports/index.ts'

const MAX_USER_AGENT = 256

/**
 * Who sent a request, for the audit log, and what it says of the language of its mail. The address is that of the connection, or, behind `trustedProxies` proxies that each
 * append to `X-Forwarded-For`, the one that the outermost of them saw.
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
