#!/usr/bin/env node
import { run } from './program.ts'

process.stdout.on('error', endQuietly)
process.stderr.on('error', endQuietly)
await run(process.argv.slice(2))

/** Whoever read this has read enough. */
function endQuietly(error: NodeJS.ErrnoException): void {
  process.exit(error.code === 'EPIPE' ? 0 : 1)
}
