import { access, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { allMutants } from './all-mutants.ts'
import { applied, ROOT } from './mutant.ts'

describe('The broken variants of npm run test:mutants', () => {
  for (const mutant of allMutants) {
    const { name, edits, caughtBy } = mutant
    it(`still apply: ${name}`, async () => {
      const changed = await applied(mutant)
      expect([...changed.keys()]).to.have.members([...new Set(edits.map(({ file }) => file))])
      const { file, words, suite = file } = caughtBy
      await access(join(ROOT, file))
      const test = await readFile(join(ROOT, suite), 'utf8')
      expect(test.includes(words), `"${words}" in ${suite}`).to.equal(true)
    })
  }

  it('each have a name of their own', () => {
    const names = allMutants.map(({ name }) => name)
    expect(names).to.have.length(new Set(names).size)
  })
})
