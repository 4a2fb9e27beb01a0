#!/usr/bin/env node
/**
 * The program `account-flows`: one run, with the streams of its process. It reaches a service by its admin API alone, and knows neither
 * database nor mail server.
 *
 * @module
 */
import { reachCodeOf } from '../src/errors.ts'
import { run } from './program.ts'

const args = process.argv.slice(2)
/** It goes on until it is ended. */
const isEndless = args.includes('tail')

let isUnread = false

process.stdout.on('error', (error) => {
  // The reader has enough. What is under way ends as it would, and with its own exit code.
  isUnread ||= reachCodeOf(error) === 'EPIPE'
  if (isUnread && isEndless) process.exit()
  if (isUnread) return
  process.exitCode = 1
  process.stderr.write(`The answer cannot be written: ${reachCodeOf(error)}.\n`, () =>
    process.exit(),
  )
})
process.stderr.on('error', () => {})
const exitCode = await run(args, process)
// An answer that cannot be written has set it already.
process.exitCode ??= exitCode
// Once all is written. A connection that is kept open would hold the process for a moment.
process.stdout.write('', (error) => {
  if (!error || isUnread) process.stderr.write('', () => process.exit())
})
