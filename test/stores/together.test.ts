import { expect } from 'chai'
import { together } from '../../src/stores/mongodb/together.ts'
import { moveTime } from '../support/time.ts'

const CALLS = Array.from({ length: 350 }, (_, number) => number)

describe('One command for many calls', () => {
  it('gives each call its own answer', async () => {
    const commands: number[][] = []
    const doubled = together(async (numbers: number[]) => {
      commands.push(numbers)
      return numbers.map((number) => 2 * number)
    })
    expect(await Promise.all(CALLS.map(doubled))).to.deep.equal(CALLS.map((number) => 2 * number))
    expect(commands.flat()).to.have.members(CALLS)
    expect(commands.length).to.be.lessThan(10)
  })

  it('is held up by a command that hangs for a hundred calls at most', async () => {
    const begun: number[] = []
    const hang = together(async (numbers: number[]) => {
      begun.push(...numbers)
      return new Promise<number[]>(() => {})
    })
    for (const number of CALLS) {
      void hang(number)
      await new Promise(process.nextTick)
    }
    expect(begun.length).to.be.greaterThan(CALLS.length - 100)
  })

  it('lets nobody wait for a command that takes long', async () => {
    let isFirst = true
    const answered = together(async (numbers: number[]) => {
      if (!isFirst) return numbers
      isFirst = false
      return new Promise<number[]>(() => {})
    })
    void answered(1)
    await new Promise(process.nextTick)
    const waits = answered(2)
    await moveTime(1_000)
    expect(await Promise.all([answered(3), waits])).to.deep.equal([3, 2])
  })

  it('fails for its own callers alone, and goes on', async () => {
    const refuse = together(async (numbers: number[]) => {
      if (numbers.includes(1)) throw new Error('refused')
      return numbers
    })
    expect(await refuse(1).catch(String)).to.equal('Error: refused')
    expect(await refuse(2)).to.equal(2)
  })
})
