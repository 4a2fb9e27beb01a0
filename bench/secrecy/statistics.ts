/**
 * Whether two classes of requests can be told apart by their times. Pure functions over paired samples; every test is two-sided,
 * and every effect is positive where the hits are slower.
 *
 * @module
 */

/** Times in milliseconds; `hits[i]` and `misses[i]` were measured one right after the other, in random order. */
export interface Pairs {
  hits: number[]
  misses: number[]
}

export interface TestResult {
  /** In the unit of the test; only its sign is comparable between tests. */
  effect: number
  /** How likely an effect of this size is where there is none: 0 to 1. */
  p: number
}

/** Of each class, what the edges are made of. */
const EDGE = 0.02
const PERMUTATIONS = 4_000
const RESAMPLES = 1_000

/** The effect is the AUC, the chance that a hit is slower than a miss, less one half; normal approximation with ties. */
export function mannWhitney({ hits, misses }: Pairs): TestResult {
  const [n, m] = [hits.length, misses.length]
  const { ranks, ties } = ranksOf([...hits, ...misses])
  const u = sum(ranks.slice(0, n)) - (n * (n + 1)) / 2
  const all = n + m
  const variance = ((n * m) / 12) * (all + 1 - ties / (all * (all - 1)))
  return { effect: u / (n * m) - 0.5, p: normalP(u - (n * m) / 2, variance) }
}

/** The half-width of the confidence interval of the AUC; `z` is 1.645 for 90 %, 1.96 for 95 %. */
export function aucMargin({ hits, misses }: Pairs, z: number): number {
  const [n, m] = [hits.length, misses.length]
  return z * Math.sqrt((n + m + 1) / (12 * n * m))
}

/** The effect is the greatest distance of the two distributions; asymptotic. */
export function kolmogorovSmirnov({ hits, misses }: Pairs): TestResult {
  const [a, b] = [ascending(hits), ascending(misses)]
  let [i, j, effect] = [0, 0, 0]
  while (i < a.length && j < b.length) {
    const at = Math.min(a[i] ?? 0, b[j] ?? 0)
    while (i < a.length && (a[i] ?? 0) <= at) i += 1
    while (j < b.length && (b[j] ?? 0) <= at) j += 1
    // Of slower hits, less lies below.
    const distance = j / b.length - i / a.length
    if (Math.abs(distance) > Math.abs(effect)) effect = distance
  }
  const root = Math.sqrt((a.length * b.length) / (a.length + b.length))
  return { effect, p: kolmogorovP(root * Math.abs(effect)) }
}

/** Signed ranks of the paired differences; normal approximation with ties, zeros left out. */
export function wilcoxon(pairs: Pairs): TestResult {
  const differences = differencesOf(pairs).filter((difference) => difference !== 0)
  const n = differences.length
  const { ranks, ties } = ranksOf(differences.map(Math.abs))
  const positive = sum(ranks.filter((_, i) => (differences[i] ?? 0) > 0))
  const effect = positive - (n * (n + 1)) / 4
  return { effect, p: normalP(effect, (n * (n + 1) * (2 * n + 1)) / 24 - ties / 48) }
}

/** In how many more pairs the hit was slower than it was faster; exact binomial, zeros left out. */
export function signTest(pairs: Pairs): TestResult {
  const differences = differencesOf(pairs).filter((difference) => difference !== 0)
  const n = differences.length
  const slower = differences.filter((difference) => difference > 0).length
  let [log, tail] = [-n * Math.LN2, 0]
  for (let k = 0; k <= Math.min(slower, n - slower); k += 1) {
    tail += Math.exp(log)
    log += Math.log((n - k) / (k + 1))
  }
  return { effect: 2 * slower - n, p: Math.min(1, 2 * tail) }
}

/** The difference, in milliseconds, of the means of the fastest 2 % of each class; by permutation within the pairs. */
export function lowEdge(pairs: Pairs, random: Random): TestResult {
  return edge(pairs, random, 1)
}

/** Likewise of the slowest 2 %. */
export function highEdge(pairs: Pairs, random: Random): TestResult {
  return edge(pairs, random, -1)
}

export interface Interval {
  low: number
  middle: number
  high: number
}

/** The median of the paired differences in milliseconds, with its 95 % bootstrap interval. */
export function medianDifference(pairs: Pairs, random: Random): Interval {
  const differences = differencesOf(pairs)
  const n = differences.length
  const medians = ascending(
    Array.from({ length: RESAMPLES }, () =>
      median(Array.from({ length: n }, () => differences[random.below(n)] ?? 0)),
    ),
  )
  return {
    low: medians[Math.floor(RESAMPLES * 0.025)] ?? 0,
    middle: median(differences),
    high: medians[Math.ceil(RESAMPLES * 0.975) - 1] ?? 0,
  }
}

