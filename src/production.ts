import type { Log } from './ports/index.ts'

export function isProduction(): boolean {
  return process.env['NODE_ENV'] === 'production'
}

/** Warns of what is only for development; in production it throws a `TypeError`. */
export function refuseWeak(log: Log): (problem: string) => void {
  return (problem) => {
    if (isProduction()) throw new TypeError(problem)
    log('warn', `${problem}; in production this is refused`)
  }
}

/** @throws TypeError with the problem. */
export function must(isSo: unknown, problem: string): asserts isSo {
  if (!isSo) throw new TypeError(problem)
}
