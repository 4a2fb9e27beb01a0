import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'

const ROOT = new URL('../../', import.meta.url)

/** The classes of attacks, by section. */
const CLASSES: Record<string, string> = {
  ENU: '01 02 03 04 05 06 07 08 09 12 13',
  TIM: '01 02 03 05 06 07 08 09 10 12',
  TOK: '01 02 03 04 05 06 07 08 09 10 11 12 13 14 16 17 18 19 21 22 23',
  RACE: '01 02 03 04 05 06 07 08 09 10 11',
  SES: '01 02 03 04 06 07 08 09 11 12 13 14',
  LINK: '01 02 03 04 05 06 07 08 09 10 12 14',
  VER: '01 02 03 04 05 06 07 08 09 10 11 12 13 15 16 17 18 19 20 21 22',
  SIG: '01 02 03 04 05 07 08 11 12 13 15 16',
  RED: '01 02 03 04 05 06 07 11 12 13 14',
  INJ: '01 02 03 04 05 06 07 08 09 11 13',
  XSS: '01 02 03 04 05 06 08 09 10',
  MAIL: '01 02 04 05 06 07 08 09 10 11 12 13 14 15',
  IDN: '01 02 04 05 07 08 09 11 12',
  PWD: '01 02 03 05 06 07 08 09 10 11 12 13 14 15 16',
  RATE: '01 02 04 06 07 08 09 10 11 12 13',
  FLT: '01 02 03 04 05 06 07 08 09 10 11 12 13 14 15 17 18 19 20 22',
  ADM: '01 03 04 05 07 08 09 10 11 12 13 14',
  SET: '01 03 04 05 06 07 08 09 10 11 12 13 14 16 17',
  LOG: '01 02 04 06 07 08 09 10',
  CLI: '01 02 03 04 07 08',
  HDR: '01 02 03 04 05 07 08 09 10',
}

const read = (path: string) => readFile(fileURLToPath(new URL(path, ROOT)), 'utf8')

interface Row {
  id: string
  what: string
  /** Where the test is, or why there is none. */
  held: string
}

function rowsOf(text: string): Row[] {
  const lines = text.matchAll(/^\| ([A-Z]+-\d+) +\|(.+?)(?<!\\)\|(.+)\|$/gm)
  return [...lines].map(([, id = '', what = '', held = '']) => ({
    id,
    what: what.trim(),
    held: held.trim().replaceAll('\\|', '|'),
  }))
}

const attacks = await read('docs/attacks.md')
const security = await read('SECURITY.md')

describe('docs/attacks.md', () => {
  for (const [section, numbers] of Object.entries(CLASSES)) {
    describe(section, () => {
      const [, body = ''] = attacks.split(new RegExp(`^## ${section}:.*$`, 'm'))
      const rows = rowsOf(body.split(/^## /m)[0] ?? '')

      it('has one row for each class', () => {
        const ids = numbers.split(' ').map((number) => `${section}-${number}`)
        expect(rows.map(({ id }) => id)).to.have.members(ids)
      })

      for (const { id, what, held } of rows) {
        it(`${id} is held by a test, or SECURITY.md says why not`, async () => {
          expect(what).not.to.equal('')
          const tests = [...held.matchAll(/`((?:test|src\/contract)\/[^`]+\.ts)`: "([^"]+)"/g)]
          if (tests.length === 0) {
            expect(held).to.equal('`SECURITY.md`')
            expect(security).to.match(new RegExp(`^- ${id}: \\w`, 'm'))
          }
          for (const [, file = '', words = ''] of tests) {
            expect((await read(file)).includes(words), `"${words}" in ${file}`).to.equal(true)
          }
        })
      }
    })
  }

  it('and SECURITY.md tell of the same classes without a test', () => {
    const told = [...security.matchAll(/^- ([A-Z]+-\d+): /gm)].map(([, id]) => id)
    const untested = rowsOf(attacks).filter(({ held }) => held === '`SECURITY.md`')
    expect(told).to.have.members(untested.map(({ id }) => id))
  })
})

describe('SECURITY.md', () => {
  it('names only tests that exist', async () => {
    const files = [...security.matchAll(/`(test\/[^`]+\.ts)`/g)].map(([, file = '']) => file)
    expect(files.length).to.be.greaterThan(10)
    for (const file of files) expect(await read(file), file).to.match(/\bit\w*\(/)
  })
})
