/** Where somebody reads mail that comes to an address. */
export interface Mailbox {
  name: string
  href: string
}

const MAILBOXES: readonly (Mailbox & { domains: RegExp })[] = [
  { name: 'Gmail', href: 'https://mail.google.com/', domains: /^(gmail|googlemail)\.com$/ },
  {
    name: 'Outlook',
    href: 'https://outlook.live.com/mail/',
    domains: /^(outlook|hotmail|live)\.(com|[a-z]{2}|com?\.[a-z]{2})$/,
  },
  { name: 'Yahoo! メール', href: 'https://mail.yahoo.co.jp/', domains: /^yahoo\.co\.jp$/ },
  {
    name: 'Yahoo Mail',
    href: 'https://mail.yahoo.com/',
    domains: /^(yahoo|ymail)\.(com|[a-z]{2}|com?\.[a-z]{2})$/,
  },
  { name: 'iCloud Mail', href: 'https://www.icloud.com/mail/', domains: /^(icloud|me|mac)\.com$/ },
]

/** By what was typed, and by nothing else. `undefined`: it is no address, or its mail can be read in many ways. */
export function mailboxOf(address: string | undefined = ''): Mailbox | undefined {
  const domain = address.includes('@') ? (address.split('@').at(-1) ?? '').trim().toLowerCase() : ''
  const found = MAILBOXES.find(({ domains }) => domains.test(domain))
  return found && { name: found.name, href: found.href }
}
