/**
 * Whether two addresses are the same but for the case of ASCII letters. `toLowerCase` would take the Kelvin sign for
 * a `k`, and so one person's address for another's.
 */
export function equalsInAsciiCase(one: string, other: string): boolean {
  return foldAscii(one) === foldAscii(other)
}

function foldAscii(text: string): string {
  return text.replace(/[A-Z]/g, (letter) => letter.toLowerCase())
}