/** The p-values of several tests of one thing, each as if it had been the only one (Holm), in their order. */
export function holm(pValues: number[]): number[] {
  const adjusted = [...pValues]
  let least = 0
  for (const [rank, i] of ordered(pValues).entries()) {
    least = Math.max(least, Math.min(1, (pValues.length - rank) * (pValues[i] ?? 0)))
    adjusted[i] = least
  }
  return adjusted
}

function edge({ hits, misses }: Pairs, random: Random, direction: 1 | -1): TestResult {
  const n = hits.length
  const size = Math.max(1, Math.ceil(n * EDGE))
  const times = [...hits, ...misses]
  const order = ordered(times.map((time) => direction * time))

  function shift(isSwapped: (pair: number) => boolean): number {
    let [ofHits, ofMisses, difference] = [0, 0, 0]
    for (const i of order) {
      const time = times[i] ?? 0
      if (i < n !== isSwapped(i % n)) {
        if (ofHits < size) difference += time
        ofHits += 1
      } else {
        if (ofMisses < size) difference -= time
        ofMisses += 1
      }
      if (ofHits >= size && ofMisses >= size) break
    }
    return difference / size
  }

  const effect = shift(() => false)
  let asFar = 0
  for (let i = 0; i < PERMUTATIONS; i += 1) {
    const swaps = hits.map(() => random.below(2))
    if (Math.abs(shift((pair) => swaps[pair] === 1)) >= Math.abs(effect)) asFar += 1
  }
  return { effect, p: (asFar + 1) / (PERMUTATIONS + 1) }
}

/** Ranks from 1, equal values share theirs; `ties` is the sum of t³ - t over the groups of t equal values. */
function ranksOf(values: number[]): { ranks: number[]; ties: number } {
  const order = ordered(values)
  const ranks = values.map(() => 0)
  let ties = 0
  for (let start = 0; start < order.length;) {
    let end = start + 1
    while (end < order.length && values[order[end] ?? 0] === values[order[start] ?? 0]) end += 1
    for (const i of order.slice(start, end)) ranks[i] = (start + 1 + end) / 2
    ties += (end - start) ** 3 - (end - start)
    start = end
  }
  return { ranks, ties }
}

/** Where the values are, from the least to the greatest. */
function ordered(values: number[]): number[] {
  return values.map((_, i) => i).sort((a, b) => (values[a] ?? 0) - (values[b] ?? 0))
}

function differencesOf({ hits, misses }: Pairs): number[] {
  return hits.map((hit, i) => hit - (misses[i] ?? 0))
}

function ascending(values: number[]): number[] {
  return [...values].sort((a, b) => a - b)
}

function median(values: number[]): number {
  const sorted = ascending(values)
  const half = sorted.length / 2
  return ((sorted[Math.ceil(half) - 1] ?? 0) + (sorted[Math.floor(half)] ?? 0)) / 2
}

function sum(values: number[]): number {
  return values.reduce((total, value) => total + value, 0)
}

function normalP(distance: number, variance: number): number {
  return variance > 0 ? Math.min(1, erfc(Math.abs(distance) / Math.sqrt(2 * variance))) : 1
}

/** The complementary error function for 0 or more; relative error below 1.2e-7 (a Chebyshev fit). */
function erfc(x: number): number {
  const t = 1 / (1 + x / 2)
  const terms = [
    -1.26551223, 1.00002368, 0.37409196, 0.09678418, -0.18628806, 0.27886807, -1.13520398,
    1.48851587, -0.82215223, 0.17087277,
  ]
  return t * Math.exp(-x * x + terms.reduceRight((rest, term) => term + t * rest, 0))
}

function kolmogorovP(lambda: number): number {
  // The series converges only slowly where the answer is 1 anyway.
  if (lambda < 0.3) return 1
  let p = 0
  for (let k = 1; k <= 100; k += 1) {
    p += (k % 2 === 1 ? 2 : -2) * Math.exp(-2 * (k * lambda) ** 2)
  }
  return Math.min(1, Math.max(0, p))
}

/** Numbers that are random enough for sampling, and the same for the same seed (mulberry32). */
export interface Random {
  /** 0 or more, less than 1. */
  next(): number
  /** 0 or more, less than `below`. */
  below(below: number): number
}

export function createRandom(seed: number): Random {
  let state = seed >>> 0

  function next(): number {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }

  return { next, below: (below) => Math.floor(next() * below) }
}
