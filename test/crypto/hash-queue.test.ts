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
    const queue = createHashQueue({ atOnce: 2, waiting: 3, waitingOfOne: 3 })
    const { begun, begin, end } = hashing()
    const answers = [0, 1, 2, 3, 4].map((index) => queue(begin(index), 'a'))
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
    const queue = createHashQueue({ atOnce: 1, waiting: 2, waitingOfOne: 2 })
    const { begun, begin, end } = hashing()
    const served = [0, 1, 2].map((index) => queue(begin(index), 'a'))
    const refusal: unknown = await queue(begin(3), 'a').catch((error: unknown) => error)
    expect(refusal).to.include({ name: 'AccountFlowsError', code: 'ERR_OVERLOADED' })
    expect(begun).to.deep.equal([0])
    await end(0)
    served.push(queue(begin(4)))
    for (const index of [1, 2, 4]) await end(index)
    expect(await Promise.all(served)).to.deep.equal([0, 1, 2, 4])
    expect(begun).to.deep.equal([0, 1, 2, 4])
  })

  it('refuses the last of the longest line where all places are taken, so that others still come in', async () => {
    const queue = createHashQueue({ atOnce: 1, waiting: 4, waitingOfOne: 2 })
    const { begun, begin, end } = hashing()
    const codes: unknown[] = []
    const all = ['a', 'a', 'a', 'b', 'b', 'ann'].map((network, index) =>
      queue(begin(index), network).catch(({ code }: { code: unknown }) => codes.push(code)),
    )
    await turns(1)
    expect(codes).to.deep.equal(['ERR_OVERLOADED'])
    for (let done = 0; done < 5; done += 1) {
      await turns(1)
      await end(begun[done] ?? -1)
    }
    await Promise.all(all)
    expect(begun).to.include(5).and.have.length(5)
  })

  it('gives networks turns: a password that comes alone waits for one of each other network', async () => {
    const queue = createHashQueue({ atOnce: 1, waiting: 9, waitingOfOne: 3 })
    const { begun, begin, end } = hashing()
    const others = ['another', 'another', undefined, undefined, 'ann']
    const networks = [...Array<string>(4).fill('guesser'), ...others]
    const answers = networks.map((network, index) => queue(begin(index), network))
    const order = [0, 1, 4, 6, 8, 2, 5, 7, 3]
    for (const index of order) await end(index)
    expect(begun).to.deep.equal(order)
    expect(await Promise.all(answers)).to.deep.equal([...networks.keys()])
  })

  it('refuses one network beyond a few, and unknown networks beyond half of all; others still come in', async () => {
    const queue = createHashQueue({ atOnce: 1, waiting: 6, waitingOfOne: 2 })
    const { begun, begin, end } = hashing()
    const networks = [...Array<string>(4).fill('guesser'), ...Array<undefined>(4), 'ann']
    const asked = networks.map((network, index) => queue(begin(index), network))
    const settled = Promise.allSettled(asked)
    const served = [0, 1, 4, 8, 2, 5, 6]
    for (const index of served) await end(index)
    expect(begun).to.deep.equal(served)
    const outcomes = await settled
    for (const refused of [3, 7])
      expect(outcomes[refused]).to.have.nested.property('reason.code', 'ERR_OVERLOADED')
  })

  it('refuses one network beyond a few, also while no other is there', async () => {
    const queue = createHashQueue({ atOnce: 1, waiting: 6, waitingOfOne: 2 })
    const { begin, end } = hashing()
    const served = [0, 1, 2].map((index) => queue(begin(index), 'guesser'))
    const refused = queue(begin(3), 'guesser').catch(({ code }: { code: unknown }) => code)
    const first = await Promise.race([refused, turns(2).then(() => 'it waits')])
    expect(first).to.equal('ERR_OVERLOADED')
    for (const index of [0, 1, 2]) await end(index)
    expect(await Promise.all(served)).to.deep.equal([0, 1, 2])
  })

  it('has its places back after work that failed', async () => {
    const queue = createHashQueue({ atOnce: 1, waiting: 1, waitingOfOne: 1 })
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
    expect(hashQueueLimits(1, undefined)).to.include({ waiting: 32, waitingOfOne: 4 })
    expect(hashQueueLimits(8, undefined)).to.include({ waiting: 96, waitingOfOne: 12 })
  })
})
