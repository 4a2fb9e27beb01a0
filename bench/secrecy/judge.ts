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
  type Interval,
  type Pairs,
  type Random,
} from './statistics.ts'

/** Of all six tests together, how often one may speak where there is nothing. */
const FAMILY = 0.01
const Z_90 = 1.645
const Z_95 = 1.96
/** How far the AUC may be from one half, whatever the tests say. */
const EQUIVALENCE = 0.05
/** With fewer pairs, equal times would not be seen to be equal with a power of 90 %, and the edges are a handful of answers. */
export const PAIRS_FOR_EQUALITY = 722
/** How far the fastest answers may be apart, in milliseconds, whatever the tests say. */
const LOW_EDGE_CAP = 1

/** One measurement of one contrast. */
export interface Stage {
  pairs: number
  /** The chance that a hit is slower than a miss, with its 95 % interval. */
  auc: Interval
  /** The smallest p-value of the six tests after Holm, and whose it is. */
  strongest: { test: string; p: number }
  lowEdgeMs: number
  medianDifferenceMs: Interval
  /** What speaks against equal times, and whether for slower (1) or for faster hits (-1). Empty: quiet. */
  complaints: { about: string; direction: number }[]
}

/** `isStill`: one request at a time and no random delay, so that the fastest answers scatter by less than the cap. */
export function judge(pairs: Pairs, random: Random, { isStill }: { isStill: boolean }): Stage {
  const ranks = mannWhitney(pairs)
  const edge = lowEdge(pairs, random)
  const tests = Object.entries({
    'Mann-Whitney': ranks,
    'Kolmogorov-Smirnov': kolmogorovSmirnov(pairs),
    Wilcoxon: wilcoxon(pairs),
    sign: signTest(pairs),
    'low edge': edge,
    'high edge': highEdge(pairs, random),
  })
  const adjusted = holm(tests.map(([, { p }]) => p))
  const least = Math.min(...adjusted)
  const auc = 0.5 + ranks.effect
  const margin = aucMargin(pairs, Z_95)

  const isEnough = pairs.hits.length >= PAIRS_FOR_EQUALITY
  const isFar = Math.abs(ranks.effect) + aucMargin(pairs, Z_90) > EQUIVALENCE
  const complaints = tests
    .filter((_, i) => (adjusted[i] ?? 1) < FAMILY)
    .map(([about, { effect }]) => ({ about, direction: Math.sign(effect) }))
  if (isEnough && isFar)
    complaints.push({ about: 'equivalence', direction: Math.sign(ranks.effect) })
  if (isEnough && isStill && Math.abs(edge.effect) >= LOW_EDGE_CAP)
    complaints.push({ about: 'low edge cap', direction: Math.sign(edge.effect) })
  return {
    pairs: pairs.hits.length,
    auc: { low: auc - margin, middle: auc, high: auc + margin },
    strongest: { test: tests[adjusted.indexOf(least)]?.[0] ?? '', p: least },
    lowEdgeMs: edge.effect,
    medianDifferenceMs: medianDifference(pairs, random),
    complaints,
  }
}

export type Verdict = 'quiet' | 'LEAK' | 'seen' | 'NOT SEEN'

/** `positive`: a leak made on purpose, which must be seen. */
export type Control = 'negative' | 'positive' | undefined

export function verdictOf(control: Control, first: Stage, second: Stage | undefined): Verdict {
  if (control !== 'positive') return isLeak(first, second) ? 'LEAK' : 'quiet'
  const isSlower = [first, second].every((stage) =>
    stage?.complaints.some(({ direction }) => direction === 1),
  )
  return isSlower ? 'seen' : 'NOT SEEN'
}

/** A leak shows twice, with fresh users and in the same direction: chance alone does that once in ten thousand contrasts. */
export function isLeak(first: Stage, second: Stage | undefined): boolean {
  const directions = new Set(first.complaints.map(({ direction }) => direction))
  return second?.complaints.some(({ direction }) => directions.has(direction)) ?? false
}
