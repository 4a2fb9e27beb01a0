export type Fault =
  | 'lost mail'
  | 'session that came back'
  | 'double event'
  | 'token used twice'
  | 'half done'
  | 'link too many'
  | 'lost event'
  | 'lost logout'
  | 'logout too many'
  /** The process was not killed where it should have been. */
  | 'missed moment'

/** What was found out about all rounds together. */
export interface Findings {
  rounds: number
  /** How often each outcome was seen. */
  outcomes: Map<string, number>
  count(outcome: string): void
  add(fault: Fault, what: string): void
  /** What was found wrong, each with its round. */
  of(...faults: Fault[]): string[]
  /** One line with the figures. */
  summary(title: string): string
}

const FIGURES: Fault[] = [
  'lost mail',
  'session that came back',
  'double event',
  'token used twice',
  'half done',
  'link too many',
  'lost event',
  'lost logout',
  'logout too many',
]

export function createFindings(): Findings {
  const found: { fault: Fault; what: string }[] = []
  const outcomes = new Map<string, number>()
  const of = (...faults: Fault[]) =>
    found
      .filter(({ fault }) => faults.includes(fault))
      .map(({ fault, what }) => `${fault}: ${what}`)

  return {
    rounds: 0,
    outcomes,
    count: (outcome) => void outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1),
    add: (fault, what) => void found.push({ fault, what }),
    of,
    summary(title) {
      const faults = FIGURES.map((fault) => `${fault} ${of(fault).length}`)
      const seen = [...outcomes].map(([outcome, times]) => `${outcome} ${times}`)
      return `${title}: rounds ${this.rounds}, ${faults.join(', ')} (${seen.join(', ')})`
    },
  }
}
