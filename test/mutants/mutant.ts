import { parse } from 'node:path'
import { sourcesIn } from '../support/folders.ts'

/** Of the product. */
export interface Edit {
  /** The name of a function or a constant. Where others have it too: its file, without folder and ending, a colon, and the name. */
  in: string
  /** An expression that is in one place of it, white space aside. */
  find: string
  becomes: string
}

/** A deliberately broken variant of the product, and the tests that must notice it. */
export interface Mutant {
  /** What it does wrong. */
  name: string
  /** One after the other. */
  edits: Edit[]
  /** In the title of each of the tests: the id of a class of `docs/attacks.md`, or, where none has such a test, words. */
  caughtBy: string
  /** The tests that run there notice; those in memory otherwise. */
  isOnMongo: boolean
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

/** A declaration, with what is indented below it: all sources are formatted alike. */
function declarationOf(name: string): RegExp {
  const start = String.raw`^( *)(?:export |async |function\*? |const )*${name}(?=[(<:]| =)[^\n]*`
  return new RegExp(String.raw`${start}(?:\n(?:\1 .*|\1[)\]}].*|(?=\n)))*`, 'gm')
}

/** The changed files, by name, and the expressions that are not in exactly one place. */
export function applied({ edits }: Mutant): { changed: Map<string, string>; stale: string[] } {
  const changed = new Map<string, string>()
  const stale: string[] = []
  for (const edit of edits) {
    const places = placesOf(edit, changed)
    const [place] = places
    if (!place || places.length > 1) {
      stale.push(`in ${places.length} places of ${edit.in}: ${edit.find}`)
      continue
    }
    const { file, text, start, end } = place
    changed.set(file, text.slice(0, start) + edit.becomes + text.slice(end))
  }
  return { changed, stale }
}

function placesOf({ in: where, find }: Edit, changed: Map<string, string>) {
  const [name = '', stem] = where.split(':').toReversed()
  const files = [...product.keys()].filter((file) => !stem || parse(file).name === stem)
  return files.flatMap((file) => {
    const text = changed.get(file) ?? product.get(file) ?? ''
    if (!text.includes(name)) return []
    return [...text.matchAll(declarationOf(name))].flatMap((declaration) =>
      [...declaration[0].matchAll(patternOf(find))].map((match) => {
        const start = declaration.index + match.index
        return { file, text, start, end: start + match[0].length }
      }),
    )
  })
}
