import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))

/** As it is written where a suite or a test begins: of a template, its source. */
export interface TestTitle {
  /** From the root of the checkout. */
  file: string
  title: string
}

/** Not in a comment, and not of a test that is skipped. */
const TITLE = /^ *(?:it|describe|on[A-Z])\w*\(\s*('(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`)/gm

/** The titles of all suites and tests. */
export async function testTitles(): Promise<TestTitle[]> {
  const titles: TestTitle[] = []
  for (const folder of ['test', 'src/contract']) {
    for (const name of await readdir(join(ROOT, folder), { recursive: true })) {
      if (!name.endsWith('.ts')) continue
      const file = `${folder}/${name}`
      const text = await readFile(join(ROOT, file), 'utf8')
      for (const [, title = ''] of text.matchAll(TITLE)) {
        titles.push({ file, title: title.slice(1, -1) })
      }
    }
  }
  return titles
}
