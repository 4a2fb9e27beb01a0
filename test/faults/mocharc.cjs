const shared = require('../../.mocharc.cjs')

const everything = { spec: ['test/faults/**/*.test.ts'], ignore: [] }

module.exports = { ...shared, ...(shared.parallel ? everything : {}), exit: true }
