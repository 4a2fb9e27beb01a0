import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { ROOT, sourcesIn } from './support/sources.ts'

/** `4.2` of a heading, and `4.2.3` of a rule below it; the rules of section 5 are 5.1 and so on. */
function placesOf(specification: string): Set<string> {
  const places = new Set<string>()
  let section = ''
  for (const line of specification.split('\n')) {
    const [, heading, rule] = /^#+ (\d(?:\.\d)?)\.? |^(\d)\. /.exec(line) ?? []
    if (heading !== undefined) section = heading
    if (heading ?? rule) places.add(rule === undefined ? section : `${section}.${rule}`)
  }
  return places
}

/** `(3.1, 3.3)`, `(4.1 to 4.4)`, `(4.2.3)`: sections 2 to 8 have parts, and nothing else in brackets looks like them. */
function citedIn(text: string): string[] {
  const lists = text.matchAll(/(?<![\w.])\((?<list>[2-8](?:\.\d)+(?:(?:, | to )[2-8](?:\.\d)+)*)/g)
  return [...lists].flatMap(({ groups }) => groups?.['list']?.split(/, | to /) ?? [])
}

describe('Comments and titles of tests', () => {
  it('cite sections that docs/specification.md has', async () => {
    const places = placesOf(await readFile(join(ROOT, 'docs/specification.md'), 'utf8'))
    const sources = await sourcesIn('src', 'cli', 'test', 'examples')
    const cited = [...sources].flatMap(([file, text]) =>
      citedIn(text).map((place) => ({ file, place })),
    )
    expect(cited.length).to.be.above(100)
    expect(cited.filter(({ place }) => !places.has(place))).to.deep.equal([])
  })
})
