import { appendFileSync } from 'node:fs'
import type { Runner } from 'mocha'
import { stopMongo } from './mongod-servers.ts'

/** In a worker of `mocha --parallel` they run after each file; its servers then stay for the files that follow. */
export const mochaHooks =
  process.env['MOCHA_WORKER_ID'] === undefined ? { afterAll: stopMongo } : {}

/** One line `passed failed skipped` for the program that runs the tests, in the file that it named. */
export function mochaGlobalTeardown(this: Runner): void {
  // oxlint-disable-next-line oxc/no-this-in-exported-function -- mocha passes its runner as `this`
  const { stats } = this
  const file = process.env['TEST_COUNTS_FILE']
  if (!file || !stats) return
  appendFileSync(file, `${stats.passes} ${stats.failures} ${stats.pending}\n`)
}
