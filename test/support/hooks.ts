import { appendFileSync } from 'node:fs'
import type { Runner } from 'mocha'
import { endRun } from './end-of-run.ts'

/** A worker of `mocha --parallel` runs them after each file, and more files follow; what it has started ends with it. */
export const mochaHooks = process.env['MOCHA_WORKER_ID'] === undefined ? { afterAll: endRun } : {}

/** One line `passed failed skipped` for the program that runs the tests, in the file that it named. */
export function mochaGlobalTeardown(this: Runner): void {
  // oxlint-disable-next-line oxc/no-this-in-exported-function -- mocha passes its runner as `this`
  const { stats } = this
  const file = process.env['TEST_COUNTS_FILE']
  if (!file || !stats) return
  appendFileSync(file, `${stats.passes} ${stats.failures} ${stats.pending}\n`)
}
