const shared = require('../../.mocharc.cjs')

/** Two at once: nothing in them is about how fast the machine is, and half of the time they wait. */
module.exports = {
  ...shared,
  // Some are many rounds in one hook.
  timeout: 3_600_000,
  ...(shared.parallel ? { spec: ['test/faults/**/*.test.ts'], ignore: [], jobs: 2 } : {}),
}
