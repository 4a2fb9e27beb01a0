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
