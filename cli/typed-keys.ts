const ESCAPE = '\u001B'
const SEQUENCE = new RegExp(String.raw`${ESCAPE}(?:\[\[?[\x20-\x3F]*[\x40-\x7E]|O[\x40-\x7E])`, 'g')
const BEGUN_SEQUENCE = new RegExp(String.raw`${ESCAPE}(?:\[{1,2}[\x20-\x3F]*|O)?$`)

/** Reads what a terminal sends, piece by piece, without what arrow keys and their like send. */
export function typedKeys(): (chunk: string) => string {
  let begun = ''
  return (chunk) => {
    const text = (begun + chunk).replace(SEQUENCE, '')
    begun = BEGUN_SEQUENCE.exec(text)?.[0] ?? ''
    return text.slice(0, text.length - begun.length)
  }
}
