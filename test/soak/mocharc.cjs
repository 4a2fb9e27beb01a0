const shared = require('../../.mocharc.cjs')

/** One after the other: each has three processes of its own. The day is one hook. */
module.exports = { ...shared, spec: ['test/soak/*.test.ts'], parallel: false, timeout: 7_200_000 }
