import { sourcesIn } from '../support/folders.ts'

/** As it is written where a suite, a test or a row of a table begins: of a template, its source. */
interface TestTitle {
  /** From the root of the checkout. */
  file: string
  title: string
}

/** Not in a comment, and not of a test that is skipped. */
const TITLE =
  /^ *(?:(?:it|describe|on[A-Z])\w*\(|\[)\s*('(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`)/gm

/** The titles of all suites and tests, and the first texts of all rows, which are titles too in tables of tests. */
export async function testTitles(): Promise<TestTitle[]> {
  return [...(await sourcesIn('test', 'src/contract'))].flatMap(([file, text]) =>
    [...text.matchAll(TITLE)].map(([, title = '']) => ({ file, title: title.slice(1, -1) })),
  )
}
