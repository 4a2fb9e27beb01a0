import { writeFile } from 'node:fs/promises'
import { expect } from 'chai'
import { array, assert, integer, property, tuple } from 'fast-check'
import { servers } from '../../bench/secrecy/contrasts.ts'
import { isLeak, judge, type Stage } from '../../bench/secrecy/judge.ts'
import { readOptions } from '../../bench/secrecy/options.ts'
import {
  aucMargin,
  createRandom,
  highEdge,
  holm,
  kolmogorovSmirnov,
  lowEdge,
  mannWhitney,
  medianDifference,
  signTest,
  wilcoxon,
  type Pairs,
  type Random,
} from '../../bench/secrecy/statistics.ts'
import { conclude, EXIT_CODES, type Outcome } from '../../bench/secrecy/report.ts'
import { suiteFolder } from '../support/folders.ts'

describe('npm run prove:secrecy', () => {
  describe('concludes', () => {
    const outcome = (verdict: Outcome['verdict'], control?: Outcome['control']): Outcome => {
      return { title: 'x', verdict, control, stages: [] }
    }
    const nothing = outcome('quiet', 'negative')
    const held = outcome('seen', 'positive')
    const runs: [string, Outcome[], number][] = [
      ['quiet', [nothing, held, outcome('quiet')], 0],
      ['leak', [nothing, held, outcome('quiet'), outcome('LEAK')], 1],
      ['void', [], 2],
      ['void', [nothing, held], 2],
      ['void', [outcome('quiet')], 2],
      ['void', [nothing, outcome('quiet')], 2],
      ['void', [held, outcome('LEAK')], 2],
      ['void', [outcome('LEAK', 'negative'), held, outcome('quiet')], 2],
      ['void', [nothing, outcome('NOT SEEN', 'positive'), outcome('quiet')], 2],
      ['void', [nothing, outcome('NOT SEEN', 'positive'), outcome('LEAK')], 2],
    ]
    for (const [expected, outcomes, exitCode] of runs) {
      const said = outcomes.map(({ verdict, control }) => `${control ?? 'contrast'} ${verdict}`)
      it(`${expected} from ${said.join(', ') || 'nothing'}: exit code ${exitCode}`, () => {
        const conclusion = conclude(outcomes)
        expect(conclusion).to.equal(expected)
        expect(EXIT_CODES[conclusion]).to.equal(exitCode)
      })
    }
  })

  it('calls no two contrasts by the same name', () => {
    const titles = servers.flatMap(({ contrasts, suffix = '' }) =>
      Object.keys(contrasts).map((name) => name + suffix),
    )
    expect(new Set(titles).size).to.equal(titles.length)
  })

  describe('reads its arguments', () => {
    const file = suiteFolder()

    before(async () => {
      await writeFile(file('known'), 'ann\nben\r\n\n')
      await writeFile(file('unknown'), 'eve\nfay\n')
      await writeFile(file('longer'), 'evelyn\nfay\n')
      await writeFile(file('one'), 'eve\n')
    })

    it('with 1,000 pairs, 200 in the short form, or as many as are asked for, and somebody’s own deployment', () => {
      expect(readOptions([]).pairs).to.equal(1_000)
      expect(readOptions(['--short']).pairs).to.equal(200)
      expect(readOptions(['--short', '--pairs', '3000']).pairs).to.equal(3_000)
      const known = ['--known', file('known'), '--unknown', file('unknown')]
      const { deployment } = readOptions(['--url', 'https://id.example/oauth2', ...known])
      expect(deployment?.oauthUrl.href).to.equal('https://id.example/oauth2/')
      expect(deployment).to.deep.include({ known: ['ann', 'ben'], unknown: ['eve', 'fay'] })
    })

    it('and refuses what cannot be meant', () => {
      const url = ['--url', 'https://id.example/oauth2']
      const refused: [string[], RegExp][] = [
        [['--pairs', '0'], /--pairs/],
        [['--pairs', 'many'], /--pairs/],
        [['--unheard-of'], /unheard-of/],
        [url, /together/],
        [[...url, '--known', file('known'), '--unknown', file('longer')], /same number of bytes/],
        [[...url, '--known', file('known'), '--unknown', file('one')], /two identifiers/],
        [['--url', 'ftp://x', '--known', file('known'), '--unknown', file('unknown')], /--url/],
      ]
      for (const [args, message] of refused) {
        expect(() => readOptions(args), args.join(' ')).to.throw(message)
      }
    })
  })
})

