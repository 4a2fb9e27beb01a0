import { readFile } from 'node:fs/promises'
import { expect } from 'chai'
import { ROOT } from '../support/folders.ts'
import { testTitles } from './test-titles.ts'

const read = (path: string) => readFile(ROOT + path, 'utf8')
const matches = (text: string, pattern: RegExp) =>
  [...text.matchAll(pattern)].map(([, id = '']) => id)
const without = (ids: string[], others: string[]) => ids.filter((id) => !others.includes(id))

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

const ids = shown.map(({ id }) => id)

describe('The classes of attacks', () => {
  it('are each once in docs/attacks.md, in their section', () => {
    expect(ids.length).to.be.above(200)
    expect(new Set(ids)).to.have.property('size', ids.length)
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
    const sections = [...new Set(ids.map((id) => id.split('-')[0]))].join('|')
    const named = titles.flatMap(({ title }) =>
      matches(title, new RegExp(`\\b((?:${sections})-\\d+)`, 'g')),
    )
    expect(without(named, without(ids, untested))).to.deep.equal([])
  })
})

describe('SECURITY.md', () => {
  it('names only tests that exist', () => {
    const files = matches(security, /`(test\/[^`]+\.ts)`/g)
    expect(files.length).to.be.greaterThan(10)
    expect(titles.map(({ file }) => file)).to.include.members(files)
  })
})
