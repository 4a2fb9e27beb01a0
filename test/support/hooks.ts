import { appendFileSync } from 'node:fs'
import { relative } from 'node:path'
import { inspect } from 'node:util'
import type { Runner, Suite, Test } from 'mocha'
import { chromium } from './chromium.ts'
import { mongo } from './find-mongo.ts'
import { collectAdvice, tellAdvice } from './missing.ts'
import { postgresql } from './postgresql.ts'
import { resetTime } from './time.ts'

const PARTS = [mongo, chromium, postgresql]

/** A worker of `mocha --parallel` runs it after each file, and more files follow. What a process has started ends with it. */
export const mochaHooks = { afterAll: resetTime }

/** Finds, fetches or installs what a run needs, before there are workers, and tells where it is from. */
export async function mochaGlobalSetup(this: Runner & { isParallelMode(): boolean }) {
  // oxlint-disable-next-line oxc/no-this-in-exported-function -- mocha passes its runner as `this`
  const runner = this.on('fail', nameFile).on('fail', tellFailure)
  collectAdvice()
  // Only workers read the files then, so all parts are set up.
  const titles = runner.isParallelMode() ? PARTS.map(({ title }) => title) : titlesThatRun(runner)
  for (const { title, setUp } of PARTS)
    if (titles.some((each) => each.startsWith(title))) console.warn(await setUp())
}

/** Tells what was missing, and one line `passed failed skipped` to the program that runs the tests, in the file that it named. */
export function mochaGlobalTeardown(this: Runner): void {
  // oxlint-disable-next-line oxc/no-this-in-exported-function -- mocha passes its runner as `this`
  const { stats } = this
  tellAdvice()
  const file = process.env['TEST_COUNTS_FILE']
  if (!file || !stats) return
  appendFileSync(file, `${stats.passes} ${stats.failures} ${stats.pending}\n`)
}

/** Of the suites in which a test is not left out. */
function titlesThatRun(runner: Runner, suite: Suite = runner.suite): string[] {
  if (runner.grepTotal(suite) === 0) return []
  return [suite.title, ...suite.suites.flatMap((inner) => titlesThatRun(runner, inner))]
}

/** Of a worker that dies mocha knows no test, but the file. */
function nameFile(test: Test, error: unknown): void {
  if (!(error instanceof Error) || !('file' in error)) return
  test.title += ` (in ${relative('', String(error.file))})`
}

/** Tells each failure to the program that runs the tests, in the file that it named: what is said last is read first. */
function tellFailure(test: Test, error: unknown): void {
  const file = process.env['TEST_FAILURES_FILE']
  if (!file) return
  const where = `${relative('', test.file ?? '')}: ${test.fullTitle()}`
  appendFileSync(file, `${where}\n${inspect(error)}\n\n`)
}
