const ATOM = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
const LABEL = '[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?'
const ADDRESS = new RegExp(`^(?=.{1,64}@)${ATOM}(?:\\.${ATOM})*@${LABEL}(?:\\.${LABEL})*$`)

/**
 * Whether this is one plain address and nothing else: no display name, list, comment, quoted part or domain literal.
 * ASCII only, because a mail library maps other letters to lookalikes; international domains come as `xn--`.
 */
export function isMailAddress(value: string): boolean {
  return value.length <= 254 && ADDRESS.test(value)
}

/** So much of an address as its owner knows it by: `b•••@e•••.com`. `undefined`: no mail can go there. */
export function maskedAddress(address = ''): string | undefined {
  if (!isMailAddress(address)) return undefined
  const [local = '', domain = ''] = address.split('@')
  const [, end = ''] = /.(\.[^.]*)$/.exec(domain) ?? []
  return `${local.slice(0, 1)}•••@${domain.slice(0, 1)}•••${end}`
}

/** The same for the addresses that are surely one mailbox: in any case, with any tag, and at Gmail with any dots. */
export function mailboxOf(address: string): string {
  const [, mailbox = '', domain = ''] =
    /^(.[^+@]*)(?:\+[^@]*)?(@.*)$/.exec(address.toLowerCase()) ?? []
  const isGmail = domain === '@gmail.com' || domain === '@googlemail.com'
  return isGmail ? `${withoutDots(mailbox)}@gmail.com` : mailbox + domain
}

/** The same for the addresses that many mail servers put into one mailbox. It counts, and identifies nobody. */
export function mailboxKey(address: string): string {
  const [mailbox = '', domain = ''] = mailboxOf(address).split('@')
  return `${withoutDots(mailbox)}@${domain}`
}

const withoutDots = (text: string) => text.replaceAll('.', '')
