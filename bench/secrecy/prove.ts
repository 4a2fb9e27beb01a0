import { isLeak, isSlower, judge } from './judge.ts'
import { measureAnswers, type Plan } from './measure.ts'
import type { Options } from './options.ts'
import type { Random } from './random.ts'
import { startRelay } from './relay.ts'
import type { Outcome } from './report.ts'
import type { Pairs } from './statistics.ts'
import { placeOf } from './wire.ts'

export interface Run {
  options: Options
  random: Random
  show(outcome: Outcome): void
}

export interface Named {
  title: string
  control?: 'negative' | 'positive' | undefined
  /** As `judge` asks. */
  isStill: boolean
}

/** Measures once, and again where something was seen. */
export const proveOne = (run: Run, named: Named, measure: () => Promise<Pairs>): Promise<void> =>
  proveMany(run, [named], async () => [await measure()])

/** Likewise for several contrasts that are measured in one go. */
export async function proveMany(
  { random, show }: Run,
  named: Named[],
  measure: () => Promise<Pairs[]>,
): Promise<void> {
  const judged = async () =>
    (await measure()).map((pairs, i) =>
      judge(pairs, random, { isStill: named[i]?.isStill ?? false }),
    )

  const first = await judged()
  const isSeen = first.some(({ complaints }) => complaints.length > 0)
  const second = isSeen ? await judged() : []
  for (const [i, { title, control }] of named.entries()) {
    const stage = first[i]
    if (!stage) throw new TypeError(`${title} was not measured`)
    const again = stage.complaints.length > 0 ? second[i] : undefined
    const shows = control === 'positive' ? isSlower : isLeak
    const verdict = verdictOf(shows(stage, again), control)
    show({ title, control, verdict, stages: again ? [stage, again] : [stage] })
  }
}

function verdictOf(leaks: boolean, control: Named['control']): Outcome['verdict'] {
  if (control === 'positive') return leaks ? 'seen' : 'NOT SEEN'
  return leaks ? 'LEAK' : 'quiet'
}

interface Controls {
  titled(name: string): string
  isStill: boolean
  connections: number
  holdHitsMs: number
  /** Nobody against nobody. */
  plan(): Promise<Plan> | Plan
}

/** Nobody against nobody is quiet; what a relay holds back for one class is seen. */
export async function proveControls(
  run: Run,
  { titled, isStill, connections, holdHitsMs, plan }: Controls,
): Promise<void> {
  const measure = async (heldMs: number) => {
    const nobody = await plan()
    const relay = await startRelay(placeOf(nobody.url))
    try {
      const how = { ...amountOf(run), connections, relay, holdHitsMs: heldMs }
      return await measureAnswers(nobody, how)
    } finally {
      relay.close()
    }
  }
  const negative: Named = { title: titled('nobody twice'), control: 'negative', isStill }
  await proveOne(run, negative, () => measure(0))
  const positive: Named = {
    title: titled(`held back ${holdHitsMs} ms`),
    control: 'positive',
    isStill,
  }
  await proveOne(run, positive, () => measure(holdHitsMs))
}

/** Requests of each class that are sent before, and not counted. */
export function warmUpFor(pairs: number): number {
  return Math.min(200, Math.ceil(pairs / 4))
}

export function amountOf({ options: { pairs }, random }: Run) {
  return { pairs, warmUp: warmUpFor(pairs), random }
}
