import { appendFileSync } from 'node:fs'
import type { Runner } from 'mocha'
import { stopMongo } from './mongod-servers.ts'

export const mochaHooks = {
  afterAll: stopMongo,
}

/** One line `passed failed skipped` for the program that runs the tests, in the file that it named. */
export function mochaGlobalTeardown(this: Runner): void {
  const file = process.env['TEST_COUNTS_FILE']
  if (!file || !this.stats) return
  const { passes, failures, pending } = this.stats
  appendFileSync(file, `${passes} ${failures} ${pending}\n`)
}
