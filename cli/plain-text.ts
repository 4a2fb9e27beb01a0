import { usageError } from './exit-codes.ts'

/** What a server says must not steer the terminal that shows it. */
export function plain(text: string): string {
  return text.replace(/[\s\u2028\u2029]/gu, ' ').replace(/\p{C}/gu, '')
}

/** The same for text of several lines. */
export function plainLines(text: string): string {
  return text.replace(/\r\n?/g, '\n').split('\n').map(plain).join('\n')
}

/** A copy, with every text in it made plain; names of properties too. */
export function plainAnswer<T>(answer: T, textOf = plain): T {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the shape stays
  return plainValue(answer, textOf) as T
}

function plainValue(value: unknown, textOf: (text: string) => string): unknown {
  if (typeof value === 'string') return textOf(value)
  if (Array.isArray(value)) return value.map((each) => plainValue(each, textOf))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [plain(name), plainValue(inner, textOf)]),
  )
}

/** JSON that says the same to a program, and nothing to a terminal. */
export function plainJson(value: unknown, indent?: number): string {
  return JSON.stringify(value, undefined, indent).replace(/[\p{C}\u2028\u2029]/gu, (character) =>
    character === '\n' ? character : escaped(character),
  )
}

function escaped(character: string): string {
  return Array.from({ length: character.length }, (_, index) => {
    const unit = character.charCodeAt(index).toString(16).padStart(4, '0')
    return `\\u${unit}`
  }).join('')
}

/** What Node puts in place of bytes of an argument or a variable that are not UTF-8. */
const REPLACEMENT = '\uFFFD'

/** @param what - names the text in the refusal, which does not repeat it. */
export function utf8Text(text: string, what: string): string {
  if (text.includes(REPLACEMENT)) throw usageError(`${what} is not UTF-8 text.`)
  return text
}
