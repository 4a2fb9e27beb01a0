const { availableParallelism } = require('node:os')

const isGiven = (pattern) => process.argv.some((argument) => pattern.test(argument))

/** Files that are named run alone and tell what they do as they do it; otherwise all files run, several at once. */
const areNamed = isGiven(/\.test\.ts$/)

/** What is asked for by name runs whole. */
const isShort = process.env.TESTS !== 'full' && !isGiven(/^(?:-[gf]|--f?grep)/)

/** More than there are processors: most of its time a test waits for a mail, a process, or the database. */
const everything = {
  // What is short comes last, or a long file would run alone in the end.
  spec: ['test/*.test.ts', 'test/!(admin|faults|soak)/**/*.test.ts', 'test/admin/*.test.ts'],
  parallel: true,
  jobs: availableParallelism() + 1,
  ...(isShort ? { fgrep: '[full]', invert: true } : {}),
}

module.exports = {
  ...(areNamed ? {} : everything),
  'node-option': ['import=tsx/esm'],
  require: ['./test/support/hooks.ts'],
  // For a run that hangs. No test is about time, and a busy machine may need minutes for one.
  timeout: 600_000,
  // What a process has started, a MongoDB or a Chromium, ends with it.
  exit: true,
}
