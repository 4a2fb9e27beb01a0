#!/usr/bin/env node
/** The program: one run, with the streams of its process. */
import { reachCodeOf } from '../src/errors.ts'
import { run } from './program.ts'

const args = process.argv.slice(2)
/** `audit tail` runs until the user ends it. */
const isEndless = args.includes('tail')

let isUnread = false

process.stdout.on('error', (error) => {
  // The reader closed the output. The command still ends as usual, with its own exit code.
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
// If the answer cannot be written, the exit code is set already.
process.exitCode ??= exitCode
// Exits once all is written: an open connection would hold the process for a moment.
process.stdout.write('', (error) => {
  if (!error || isUnread) process.stderr.write('', () => process.exit())
})
