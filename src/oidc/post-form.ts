import { lookup } from 'node:dns'
import { request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import type { LookupFunction } from 'node:net'
import ipaddr from 'ipaddr.js'
import { isJsonObject, must, reachCodeOf } from '../errors.ts'
import { ipOf } from '../settings/addresses.ts'

/** How clients are notified that an account is signed out. */
export interface ClientLogoutOptions {
  /** `false` by default. With `true`, each person who may register a client can make us send requests into your networks. */
  allowPrivateNetworks?: boolean
}

export function checkClientLogout(option: ClientLogoutOptions = {}): boolean {
  const { allowPrivateNetworks = false }: ClientLogoutOptions = Object(option)
  const isGood = isJsonObject(option) && typeof allowPrivateNetworks === 'boolean'
  must(isGood, 'clientLogout must be an object with allowPrivateNetworks: true or false')
  return allowPrivateNetworks
}

const REFUSED = 'refused_address'
const NOT_REACHED = 'not_reached'
/** Addresses that only look public: that of the host at Azure, and ISATAP, which holds an IPv4 address (RFC 5214, 6.1). */
const LOOKS_PUBLIC = /^168\.63\.129\.16$|:(0|200):5efe:[\da-f]+:[\da-f]+$/
const GLOBAL_UNICAST = ipaddr.IPv6.parse('2000::')

/** `false` for an address of a private network, of this machine, or for special use. */
export function isPublicAddress(address: string): boolean {
  const ip = ipOf(address)
  if (ip?.range() !== 'unicast' || LOOKS_PUBLIC.test(ip.toNormalizedString())) return false
  return ip.kind() === 'ipv4' || ip.match(GLOBAL_UNICAST, 3)
}

export type PostForm = ReturnType<typeof createPostForm>

/**
 * It resolves to `undefined` for the status 200 or 204. Otherwise to the reason: `http_` and the status, `refused_address`, or the code of
 * the system in lower case. It follows no redirect, uses no proxy, and reads no body. It never throws, and ends at once with the signal.
 */
export function createPostForm(allowPrivateNetworks: boolean) {
  return (uri: string, form: Record<string, string>, signal: AbortSignal) =>
    new Promise<string | undefined>((resolve) => {
      const url = new URL(uri)
      const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
      // Node calls `lookup` only for names.
      if (!allowPrivateNetworks && ipOf(host) && !isPublicAddress(host)) return resolve(REFUSED)
      const body = new URLSearchParams(form).toString()
      const request = url.protocol === 'https:' ? requestHttps : requestHttp
      const posting = request(url, {
        method: 'POST',
        headers: {
          'Content-Type': 'application/x-www-form-urlencoded',
          'Content-Length': Buffer.byteLength(body),
        },
        // A new connection, so that its address is checked.
        agent: false,
        signal,
        ...(!allowPrivateNetworks && { lookup: lookupPublic }),
      })
      posting.on('response', (response) => {
        const { statusCode: status } = response
        response.destroy()
        resolve(status === 200 || status === 204 ? undefined : `http_${status}`)
      })
      posting.on('error', (error) => resolve(reachCodeOf(error, NOT_REACHED).toLowerCase()))
      // If the answer changes the protocol, neither `response` nor `error` comes.
      posting.on('close', () => resolve(NOT_REACHED))
      posting.end(body)
    })
}

/** Finds only public addresses. The connection goes to the address that it finds, so no second look-up can differ. */
const lookupPublic: LookupFunction = (host, options, answer) => {
  lookup(host, { ...options, all: true }, (error, found) => {
    const allowed = error ? [] : found.filter(({ address }) => isPublicAddress(address))
    const [first] = allowed
    if (first && options.all) answer(null, allowed)
    else if (first) answer(null, first.address, first.family)
    else answer(error ?? Object.assign(new Error(REFUSED), { code: REFUSED }), [])
  })
}
