import { appendFileSync } from 'node:fs'
import path from 'node:path'
import { inspect } from 'node:util'
import type { Runner, Test } from 'mocha'
import { endRun } from './end-of-run.ts'
import { tellAdvice } from './setup-advice.ts'
import { setUp, type AnyRunner } from './setup.ts'
import { resetTime } from './time.ts'

/** A worker of `mocha --parallel` runs it after each file, and more files follow; what it has started ends with it. */
export const mochaHooks = {
  async afterAll() {
    resetTime()
    if (process.env['MOCHA_WORKER_ID'] === undefined) await endRun()
  },
}

/** Before there are workers, so that none of them fetches what another one fetches. */
export async function mochaGlobalSetup(this: AnyRunner): Promise<void> {
  // oxlint-disable-next-line oxc/no-this-in-exported-function -- mocha passes its runner as `this`
  await setUp(this.on('fail', nameFile).on('fail', tellFailure))
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

/** Tells each failure to the program that runs the tests, in the file that it named: what is said last is read first. */
function tellFailure(test: Test, error: unknown): void {
  const file = process.env['TEST_FAILURES_FILE']
  if (!file) return
  appendFileSync(
    file,
    `${path.relative('', test.file ?? '')}: ${test.fullTitle()}\n${inspect(error)}\n\n`,
  )
}

/** Of a worker that dies mocha knows no test, but the file. */
function nameFile(test: Test, error: unknown): void {
  if (!(error instanceof Error) || !('file' in error)) return
  test.title += ` (in ${path.relative('', String(error.file))})`
}
