import { expect } from 'chai'
import { array, assert, integer, nat, property, tuple } from 'fast-check'
import { isLeak, judge, type Stage } from '../../bench/secrecy/judge.ts'
import { createRandom, type Random } from '../../bench/secrecy/random.ts'
import {
  aucMargin,
  highEdge,
  holm,
  kolmogorovSmirnov,
  lowEdge,
  mannWhitney,
  medianDifference,
  signTest,
  wilcoxon,
  type Pairs,
} from '../../bench/secrecy/statistics.ts'

/** Hamilton depression scores of nine patients, after Hollander and Wolfe; the expected values are those of SciPy 1.17. */
const KNOWN: Pairs = {
  hits: [1.83, 0.5, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.3],
  misses: [0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29],
}
const TIED: Pairs = {
  hits: [1, 2, 2, 3, 3, 3, 4, 5, 5, 7],
  misses: [2, 2, 3, 1, 1, 3, 2, 4, 5, 1],
}

const DELAY = { none: 0, wide: 500 }

/** Times as a service gives them: log-normal around 1.2 ms, 1 % outliers, and a random delay. */
function synthetic(random: Random, n: number, { leakMs = 0, delayMs = DELAY.none } = {}): Pairs {
  const normal = () => Array.from({ length: 12 }, random.next).reduce((a, b) => a + b, -6)
  const time = () =>
    1.2 * Math.exp(0.2 * normal()) +
    (random.next() < 0.01 ? 20 * random.next() : 0) +
    delayMs * random.next()
  return {
    hits: Array.from({ length: n }, () => time() + leakMs),
    misses: Array.from({ length: n }, time),
  }
}

const swapped = ({ hits, misses }: Pairs): Pairs => ({ hits: misses, misses: hits })

const anyPairs = array(tuple(integer({ min: 0, max: 40 }), integer({ min: 0, max: 40 })), {
  minLength: 2,
  maxLength: 60,
}).map((pairs) => ({ hits: pairs.map(([hit]) => hit), misses: pairs.map(([, miss]) => miss) }))

