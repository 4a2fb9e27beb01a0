#!/usr/bin/env node
import { run } from './program.ts'

process.stdout.on('error', endQuietly)
process.stderr.on('error', endQuietly)
await run(process.argv.slice(2))
// Once all is written. The connection that fetch keeps open would hold the process for a moment.
process.stdout.write('', () => process.stderr.write('', () => process.exit()))

/** Whoever read this has read enough. */
function endQuietly(error: NodeJS.ErrnoException): void {
  process.exit(error.code === 'EPIPE' ? 0 : 1)
}
