import type { Stage } from './judge.ts'

export type Verdict = 'quiet' | 'LEAK' | 'seen' | 'NOT SEEN'

/** What came of one contrast. */
export interface Outcome {
  title: string
  verdict: Verdict
  /** One or two. */
  stages: Stage[]
  /** `positive`: a leak made on purpose, which must be seen. */
  control?: 'negative' | 'positive' | undefined
}

export type Conclusion = 'quiet' | 'leak' | 'void'

export const EXIT_CODES: Record<Conclusion, number> = { quiet: 0, leak: 1, void: 2 }

/** A run whose controls misbehave says nothing. */
export function conclude(outcomes: Outcome[]): Conclusion {
  const misbehaves = ({ control, verdict }: Outcome) =>
    (control === 'negative' && verdict !== 'quiet') ||
    (control === 'positive' && verdict !== 'seen')
  const measured = outcomes.filter(({ control }) => !control)
  const isControlled = ['negative', 'positive'].every((kind) =>
    outcomes.some(({ control }) => control === kind),
  )
  if (!isControlled || measured.length === 0 || outcomes.some(misbehaves)) return 'void'
  return measured.some(({ verdict }) => verdict === 'LEAK') ? 'leak' : 'quiet'
}

const TITLE_WIDTH = 52

export function headLine(): string {
  return [
    'contrast'.padEnd(TITLE_WIDTH),
    'pairs'.padStart(5),
    'AUC [95 %]'.padEnd(20),
    'least p, of'.padEnd(26),
    'low edge'.padStart(9),
    'median difference [95 %]'.padEnd(26),
    'verdict',
  ].join('  ')
}

/** One line for each stage; the last one has the verdict. */
export function linesOf({ title, verdict, stages, control }: Outcome): string[] {
  const name = control ? `${control} control: ${title}` : title
  return stages.map((stage, i) => {
    const { auc, strongest, lowEdgeMs, medianDifferenceMs: median } = stage
    const said = [...new Set(stage.complaints.map(({ about }) => about))].join(', ')
    const isLast = i === stages.length - 1
    return [
      (i === 0 ? name : '  again').padEnd(TITLE_WIDTH),
      String(stage.pairs).padStart(5),
      `${auc.middle.toFixed(3)} [${auc.low.toFixed(3)} ${auc.high.toFixed(3)}]`.padEnd(20),
      `${strongest.p.toPrecision(2)} ${strongest.test}`.padEnd(26),
      `${signed(lowEdgeMs)} ms`.padStart(9),
      `${signed(median.middle)} ms [${signed(median.low)} ${signed(median.high)}]`.padEnd(26),
      `${isLast ? verdict : ''}${said && ` (${said})`}`.trim(),
    ].join('  ')
  })
}

function signed(milliseconds: number): string {
  return `${milliseconds < 0 ? '' : '+'}${milliseconds.toFixed(2)}`
}
