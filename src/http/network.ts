import { BlockList, isIPv4, isIPv6 } from 'node:net'

/**
 * The network that an address stands for in limits (D21): an IPv4 address is one by itself, also where it is written as an IPv6
 * address; of other IPv6 addresses anybody has 2^64, and their /64 counts. All that is no address counts as one network.
 */
export function networkOf(address: string | undefined): string {
  const bare = withoutPort(address ?? '').replace(/%.*$/, '')
  if (isIPv4(bare)) return bare
  if (!isIPv6(bare)) return 'unknown'
  const groups = groupsOf(bare)
  const isMapped = groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff
  if (isMapped) return groups.slice(6).flatMap(bytesOf).join('.')
  const network = groups.slice(0, 4).map((group) => group.toString(16))
  return `${network.join(':')}::/64`
}

const loopback = new BlockList()
loopback.addSubnet('127.0.0.0', 8, 'ipv4')
loopback.addAddress('::1', 'ipv6')

export function isLoopback(address = ''): boolean {
  return loopback.check(address, isIPv6(address) ? 'ipv6' : 'ipv4')
}

// As some proxies write it.
function withoutPort(address: string): string {
  const match = /^\[([^\]]*)\](?::\d+)?$/.exec(address) ?? /^([\d.]+):\d+$/.exec(address)
  return match?.[1] ?? address
}

// A URL writes an address in one form only, with numbers alone.
function groupsOf(address: string): number[] {
  const written = new URL(`http://[${address}]`).hostname.slice(1, -1)
  const [left = [], right = []] = written
    .split('::')
    .map((half) => (half === '' ? [] : half.split(':')).map((group) => Number.parseInt(group, 16)))
  return [...left, ...Array<number>(8 - left.length - right.length).fill(0), ...right]
}

function bytesOf(group: number): [number, number] {
  return [group >> 8, group & 0xff]
}
