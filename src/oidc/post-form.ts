import { lookup } from 'node:dns'
import { request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import type { LookupFunction } from 'node:net'
import ipaddr from 'ipaddr.js'
import { reachCodeOf } from '../answer.ts'
import { must } from '../production.ts'
import { ipOf } from '../settings/loopback-host.ts'

/** How clients are told of an ended account. */
export interface ClientLogoutOptions {
  /** `false` by default. With `true`, whoever may register a client can have requests sent into your networks. */
  allowPrivateNetworks?: boolean
}

/** @throws TypeError where the option is something else. */
export function checkClientLogout(option: ClientLogoutOptions = {}): boolean {
  const { allowPrivateNetworks = false }: ClientLogoutOptions = Object(option)
  const isGood = typeof option === 'object' && option && typeof allowPrivateNetworks === 'boolean'
  must(isGood, 'clientLogout must be an object with allowPrivateNetworks: true or false')
  return allowPrivateNetworks
}

const REFUSED = 'refused_address'
const NOT_REACHED = 'not_reached'
/** That of the host at Azure, and ISATAP, which holds an IPv4 address (RFC 5214, 6.1). */
const LOOKS_PUBLIC = /^168\.63\.129\.16$|:(0|200):5efe:[\da-f]+:[\da-f]+$/
const GLOBAL_UNICAST = ipaddr.IPv6.parse('2000::')

/** Whether it is an address that anybody on the internet has; none of a private network, of this machine or for special use. */
export function isPublicAddress(address: string): boolean {
  const ip = ipOf(address)
  if (ip?.range() !== 'unicast' || LOOKS_PUBLIC.test(ip.toNormalizedString())) return false
  return ip.kind() === 'ipv4' || ip.match(GLOBAL_UNICAST, 3)
}

export type PostForm = ReturnType<typeof createPostForm>

/**
 * Posts a form, and answers `undefined` where the status is 200 or 204. Otherwise it answers why not: `http_` and the status,
 * `refused_address`, or the code of the system in lower case, such as `econnrefused`. No redirect is followed, no proxy is asked,
 * and no body is read. It never throws. Once the signal aborts, it answers at once.
 *
 * @param allowsPrivate - clients in private networks and on this machine are reached too.
 */
export function createPostForm(allowsPrivate: boolean) {
  return (uri: string, form: Record<string, string>, signal: AbortSignal) =>
    new Promise<string | undefined>((resolve) => {
      const url = new URL(uri)
      const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
      // Of an address nothing is looked up.
      if (!allowsPrivate && ipOf(host) && !isPublicAddress(host)) return resolve(REFUSED)
      const body = new URLSearchParams(form).toString()
      const request = url.protocol === 'https:' ? requestHttps : requestHttp
      const posting = request(url, {
        method: 'POST',
        headers: {
          'Content-Type': 'application/x-www-form-urlencoded',
          'Content-Length': Buffer.byteLength(body),
        },
        // A connection of its own, to an address that was looked at.
        agent: false,
        signal,
        ...(!allowsPrivate && { lookup: lookupPublic }),
      })
      posting.on('response', (response) => {
        const { statusCode: status } = response
        response.destroy()
        resolve(status === 200 || status === 204 ? undefined : `http_${status}`)
      })
      posting.on('error', (error) => resolve(reachCodeOf(error, NOT_REACHED).toLowerCase()))
      // With neither of both where it is asked to change the protocol.
      posting.on('close', () => resolve(NOT_REACHED))
      posting.end(body)
    })
}

/** Answers only public addresses. What it answers is connected to, so that a second look-up cannot answer otherwise. */
const lookupPublic: LookupFunction = (host, options, answer) => {
  lookup(host, { ...options, all: true }, (error, found) => {
    const allowed = error ? [] : found.filter(({ address }) => isPublicAddress(address))
    const [first] = allowed
    if (first && options.all) answer(null, allowed)
    else if (first) answer(null, first.address, first.family)
    else answer(error ?? Object.assign(new Error(REFUSED), { code: REFUSED }), [])
  })
}
