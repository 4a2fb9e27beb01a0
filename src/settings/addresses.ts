/** Checks hosts and mail addresses, and finds those that mean the same. */
import { isIP, isIPv6 } from 'node:net'
import ipaddr from 'ipaddr.js'

/** Whether a host name, an IP address or the host of a URL means this machine. Of names, only `localhost` and those below it (RFC 6761). */
export function isLoopbackHost(host: string): boolean {
  const bare = host.replace(/^\[(.*)\]$/, '$1')
  return ipOf(bare)?.range() === 'loopback' || /^([a-z0-9-]+\.)*localhost$/i.test(bare)
}

/** Whether others on the network can read what goes to this address and back. */
export function isInTheClear({ protocol, hostname }: URL): boolean {
  return protocol === 'http:' && !isLoopbackHost(hostname)
}

/** The IP address that the text means. An IPv4 address mapped to IPv6 becomes IPv4. */
export function ipOf(text: string): ipaddr.IPv4 | ipaddr.IPv6 | undefined {
  if (!isIP(text)) return undefined
  if (!isIPv6(text)) return ipaddr.IPv4.parse(text)
  // A zone id names an interface of this machine (RFC 4007, 11). The library mistakes the text `::192.0.2.1` for a mapped address.
  const { hostname } = new URL(`http://[${text.replace(/%.*/s, '')}]`)
  return ipaddr.process(hostname.slice(1, -1))
}

const ATOM = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
const LABEL = '[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?'
const ADDRESS = new RegExp(`^(?=.{1,64}@)${ATOM}(?:\\.${ATOM})*@${LABEL}(?:\\.${LABEL})*$`)

/**
 * Whether this is one plain address, without display name, list, comment, quoted part or domain literal. ASCII only, because a mail library
 * maps other letters to lookalikes; international domains come as `xn--`.
 */
export function isMailAddress(value: string): boolean {
  return value.length <= 254 && ADDRESS.test(value)
}

/** As much of an address as its owner needs to see a slip in it: `b•••@example.com`. `undefined`: no mail can go there. */
export const maskedAddress = (address = ''): string | undefined =>
  isMailAddress(address) ? address.replace(/^(.)[^@]*/, '$1•••') : undefined

/** The same text for all addresses that are surely one mailbox: in any case, with any tag, and at Gmail with any dots. */
export function mailboxOf(address: string): string {
  const [, mailbox = '', domain = ''] =
    /^(.[^+@]*)(?:\+[^@]*)?(@.*)$/.exec(address.toLowerCase()) ?? []
  const isGmail = domain === '@gmail.com' || domain === '@googlemail.com'
  return isGmail ? `${withoutDots(mailbox)}@gmail.com` : mailbox + domain
}

/** The same text for all addresses that many mail servers put into one mailbox. It is for counting, and identifies no person. */
export function mailboxKey(address: string): string {
  const [mailbox = '', domain = ''] = mailboxOf(address).split('@')
  return `${withoutDots(mailbox)}@${domain}`
}

const withoutDots = (text: string) => text.replaceAll('.', '')
