import { sourcesIn } from '../support/sources.ts'

/** A deliberately broken variant of the product, and the tests that must notice it. */
export interface Mutant {
  name: string
  /** The promise that it breaks. */
  breaks: string
  /** A text that is in one place of the product, white space aside, and what it becomes. */
  edits: Record<string, string>
  /** In the title of each of the tests: the id of a class of `docs/attacks.md`, or, where none has such a test, words. */
  caughtBy: string
  /** Where the tests run; in memory by default. */
  store?: 'mongodb'
}

const product = await sourcesIn('src', 'cli')

/** However a formatter breaks the lines of `text`, with the commas that it then adds. */
function patternOf(text: string): RegExp {
  const tokens = text.match(/\w+|[^\w\s]/g) ?? []
  const patterns = tokens.map((token) => {
    const pattern = token.replace(/\W/, String.raw`\$&`)
    return /[)\]}]/.test(token) ? `,?\\s*${pattern}` : pattern
  })
  return new RegExp(patterns.join(String.raw`\s*`), 'g')
}

/** The changed files, by name, and the texts that are not in exactly one place. */
export function applied({ edits }: Mutant): { changed: Map<string, string>; stale: string[] } {
  const changed = new Map<string, string>()
  const stale: string[] = []
  for (const [find, replace] of Object.entries(edits)) {
    const pattern = patternOf(find)
    const places = [...product].flatMap(([file, text]) =>
      [...(changed.get(file) ?? text).matchAll(pattern)].map((match) => ({ file, match })),
    )
    const [place] = places
    if (!place || places.length > 1) stale.push(`in ${places.length} places: ${find}`)
    else {
      const { file, match } = place
      const end = match.index + match[0].length
      changed.set(file, match.input.slice(0, match.index) + replace + match.input.slice(end))
    }
  }
  return { changed, stale }
}
