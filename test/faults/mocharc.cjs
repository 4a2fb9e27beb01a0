const shared = require('../../.mocharc.cjs')

/** One after the other: they kill processes at moments that a busy machine moves. */
module.exports = {
  ...shared,
  ...(shared.parallel ? { spec: ['test/faults/**/*.test.ts'], ignore: [] } : {}),
  parallel: false,
  exit: true,
}
