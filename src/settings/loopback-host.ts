import { isIP, isIPv6 } from 'node:net'
import ipaddr from 'ipaddr.js'

/**
 * Whether a host name, an IP address or the host of a URL means this machine. That is `localhost` and names below it (RFC
 * 6761), in any case. Or `127.0.0.0/8`, also mapped to IPv6. Or `::1`, with or without brackets. There is no DNS look-up, so no
 * other name counts.
 */
export function isLoopbackHost(host: string): boolean {
  const bare = host.replace(/^\[(.*)\]$/, '$1')
  return ipOf(bare)?.range() === 'loopback' || /^([a-z0-9-]+\.)*localhost$/i.test(bare)
}

/** Whether others can read what goes there and back. */
export function isInTheClear({ protocol, hostname }: URL): boolean {
  return protocol === 'http:' && !isLoopbackHost(hostname)
}

/** An address, an IPv4 one also where it is mapped to IPv6. `undefined`: the text is none, or not in one of the usual spellings. */
export function ipOf(text: string): ipaddr.IPv4 | ipaddr.IPv6 | undefined {
  if (!isIP(text)) return undefined
  if (!isIPv6(text)) return ipaddr.IPv4.parse(text)
  // A zone id names an interface of ours (RFC 4007, 11). The library takes `::192.0.2.1`, which is no mapped address, for one.
  const { hostname } = new URL(`http://[${text.replace(/%.*/s, '')}]`)
  return ipaddr.process(hostname.slice(1, -1))
}
