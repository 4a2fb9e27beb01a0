#!/usr/bin/env node
import { run } from './program.ts'

process.stdout.on('error', (error) =>
  end(error, `The answer cannot be written: ${codeOf(error)}.\n`),
)
process.stderr.on('error', (error) => end(error, ''))
await run(process.argv.slice(2))
// Once all is written. A connection that is kept open would hold the process for a moment.
process.stdout.write('', (error) => {
  if (!error) process.stderr.write('', () => process.exit())
})

/** Whoever read this has read enough, where the pipe is closed. */
function end(error: Error, sentence: string): void {
  if (codeOf(error) === 'EPIPE') process.exit(0)
  process.exitCode = 1
  process.stderr.write(sentence, () => process.exit())
}

function codeOf(error: Error): string {
  return String(Reflect.get(error, 'code'))
}
