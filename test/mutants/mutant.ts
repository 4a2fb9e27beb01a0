import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const ROOT = fileURLToPath(new URL('../../', import.meta.url))

/** A deliberately broken variant of the product, and the test that must notice it. */
export interface Mutant {
  name: string
  /** The promise that it breaks. */
  breaks: string
  edits: Edit[]
  caughtBy: Catch
}

/** A test: `words` of its title. */
export interface Catch {
  /** The file to run. */
  file: string
  words: string
  /** Where the words are, if it is a suite that `file` calls. */
  suite?: string
  /** In memory by default. */
  store?: 'memory' | 'mongodb'
}

/** In `file`, the text `find`, which occurs exactly once, becomes `replace`. */
export interface Edit {
  file: string
  find: string
  replace: string
}

/** The changed files, by name. Throws where a text to replace does not occur exactly once. */
export async function applied({ name, edits }: Mutant): Promise<Map<string, string>> {
  const files = new Map<string, string>()
  for (const { file, find, replace } of edits) {
    const text = files.get(file) ?? (await readFile(join(ROOT, file), 'utf8'))
    const [before, after, ...more] = text.split(find)
    if (before === undefined || after === undefined || more.length > 0) {
      throw new Error(`${name} is stale: not exactly once in ${file}: ${find}`)
    }
    files.set(file, before + replace + after)
  }
  return files
}
