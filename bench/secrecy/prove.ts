import { isLeak, isSlower, judge, type Stage } from './judge.ts'
import type { Options } from './options.ts'
import type { Random } from './random.ts'
import type { Outcome } from './report.ts'
import type { Pairs } from './statistics.ts'

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

/** Measures once, and again where something was seen. `undefined`: there is nothing to measure. */
export async function proveOne(
  { random, show }: Run,
  named: Named,
  measure: () => Promise<Pairs | undefined>,
): Promise<void> {
  await proveMany({ random, show }, [named], async () => {
    const pairs = await measure()
    return pairs && [pairs]
  })
}

/** Likewise for several contrasts that are measured in one go. */
export async function proveMany(
  { random, show }: Pick<Run, 'random' | 'show'>,
  named: Named[],
  measure: () => Promise<Pairs[] | undefined>,
): Promise<void> {
  const judged = async (): Promise<Stage[] | undefined> =>
    (await measure())?.map((pairs, i) =>
      judge(pairs, random, { isStill: named[i]?.isStill ?? false }),
    )

  const first = await judged()
  const isSeen = first?.some(({ complaints }) => complaints.length > 0)
  const second = isSeen ? await judged() : undefined
  for (const [i, { title, control }] of named.entries()) {
    const stage = first?.[i]
    const again = stage && stage.complaints.length > 0 ? second?.[i] : undefined
    const shows = control === 'positive' ? isSlower : isLeak
    const leaks = stage !== undefined && shows(stage, again)
    show({
      title,
      control,
      verdict: !stage ? 'skipped' : verdictOf(leaks, control),
      stages: [stage, again].filter((each) => each !== undefined),
    })
  }
}

/** Requests of each class that are sent before, and not counted. */
export function warmUpFor(pairs: number): number {
  return Math.min(200, Math.ceil(pairs / 4))
}

function verdictOf(leaks: boolean, control: Named['control']): Outcome['verdict'] {
  if (control === 'positive') return leaks ? 'seen' : 'NOT SEEN'
  return leaks ? 'LEAK' : 'quiet'
}
