import { expect } from 'chai'
import { createHashQueue, hashQueueLimits } from '../../src/crypto/hash-queue.ts'
import { turns } from '../support/turns.ts'

/** Work that ends when the test says so. */
function hashing() {
  const begun: number[] = []
  const ends: (() => void)[] = []
  return {
    begun,
    begin: (index: number) => () =>
      new Promise<number>((resolve) => {
        begun.push(index)
        ends[index] = () => resolve(index)
      }),
    async end(index: number) {
      ends[index]?.()
      await turns(1)
    },
  }
}

describe('The queue of what is hashed (RATE-15)', () => {
  it('lets so many run at once, and the others in the order in which they came', async () => {
    const queue = createHashQueue({ atOnce: 2, waiting: 3 })
    const { begun, begin, end } = hashing()
    const answers = [0, 1, 2, 3, 4].map((index) => queue(begin(index)))
    await turns(1)
    expect(begun).to.deep.equal([0, 1])
    await end(1)
    expect(begun).to.deep.equal([0, 1, 2])
    await end(2)
    expect(begun).to.deep.equal([0, 1, 2, 3])
    await end(0)
    expect(begun).to.deep.equal([0, 1, 2, 3, 4])
    await end(3)
    await end(4)
    expect(await Promise.all(answers)).to.deep.equal([0, 1, 2, 3, 4])
  })

  it('refuses whoever would wait behind too many, with nothing done, and takes the next once there is room', async () => {
    const queue = createHashQueue({ atOnce: 1, waiting: 2 })
    const { begun, begin, end } = hashing()
    const served = [0, 1, 2].map((index) => queue(begin(index)))
    const refusal: unknown = await queue(begin(3)).catch((error: unknown) => error)
    expect(refusal).to.include({ name: 'AccountFlowsError', code: 'ERR_OVERLOADED' })
    expect(begun).to.deep.equal([0])
    await end(0)
    served.push(queue(begin(4)))
    for (const index of [1, 2, 4]) await end(index)
    expect(await Promise.all(served)).to.deep.equal([0, 1, 2, 4])
    expect(begun).to.deep.equal([0, 1, 2, 4])
  })

  it('has its places back after work that failed', async () => {
    const queue = createHashQueue({ atOnce: 1, waiting: 1 })
    const failure = new Error('no memory is left')
    const fail = () => Promise.reject(failure)
    for (let time = 0; time < 3; time += 1) {
      const answers = await Promise.allSettled([queue(fail), queue(fail)])
      expect(answers.map((answer) => 'reason' in answer && answer.reason)).to.deep.equal([
        failure,
        failure,
      ])
    }
    expect(await queue(async () => 'hashed')).to.equal('hashed')
  })

  for (const [processors, poolSize, atOnce] of [
    [1, undefined, 1],
    [2, undefined, 2],
    [3, undefined, 3],
    [4, undefined, 3],
    [64, undefined, 3],
    [8, '16', 8],
    [64, '16', 15],
    [8, '2', 1],
    [8, '1', 1],
    // As libuv reads them.
    [8, '0', 1],
    [8, '', 1],
    [8, 'many', 1],
  ] as const) {
    it(`runs ${atOnce} on ${processors} processors with UV_THREADPOOL_SIZE ${poolSize}: one thread is left`, () => {
      expect(hashQueueLimits(processors, poolSize).atOnce).to.equal(atOnce)
    })
  }

  it('is short', () => {
    expect(hashQueueLimits(1, undefined).waiting).to.equal(32)
    expect(hashQueueLimits(8, undefined).waiting).to.equal(96)
  })
})
