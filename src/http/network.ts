import { BlockList, isIPv4, isIPv6 } from 'node:net'

/** `2002::/16`, of which whoever has one IPv4 address has a /48 (RFC 3056). */
const SIX_TO_FOUR = 0x2002

/** `::ffff:0:0/96` and `64:ff9b::/96`. */
const EMBEDDING = new Set(['0:0:0:0:0:65535', '100:65435:0:0:0:0'])

/** Whoever cannot be told apart shares one bucket. */
const UNKNOWN = 'unknown'

const loopback = new BlockList()
loopback.addSubnet('127.0.0.0', 8)
loopback.addAddress('::1', 'ipv6')

/** Whether the peer is on this machine. */
export function isLoopback(address: string | undefined): boolean {
  const bare = bareAddress(address)
  if (isIPv4(bare)) return loopback.check(bare)
  return isIPv6(bare) && loopback.check(bare, 'ipv6')
}

/**
 * What requests are counted by: an IPv4 address as it is, also where it is written as IPv6 (`::ffff:192.0.2.1`); of an
 * IPv6 address the /64, which one household or one server has to itself, however it is spelled.
 */
export function networkOf(address: string | undefined): string {
  const bare = bareAddress(address)
  const embedded = embeddedIPv4(bare)
  if (embedded !== undefined) return embedded
  if (!isIPv6(bare)) return UNKNOWN
  return `${groupsOf(bare)
    .slice(0, 4)
    .map((group) => group.toString(16))
    .join(':')}::/64`
}

// Some proxies write a port behind the address; a zone id names an interface of ours (RFC 4007, 11).
function bareAddress(address = ''): string {
  const [, bracketed, withPort] = /^\[([^\]]*)\](?::\d+)?$|^([\d.]+):\d+$/.exec(address) ?? []
  return (bracketed ?? withPort ?? address).replace(/%.*/s, '')
}

/** RFC 4291, 2.5.5.2, and RFC 6052, 2.1: otherwise everybody behind one translator would share a bucket. */
function embeddedIPv4(bare: string): string | undefined {
  if (isIPv4(bare)) return bare
  if (!isIPv6(bare)) return undefined
  const groups = groupsOf(bare)
  const isSixToFour = groups[0] === SIX_TO_FOUR
  if (!isSixToFour && !EMBEDDING.has(groups.slice(0, 6).join(':'))) return undefined
  const [high = 0, low = 0] = groups.slice(isSixToFour ? 1 : 6)
  return [high >> 8, high & 255, low >> 8, low & 255].join('.')
}

/** The eight groups of a valid IPv6 address. */
function groupsOf(ipv6: string): number[] {
  const [front = '', back] = ipv6.split('::')
  const before = partsOf(front)
  const after = partsOf(back ?? '')
  const left = back === undefined ? 0 : 8 - before.length - after.length
  return [...before, ...Array<number>(left).fill(0), ...after]
}

function partsOf(text: string): number[] {
  if (text === '') return []
  return text.split(':').flatMap((part) => {
    if (!part.includes('.')) return [Number.parseInt(part, 16)]
    const [a = 0, b = 0, c = 0, d = 0] = part.split('.').map(Number)
    return [a * 256 + b, c * 256 + d]
  })
}
