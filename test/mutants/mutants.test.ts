import { expect } from 'chai'
import { testTitles } from '../attacks/test-titles.ts'
import { allMutants } from './all-mutants.ts'
import { applied } from './mutant.ts'

describe('The broken variants of npm run test:mutants', () => {
  it('still apply, each text in one place', () => {
    const stale = allMutants.flatMap((mutant) =>
      applied(mutant).stale.map((why) => `${mutant.name}: ${why}`),
    )
    expect(stale).to.deep.equal([])
  })

  it('are caught by tests that are still there', async () => {
    const titles = (await testTitles()).filter(({ file }) => !file.startsWith('test/faults/'))
    const unknown = allMutants.filter(
      ({ caughtBy }) => !titles.some(({ title }) => title.includes(caughtBy)),
    )
    expect(unknown.map(({ name, caughtBy }) => `${name}: ${caughtBy}`)).to.deep.equal([])
  })

  it('each have a name of their own', () => {
    const names = allMutants.map(({ name }) => name)
    expect(names).to.have.length(new Set(names).size)
  })
})
