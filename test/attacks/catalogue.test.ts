import { readFile } from 'node:fs/promises'
import { expect } from 'chai'
import { testTitles } from './test-titles.ts'

const ROOT = new URL('../../', import.meta.url)

/** The classes of attacks, by section. */
const CLASSES: Record<string, string> = {
  ENU: '01 02 03 04 05 06 07 08 09 10 12 13',
  TIM: '01 02 03 05 06 07 08 09 10 12',
  TOK: '01 02 03 04 05 06 07 08 09 10 11 12 13 14 16 17 18 19 21 22 23 24 25',
  RACE: '01 02 03 04 05 06 07 08 09 10 11 12 13 14',
  SES: '01 02 03 04 06 07 08 09 11 12 13 14 15 16 17 18 19 20 21 22',
  LINK: '01 02 03 04 05 06 07 08 09 10 12 14',
  VER: '01 02 03 04 05 06 07 08 09 10 11 12 13 15 16 17 18 19 20 21 22 23 24 25 26',
  SIG: '01 02 03 04 05 07 08 11 12 13 15 16 17',
  RED: '01 02 03 04 05 06 07 11 12 13 14 15',
  INJ: '01 02 03 04 05 06 07 08 09 11 13',
  XSS: '01 02 03 04 05 06 08 09 10',
  MAIL: '01 02 04 05 06 07 08 09 10 11 12 13 14 15',
  IDN: '01 02 04 05 07 08 09 11 12 13 14',
  PWD: '01 02 03 05 06 07 08 09 10 11 12 13 14 15 16 17 18 19 20',
  RATE: '01 02 04 06 07 08 09 10 11 12 13 14 15 16 17 28',
  FLT: '01 02 03 04 05 06 07 08 09 10 11 12 13 14 15 17 18 19 20 22 23 24',
  ADM: '01 03 04 05 07 08 09 10 11 12 13 14 15',
  SET: '01 03 04 05 06 07 08 09 10 11 12 13 14 16 17 18',
  LOG: '01 02 04 06 07 08 09 10 11 12',
  CLI: '01 02 03 04 07 08',
  NOT: '01 02 03 04 05 06 07 08 09 11 12 13 14 15',
  HDR: '01 02 03 04 05 07 08 09 10 11 12 13',
}

const read = (path: string) => readFile(new URL(path, ROOT), 'utf8')
const matches = (text: string, pattern: RegExp) =>
  [...text.matchAll(pattern)].map(([, id = '']) => id)
const without = (ids: string[], others: string[]) => ids.filter((id) => !others.includes(id))

const classes = Object.entries(CLASSES).flatMap(([section, numbers]) =>
  numbers.split(' ').map((number) => `${section}-${number}`),
)
const attacks = await read('docs/attacks.md')
const security = await read('SECURITY.md')
const titles = await testTitles()
/** With a reason. */
const untested = matches(security, /^- ([A-Z]+-\d+): \w/gm)

/** A row ends in ids with the file of a test that shows them, or with "no test". */
const shown = attacks.split(/^## /m).flatMap((section) => {
  const subjects = /\(([A-Z, ]+)\)$/m.exec(section)?.[1] ?? ''
  return matches(section, /^\|.*\| +(\S[^|]*?) +\|$/gm).flatMap((cell) =>
    cell.split('; ').flatMap((part) => {
      const file = /`(.+)`$/.exec(part)?.[1]
      return matches(part, /([A-Z]+-\d+)/g).map((id) => ({ id, file, subjects }))
    }),
  )
})

describe('The classes of attacks', () => {
  it('are each once in docs/attacks.md, in their section', () => {
    expect(shown.map(({ id }) => id)).to.have.members(classes)
    const astray = shown.filter(({ id, subjects }) => !subjects.includes(id.split('-')[0] ?? id))
    expect(astray).to.deep.equal([])
  })

  it('are in the title of a test in the file that docs/attacks.md names, or SECURITY.md says why not', () => {
    const isShown = ({ id, file }: (typeof shown)[number]) =>
      titles.some((test) => test.title.includes(id) && test.file.includes(`/${file}.`))
    const notShown = shown.filter((row) => row.file !== undefined && !isShown(row))
    expect(notShown).to.deep.equal([])
    const notTested = shown.filter(({ file }) => file === undefined).map(({ id }) => id)
    expect(notTested).to.have.members(untested)
  })

  it('are all that titles of tests name', () => {
    const ids = Object.keys(CLASSES).join('|')
    const named = titles.flatMap(({ title }) =>
      matches(title, new RegExp(`\\b((?:${ids})-\\d+)`, 'g')),
    )
    expect(without(named, without(classes, untested))).to.deep.equal([])
  })
})

describe('SECURITY.md', () => {
  it('names only tests that exist', () => {
    const files = matches(security, /`(test\/[^`]+\.ts)`/g)
    expect(files.length).to.be.greaterThan(10)
    expect(titles.map(({ file }) => file)).to.include.members(files)
  })
})