describe('The statistics of the proof', () => {
  describe('agree with published values', () => {
    const expected: Record<
      string,
      [(pairs: Pairs) => { effect: number; p: number }, Pairs, number, number]
    > = {
      'Mann-Whitney': [mannWhitney, KNOWN, 58 / 81 - 0.5, 0.121890991],
      'Mann-Whitney with ties': [mannWhitney, TIED, 0.69 - 0.5, 0.142398853],
      Wilcoxon: [wilcoxon, KNOWN, 40 - 22.5, 0.03815171],
      'Wilcoxon with ties and zeros': [wilcoxon, TIED, 24 - 14, 0.086347821],
      'the sign test': [signTest, KNOWN, 7 - 2, 0.1796875],
    }
    for (const [name, [test, pairs, effect, p]] of Object.entries(expected)) {
      it(name, () => {
        const result = test(pairs)
        expect(result.effect).to.be.closeTo(effect, 1e-12)
        expect(result.p).to.be.closeTo(p, 1e-6)
      })
    }

    it('Kolmogorov-Smirnov', () => {
      const { effect, p } = kolmogorovSmirnov(KNOWN)
      expect(effect).to.be.closeTo(2 / 3, 1e-12)
      expect(p).to.be.closeTo(0.0336, 0.01)
      const hits = Array.from({ length: 200 }, (_, i) => i + 25.5)
      const large = kolmogorovSmirnov({ hits, misses: hits.map((time) => time - 25.5) })
      expect(large.effect).to.be.closeTo(0.13, 1e-12)
      expect(large.p).to.be.closeTo(0.068, 0.001)
    })

    it('the margin of the AUC for 1,000 pairs', () => {
      const thousand = { hits: Array(1_000).fill(0), misses: Array(1_000).fill(0) }
      expect(aucMargin(thousand, 1.96)).to.be.closeTo(0.0253, 1e-4)
    })

    it('Holm', () => {
      expect(holm([0.01, 0.04, 0.03, 0.005])).to.deep.equal([0.03, 0.06, 0.06, 0.02])
      expect(holm([0.9, 0.8])).to.deep.equal([1, 1])
    })

    it('the edges and the median of pairs that differ by one everywhere', () => {
      const misses = Array.from({ length: 200 }, (_, i) => i * 10)
      const pairs = { hits: misses.map((time) => time + 1), misses }
      expect(lowEdge(pairs, createRandom(1)).effect).to.be.closeTo(1, 1e-9)
      expect(highEdge(pairs, createRandom(1)).effect).to.be.closeTo(1, 1e-9)
      const { low, middle, high } = medianDifference(pairs, createRandom(1))
      expect([low, middle, high]).to.deep.equal([1, 1, 1])
    })
  })

  describe('whatever the times are', () => {
    const tests = {
      'Mann-Whitney': mannWhitney,
      'Kolmogorov-Smirnov': kolmogorovSmirnov,
      Wilcoxon: wilcoxon,
      sign: signTest,
    }
    for (const [name, test] of Object.entries(tests)) {
      it(`${name} has a p-value, and turns its sign when hits and misses change places`, () => {
        assert(
          property(anyPairs, (pairs) => {
            const [one, other] = [test(pairs), test(swapped(pairs))]
            expect(one.p).to.be.within(0, 1)
            expect(other.p).to.be.closeTo(one.p, 1e-9)
            expect(Math.abs(other.effect)).to.be.closeTo(Math.abs(one.effect), 1e-9)
            // Of two equal distances, Kolmogorov-Smirnov tells the first.
            if (test !== kolmogorovSmirnov) expect(other.effect).to.be.closeTo(-one.effect, 1e-9)
          }),
        )
      })
    }

    it('the edges likewise', () => {
      assert(
        property(anyPairs, nat(), (pairs, seed) => {
          for (const test of [lowEdge, highEdge]) {
            const one = test(pairs, createRandom(seed))
            const other = test(swapped(pairs), createRandom(seed))
            expect(one.p).to.be.greaterThan(0).and.at.most(1)
            expect(other.p).to.be.closeTo(one.p, 0.05)
            expect(other.effect).to.be.closeTo(-one.effect, 1e-9)
          }
        }),
        { numRuns: 10 },
      )
    })
  })

  describe('of one contrast', () => {
    const complaintsOf = (
      runs: number,
      n: number,
      options: { leakMs?: number; delayMs?: number } = {},
    ) =>
      Array.from({ length: runs }, (_, seed) => {
        const random = createRandom(seed + 1)
        const isStill = options.delayMs === undefined
        return judge(synthetic(random, n, options), random, { isStill }).complaints
      })

    it('are quiet where there is nothing to see [full]', () => {
      const runs = complaintsOf(40, 300)
      const loud = runs.filter((complaints) => complaints.length > 0)
      // One in a hundred is expected; this many are not seen by chance.
      expect(loud.length).to.be.at.most(3)
    })

    it('see one millisecond without a delay, with few pairs (TIM-01)', () => {
      for (const complaints of complaintsOf(5, 300, { leakMs: 1 })) {
        expect(complaints.map(({ direction }) => direction))
          .to.include(1)
          .and.not.include(-1)
      }
    })

    it('see at the edges what a wide delay hides from the ranks (TIM-02) [full]', () => {
      const runs = complaintsOf(10, 1_000, { leakMs: 10, delayMs: DELAY.wide })
      const seenBy = (wanted: RegExp) =>
        runs.filter((complaints) => complaints.some(({ about }) => wanted.test(about))).length
      expect(seenBy(/^(low|high) edge$/)).to.be.at.least(9)
      expect(seenBy(/^(Mann|Kolm|Wilc)/)).to.be.at.most(5)
    })

    it('see faster hits as well as slower ones', () => {
      const random = createRandom(5)
      const stage = judge(swapped(synthetic(random, 300, { leakMs: 1 })), random, {
        isStill: true,
      })
      expect(stage.complaints.map(({ direction }) => direction))
        .to.include(-1)
        .and.not.include(1)
      expect(stage.auc.middle).to.be.lessThan(0.2)
      expect(stage.lowEdgeMs).to.be.lessThan(-0.5)
    })

    it('call no equal times equal with too few pairs, and hold the AUC to its band with enough', () => {
      const near = (n: number) =>
        judge(synthetic(createRandom(3), n, { leakMs: 40, delayMs: DELAY.wide }), createRandom(3), {
          isStill: false,
        }).complaints.map(({ about }) => about)
      expect(near(700)).not.to.include('equivalence')
      expect(near(1_000)).to.include('equivalence')
    })
  })

  it('call it a leak only when it shows twice in the same direction', () => {
    const stage = (...directions: number[]) =>
      ({ complaints: directions.map((direction) => ({ about: 'sign', direction })) }) as Stage
    expect(isLeak(stage(), undefined)).to.equal(false)
    expect(isLeak(stage(1), undefined)).to.equal(false)
    expect(isLeak(stage(1), stage())).to.equal(false)
    expect(isLeak(stage(1), stage(-1))).to.equal(false)
    expect(isLeak(stage(1), stage(1))).to.equal(true)
    expect(isLeak(stage(-1), stage(1, -1))).to.equal(true)
  })
})