/** Hamilton depression scores of nine patients, after Hollander and Wolfe; the expected values are those of SciPy 1.17. */
const KNOWN: Pairs = {
  hits: [1.83, 0.5, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.3],
  misses: [0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29],
}
const TIED: Pairs = { hits: [1, 2, 2, 3, 3, 3, 4, 5, 5, 7], misses: [2, 2, 3, 1, 1, 3, 2, 4, 5, 1] }

/** In milliseconds. */
const WIDE = 500

/** Times as a service gives them: log-normal around 1.2 ms, 1 % outliers, and a random delay. */
function synthetic(random: Random, n: number, { leakMs = 0, delayMs = 0 } = {}): Pairs {
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
    for (const [name, test, pairs, effect, p] of [
      ['Mann-Whitney', mannWhitney, KNOWN, 58 / 81 - 0.5, 0.121890991],
      ['Mann-Whitney with ties', mannWhitney, TIED, 0.69 - 0.5, 0.142398853],
      ['Wilcoxon', wilcoxon, KNOWN, 40 - 22.5, 0.03815171],
      ['Wilcoxon with ties and zeros', wilcoxon, TIED, 24 - 14, 0.086347821],
      ['the sign test', signTest, KNOWN, 7 - 2, 0.1796875],
    ] as const) {
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
    for (const test of [mannWhitney, kolmogorovSmirnov, wilcoxon, signTest]) {
      it(`${test.name} has a p-value, and turns its sign when hits and misses change places`, () => {
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
  })

  describe('of one contrast', () => {
    const complaintsOf = (runs: number, n: number, options: Parameters<typeof synthetic>[2] = {}) =>
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

    it('see one millisecond without a delay, with few pairs, in faster hits as well as in slower ones (TIM-01)', () => {
      for (const complaints of complaintsOf(5, 300, { leakMs: 1 })) {
        const directions = complaints.map(({ direction }) => direction)
        expect(directions).to.include(1).and.not.include(-1)
      }
      const random = createRandom(5)
      const faster = swapped(synthetic(random, 300, { leakMs: 1 }))
      const stage = judge(faster, random, { isStill: true })
      const directions = stage.complaints.map(({ direction }) => direction)
      expect(directions).to.include(-1).and.not.include(1)
      expect(stage.auc.middle).to.be.lessThan(0.2)
      expect(stage.lowEdgeMs).to.be.lessThan(-0.5)
    })

    it('see at the edges what a wide delay hides from the ranks (TIM-02) [full]', () => {
      const runs = complaintsOf(10, 1_000, { leakMs: 10, delayMs: WIDE })
      const seenBy = (wanted: RegExp) =>
        runs.filter((complaints) => complaints.some(({ about }) => wanted.test(about))).length
      expect(seenBy(/^(low|high) edge$/)).to.be.at.least(9)
      expect(seenBy(/^(Mann|Kolm|Wilc)/)).to.be.at.most(5)
    })

    it('call no equal times equal with too few pairs, and hold the AUC to its band with enough', () => {
      const near = (n: number) => {
        const pairs = synthetic(createRandom(3), n, { leakMs: 40, delayMs: WIDE })
        const { complaints } = judge(pairs, createRandom(3), { isStill: false })
        return complaints.map(({ about }) => about)
      }
      expect(near(700)).not.to.include('equivalence')
      expect(near(1_000)).to.include('equivalence')
    })
  })

  it('call it a leak only when it shows twice in the same direction', () => {
    const stage = (directions: number[]) =>
      ({ complaints: directions.map((direction) => ({ about: 'sign', direction })) }) as Stage
    for (const [first, second, expected] of [
      [[], undefined, false],
      [[1], undefined, false],
      [[1], [], false],
      [[1], [-1], false],
      [[1], [1], true],
      [[-1], [1, -1], true],
    ] as [number[], number[] | undefined, boolean][])
      expect(isLeak(stage(first), second && stage(second))).to.equal(expected)
  })
})
