/** Where the mail of these domains is read. */
const MAILBOXES = [
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

/** By the typed text alone. `undefined`: it is no address, or of another domain. */
export function mailboxOf(address = '') {
  const domain = address.includes('@') ? (address.split('@').at(-1) ?? '').trim().toLowerCase() : ''
  return MAILBOXES.find(({ domains }) => domains.test(domain))
}
