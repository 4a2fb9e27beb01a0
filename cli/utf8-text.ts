import { usageError } from './exit-codes.ts'

/** What Node puts in place of bytes of an argument or a variable that are not UTF-8. */
const REPLACEMENT = '\uFFFD'

/** @param what - names the text in the refusal, which does not repeat it. */
export function utf8Text(text: string, what: string): string {
  if (text.includes(REPLACEMENT)) throw usageError(`${what} is not UTF-8 text.`)
  return text
}
