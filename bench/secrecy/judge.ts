import type { Random } from './random.ts'
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

export type Complaint =
  | 'Mann-Whitney'
  | 'Kolmogorov-Smirnov'
  | 'Wilcoxon'
  | 'sign'
  | 'low edge'
  | 'high edge'
  | 'equivalence'
  | 'low edge cap'

/** One measurement of one contrast. */
export interface Stage {
  pairs: number
  /** The chance that a hit is slower than a miss, with its 95 % interval. */
  auc: Interval
  /** The smallest p-value of the six tests after Holm, and whose it is. */
  strongest: { test: Complaint; p: number }
  lowEdgeMs: number
  medianDifferenceMs: Interval
  /** What speaks against equal times, and whether for slower (1) or for faster hits (-1). Empty: quiet. */
  complaints: { about: Complaint; direction: number }[]
}

/** `isStill`: one request at a time and no random delay, so that the fastest answers scatter by less than the cap. */
export function judge(pairs: Pairs, random: Random, { isStill }: { isStill: boolean }): Stage {
  const tests = [
    { about: 'Mann-Whitney', ...mannWhitney(pairs) },
    { about: 'Kolmogorov-Smirnov', ...kolmogorovSmirnov(pairs) },
    { about: 'Wilcoxon', ...wilcoxon(pairs) },
    { about: 'sign', ...signTest(pairs) },
    { about: 'low edge', ...lowEdge(pairs, random) },
    { about: 'high edge', ...highEdge(pairs, random) },
  ] satisfies { about: Complaint; effect: number; p: number }[]
  const adjusted = holm(tests.map(({ p }) => p))
  const least = Math.min(...adjusted)
  const auc = 0.5 + mannWhitney(pairs).effect
  const margin = aucMargin(pairs, Z_95)
  const lowEdgeMs = tests.find(({ about }) => about === 'low edge')?.effect ?? 0

  const complaints: Stage['complaints'] = tests
    .filter((_, i) => (adjusted[i] ?? 1) < FAMILY)
    .map(({ about, effect }) => ({ about, direction: Math.sign(effect) }))
  const isEnough = pairs.hits.length >= PAIRS_FOR_EQUALITY
  if (isEnough && Math.abs(auc - 0.5) + aucMargin(pairs, Z_90) > EQUIVALENCE) {
    complaints.push({ about: 'equivalence', direction: Math.sign(auc - 0.5) })
  }
  if (isEnough && isStill && Math.abs(lowEdgeMs) >= LOW_EDGE_CAP) {
    complaints.push({ about: 'low edge cap', direction: Math.sign(lowEdgeMs) })
  }
  return {
    pairs: pairs.hits.length,
    auc: { low: auc - margin, middle: auc, high: auc + margin },
    strongest: {
      test: tests[adjusted.indexOf(least)]?.about ?? 'Mann-Whitney',
      p: least,
    },
    lowEdgeMs,
    medianDifferenceMs: medianDifference(pairs, random),
    complaints,
  }
}

/** Whether hits were slower both times: what the positive control makes of them. */
export function isSlower(first: Stage, second: Stage | undefined): boolean {
  return [first, second].every((stage) =>
    stage?.complaints.some(({ direction }) => direction === 1),
  )
}

/** A leak shows twice, with fresh users and in the same direction: chance alone does that once in ten thousand contrasts. */
export function isLeak(first: Stage, second: Stage | undefined): boolean {
  const directions = new Set(first.complaints.map(({ direction }) => direction))
  return second?.complaints.some(({ direction }) => directions.has(direction)) ?? false
}
