const shared = require('../../.mocharc.cjs')

/** One after the other: each has three processes of its own. */
module.exports = { ...shared, spec: ['test/soak/*.test.ts'], parallel: false }
