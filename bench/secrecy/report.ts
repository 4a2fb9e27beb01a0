import type { Control, Stage, Verdict } from './judge.ts'

/** What came of one contrast. */
export interface Outcome {
  title: string
  verdict: Verdict
  /** One or two. */
  stages: Stage[]
  control?: Control
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

const WIDTHS = [52, 5, 20, 26, 9, 26, 0]

function lineOf(...cells: string[]): string {
  return cells.map((cell, i) => cell.padEnd(WIDTHS[i] ?? 0)).join('  ')
}

export function headLine(): string {
  const measured = ['low edge', 'median difference [95 %]']
  return lineOf('contrast', 'pairs', 'AUC [95 %]', 'least p, of', ...measured, 'verdict')
}

/** One line for each stage; the last one has the verdict. */
export function linesOf({ title, verdict, stages, control }: Outcome): string[] {
  const name = control ? `${control} control: ${title}` : title
  return stages.map((stage, i) => {
    const { pairs, auc, strongest, lowEdgeMs, medianDifferenceMs: median } = stage
    const said = [...new Set(stage.complaints.map(({ about }) => about))].join(', ')
    const isLast = i === stages.length - 1
    return lineOf(
      i === 0 ? name : '  again',
      String(pairs),
      `${auc.middle.toFixed(3)} [${auc.low.toFixed(3)} ${auc.high.toFixed(3)}]`,
      `${strongest.p.toPrecision(2)} ${strongest.test}`,
      `${signed(lowEdgeMs)} ms`,
      `${signed(median.middle)} ms [${signed(median.low)} ${signed(median.high)}]`,
      `${isLast ? verdict : ''}${said && ` (${said})`}`.trim(),
    )
  })
}

function signed(milliseconds: number): string {
  return `${milliseconds < 0 ? '' : '+'}${milliseconds.toFixed(2)}`
}
